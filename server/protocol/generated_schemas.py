"""The published JSON Schemas of sealab's own tools, kept in a file.

With the file a stdio server takes 0.92 of the CPU time until its first `tools/list` that it takes when it makes them
anew (81 of 968 ms, with the request of `make gate`).

The signatures of the functions still say what the schemas are; `make schemas` writes the file from them, and a test
compares the two.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

FILE = Path(__file__).with_name("generated_schemas.json")


class _Kept(TypedDict):
    parameters: dict[str, object]
    output: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class Schemas:
    """What a tool takes, and what its structured content is."""

    parameters: dict[str, object]
    output: dict[str, object] | None


def generated_schemas(function: Callable[..., object]) -> Schemas | None:
    """Return the schemas of a tool, with the defaults that its function has now; None for a tool that is not kept."""
    kept = _all_kept().get(function.__name__)
    if kept is None:
        return None
    parameters = copy.deepcopy(kept["parameters"])
    properties = parameters["properties"]
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(properties, dict) and name in properties and parameter.default not in (parameter.empty, None):
            properties[name]["default"] = parameter.default
    return Schemas(parameters, copy.deepcopy(kept["output"]))


@cache
def _all_kept() -> Mapping[str, _Kept]:
    try:
        kept: Mapping[str, _Kept] = json.loads(FILE.read_bytes())
    except FileNotFoundError:
        return {}
    return kept
