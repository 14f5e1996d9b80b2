"""The extensions of the protocol that sealab serves."""
