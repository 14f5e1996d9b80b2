"""A PostgreSQL server for the tests of bounds that servers share."""

from __future__ import annotations

from ...skills_db.conftest import cluster, postgres_place

__all__ = ["cluster", "postgres_place"]
