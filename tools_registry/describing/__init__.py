"""Says what a tool is: signatures, details, examples, stubs, and the types that were learned."""
