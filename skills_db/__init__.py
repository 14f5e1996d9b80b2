"""Keeps skills and the vault, never loses a version."""

from __future__ import annotations

DATABASE_FILE = "sealab.db"
"""The file of the database below the home, where no URL names another."""
