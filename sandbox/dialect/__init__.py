"""The restricted dialect: judges source, compiles it, and guards it while it runs."""
