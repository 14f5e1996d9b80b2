"""Names of the operating system that modules of the standard library look for, and do without."""
