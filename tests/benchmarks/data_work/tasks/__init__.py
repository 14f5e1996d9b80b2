"""The tasks, group by group."""

from __future__ import annotations

from ..made_data import People
from ..task import Task
from .broken_rows import broken
from .cleaning import clean
from .encodings import encodings
from .formats import formats
from .joining import join
from .pivoting import pivot
from .plotting import plots
from .queries import queries
from .statistics_tasks import stats
from .time_series import series

GROUPS = (clean, join, pivot, series, stats, plots, formats, encodings, broken, queries)


def all_tasks() -> list[Task]:
    """Return every task, each with people of its own."""
    tasks: list[Task] = []
    for group in GROUPS:
        for name, asked, build in group.builds:
            people = People(len(tasks))
            tasks.append(Task(len(tasks), name, group.name, asked, build(people), people))
    return tasks
