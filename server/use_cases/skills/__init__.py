"""Saves, finds, runs, tests and ships skills."""
