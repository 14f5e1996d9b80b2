"""What the commands of `sealab servers` do with sign-ins of tenants and callers."""
