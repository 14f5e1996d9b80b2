"""`builtins`: what code finds without importing, which stands here before this runs."""
