"""Saves, finds, runs, schedules, tests and ships skills."""
