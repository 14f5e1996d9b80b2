"""The servers that share one database, and which of them has which session."""
