"""The audit log: a chain of lines that can be added to, and checked, and not changed unnoticed."""
