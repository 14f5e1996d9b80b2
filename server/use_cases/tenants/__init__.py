"""Tenants: each a whole sealab of its own, beside the operator's, in one process."""
