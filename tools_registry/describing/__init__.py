"""Describes tools: signatures, details, examples, stubs, and the types that were learned."""
