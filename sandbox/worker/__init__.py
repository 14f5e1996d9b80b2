"""Hostile from here on: the process that runs one guest, and the zygote that it is forked from."""
