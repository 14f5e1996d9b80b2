"""The tasks, group by group."""

from __future__ import annotations

from ..made_data import People
from ..task import Task
from .formats import formats
from .plots import plots
from .spoiled import spoiled
from .tables import tables

GROUPS = (formats, spoiled, tables, plots)


def all_tasks() -> list[Task]:
    """Return every task, each with people of its own."""
    tasks: list[Task] = []
    for group in GROUPS:
        for build in group.builds:
            people = People(len(tasks))
            tasks.append(Task(len(tasks), build.__name__, group.name, build(people), people))
    return tasks
