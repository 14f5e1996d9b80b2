"""Generated documents of 16 locales, in which what is personal is marked."""
