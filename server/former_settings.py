"""What the settings of earlier systems are called here: those of the bridge, and a `sandbox` block of theirs.

They are not read. Where one is still set, the start names the setting that has taken its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

BRIDGE = "MCP_BRIDGE_"
_MEGABYTES = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "": 1 / 1024**2}
_MEMORY = re.compile(r"(\d{1,9})\s*([kmg]?)i?b?", re.IGNORECASE)
_VALUE_CHARS_MAX = 80

_OF_VARIABLES = {
    "RUNTIME": "runtime",
    "IMAGE": "image",
    "TIMEOUT": "timeout",
    "MAX_TIMEOUT": "max_timeout",
    "MEMORY": "memory_limit",
    "PIDS": "pids_limit",
    "CPUS": "cpu_limit",
    "CONTAINER_USER": "container_user",
    "RUNTIME_IDLE_TIMEOUT": "idle",
    "STATE_DIR": "state_dir",
    "OUTPUT_MODE": "output_mode",
    "LOG_LEVEL": "log_level",
    "ALLOW_SELF_SERVER": "allow_self",
}
_SETTINGS = {
    "timeout": "TIMEOUT_SECONDS",
    "max_timeout": "MAX_TIMEOUT_SECONDS",
    "memory_limit": "MEMORY_MB",
    "pids_limit": "PIDS_MAX",
    "cpu_limit": "CPUS",
    "runtime": "CONTAINER_RUNTIME",
    "output_mode": "OUTPUT_FORMAT",
    "log_level": "LOG_LEVEL",
}
_IN_WORDS = {
    "enabled": "Code always runs in a sandbox; isolation chooses which.",
    "image": "`sealab container build` makes the image; CONTAINER_IMAGE names another.",
    "container_user": "Containers always run as 65534:65534.",
    "idle": 'Write "idle_seconds" into the entry of a server in mcp.json.',
    "state_dir": "All state is below the home: --home or SEALAB_HOME.",
    "allow_self": 'Write "allow_self": true into the entry of that server in mcp.json.',
}


def of_bridge(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for each variable of the bridge that is set: what takes its place."""
    told = []
    for name, value in sorted(environment.items()):
        if name.startswith(BRIDGE):
            key = _OF_VARIABLES.get(name.removeprefix(BRIDGE), "")
            told.append(f"{name} is not read. {_successor(key, value, 'SEALAB_')}")
    return told


def of_sandbox(block: Mapping[str, object], where: Path) -> list[str]:
    """Return a sentence for each key of a `sandbox` block: what to write into sealab.toml in its place."""
    return [
        f"{key!r} of the sandbox in {where} is not read. {_successor(key, value, '')}" for key, value in block.items()
    ]


def _successor(key: str, value: object, prefix: str) -> str:
    if key in _IN_WORDS:
        return _IN_WORDS[key]
    if key == "runtime" and value == "auto":
        return "sealab finds the runtime."
    setting = _SETTINGS.get(key)
    if setting is None:
        return "Nothing here is like it. Remove it."
    text = " ".join(str(value).split()) if isinstance(value, str | int | float) else "…"
    return f"Set {prefix}{setting}={_translated(key, text[:_VALUE_CHARS_MAX])} instead."


def _translated(key: str, value: str) -> str:
    memory = _MEMORY.fullmatch(value.strip())
    if key == "memory_limit" and memory is not None:
        return f"{max(1, round(int(memory[1]) * _MEGABYTES[memory[2].lower()]))}"
    if key in {"timeout", "max_timeout"}:
        return value.strip().removesuffix("s")
    if key == "output_mode":
        return "toon" if value.strip().lower() == "toon" else "auto"
    return value
