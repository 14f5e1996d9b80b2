"""Streamable HTTP: connections, bodies and sessions within their bounds, and an end that loses no answer."""
