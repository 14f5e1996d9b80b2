"""What the use cases of skills work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...workspace.store import Workspace
    from ..runs.executor import Executor
    from ..upstream_tools.registry import Registry
    from .search import SkillIndex
    from .service import SkillService


@dataclass(frozen=True, slots=True)
class SkillContext:
    """The stored skills and their index, what runs them, and what they are checked against."""

    executor: Executor
    service: SkillService
    index: SkillIndex
    registry: Registry
    workspace: Workspace
