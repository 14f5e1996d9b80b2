"""Several servers that are one sealab: who has which session, and how one server asks another."""
