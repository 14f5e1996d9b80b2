"""Gets tokens for upstream servers from their issuers, and signs requests with them."""
