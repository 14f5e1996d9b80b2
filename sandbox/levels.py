"""How well this machine can confine a worker, in one word, and what to do when that is not enough."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

from .errors import LevelMissing


class Level(StrEnum):
    """What the operator may require; each level promises all that the ones after it promise.

    KERNEL: own namespaces with a root that holds the interpreter alone, Landlock, and the system call filter.
    LANDLOCK: the system call filter, and either Landlock or the namespaces; what Docker's default profile leaves.
    LIMITS: a fresh process without privileges under resource limits; nothing keeps native code from the user's files.
    """

    KERNEL = "kernel"
    LANDLOCK = "landlock"
    LIMITS = "limits"


_OF_A_LEVEL = frozenset({"process", "seccomp", "landlock", "namespaces"})

STRONGEST_FIRST = (Level.KERNEL, Level.LANDLOCK, Level.LIMITS)


@dataclass(frozen=True, slots=True)
class LayerFinding:
    """One layer as it was found by trying it.

    `detail` says what was seen (an ABI, an error); `remedy` what to do when it is not available, else "".
    """

    layer: str
    available: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """Everything the machine offers, found by trying it in throw-away processes.

    `landlock_abi` is 0 without Landlock. `is_root` says that workers must leave root first.
    """

    findings: tuple[LayerFinding, ...]
    landlock_abi: int = 0
    is_root: bool = False

    def has(self, layer: str) -> bool:
        """Return whether the layer of that name is available."""
        return any(finding.available for finding in self.findings if finding.layer == layer)

    @property
    def level(self) -> Level:
        """The strongest level that this machine reaches."""
        if not self.has("seccomp"):
            return Level.LIMITS
        if self.has("namespaces") and self.has("landlock"):
            return Level.KERNEL
        return Level.LANDLOCK if self.has("namespaces") or self.has("landlock") else Level.LIMITS

    def reaches(self, level: Level) -> bool:
        """Return whether this machine holds all that a level promises."""
        return STRONGEST_FIRST.index(self.level) <= STRONGEST_FIRST.index(level)


def default_level() -> Level:
    """Name the level that is required where the operator says nothing."""
    return Level.LANDLOCK if sys.platform == "linux" else Level.LIMITS


def require(level: Level, probe: Probe) -> None:
    """Raise LevelMissing, naming what is missing and what to do, unless the machine reaches `level`."""
    if probe.reaches(level):
        return
    missing = [finding for finding in probe.findings if finding.layer in _OF_A_LEVEL and not finding.available]
    reasons = "; ".join(f"{finding.layer} ({finding.detail})" for finding in missing)
    remedies = " ".join(dict.fromkeys(finding.remedy for finding in missing if finding.remedy))
    raise LevelMissing(
        f"The isolation level {level.value!r} is required, but this machine reaches {probe.level.value!r} only: "
        f"missing are {reasons}. {remedies} Or accept less with SEALAB_REQUIRED_LEVEL={probe.level.value}."
    )
