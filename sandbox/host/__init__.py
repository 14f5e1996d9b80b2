"""Trusted: what runs in the server's process. It makes workers, gives them jobs and ends them."""
