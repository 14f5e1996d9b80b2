"""What host and zygote have agreed on: how they talk, and the configuration of a zygote."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..confine import Level
from ..confine.limits import Allowance
from ..job import Isolation, Json

PACKET_BYTES_MAX = 1 << 16
PACKETS = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
"""Sockets that keep message boundaries; only Linux has the kind that also reports the end of the other process."""

_STDIN = 0
START_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class ReaderCode:
    """What readers run: `module` has a function `readers`, which makes their functions from the `options`."""

    module: str
    options: Json


@dataclass(frozen=True, slots=True)
class ZygoteConfig:
    """The configuration of a zygote: the most that any worker may use, and how it must be confined.

    `workspace` is the directory that full Python sees at /workspace; `wider` names the isolations that run full Python
    and that the code's author may ask for. `group_limits` are bytes of memory, and processes and threads, for the
    zygotes of a pool and all their workers together. `cpus` are the processors that they may use together, and `group`
    names their control group. `packages` are the modules of packages that restricted code may import, each as the
    directory that it is in and its name; for full Python, those that are imported ahead besides what always is.
    `run_folders` is the directory below which each worker of full Python has a folder of its own, through which it may
    write to the workspace, and `trial_folder` the name of one for a trial. With a `reader` its workers are readers.
    """

    standing: Allowance
    isolation: Isolation
    required: Level
    workspace: str | None = None
    wider: tuple[Isolation, ...] = ()
    group_limits: tuple[int, int] | None = None
    cpus: float | None = None
    group: str | None = None
    packages: tuple[tuple[str, str], ...] = ()
    run_folders: str | None = None
    trial_folder: str = ""
    reader: ReaderCode | None = None

    def to_json(self) -> str:
        """Write it for a zygote or a container."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ZygoteConfig:
        """Read what `to_json` wrote."""
        value = json.loads(text)
        return cls(
            Allowance(**value["standing"]),
            Isolation(value["isolation"]),
            Level(value["required"]),
            value["workspace"],
            tuple(map(Isolation, value["wider"])),
            value["group_limits"] and tuple(value["group_limits"]),
            value["cpus"],
            value["group"],
            tuple((folder, name) for folder, name in value["packages"]),
            value["run_folders"],
            value["trial_folder"],
            value["reader"] and ReaderCode(**value["reader"]),
        )


def start_file(search_path: Sequence[str], config: ZygoteConfig) -> bytes:
    """Make the file that a zygote has as its standard input: where its modules are, and its configuration.

    Full Python can read its own command line. A file that is closed before any code runs does not show it.
    """
    return json.dumps([search_path, config.to_json()]).encode()


def read_start_file() -> ZygoteConfig:
    """Read the configuration, in a zygote, without moving on in the file: one that begins anew reads it again."""
    _search_path, config = json.loads(os.pread(_STDIN, START_BYTES_MAX, 0))
    return ZygoteConfig.from_json(config)


def close_start_file() -> None:
    """Put an empty standard input in the file's place."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, _STDIN)
    os.close(empty)
