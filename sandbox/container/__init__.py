"""Runs code in a container: full Python behind one wall more, for what `restricted` cannot run."""
