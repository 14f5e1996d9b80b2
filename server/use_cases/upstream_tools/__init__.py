"""Reaches upstream tools, for running code and for clients."""
