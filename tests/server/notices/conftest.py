"""A PostgreSQL server for the tests of what servers share."""

from __future__ import annotations

from ...skills_db.conftest import cluster

__all__ = ["cluster"]
