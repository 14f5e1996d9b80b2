"""Makes tools of the operations that an OpenAPI document describes, and calls them over HTTP."""
