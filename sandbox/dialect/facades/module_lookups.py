"""What `report` and `guest_api` ask of the dialect's modules: see `sealab.sandbox.guest.known_modules`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import cast

from ...guest.known_modules import KNOWN_MODULES
from .. import facades, guest_modules
from .module_object import GuestModule, module_name, variable_names


def _importable() -> frozenset[str]:
    return frozenset((*facades.exports(), *guest_modules.names()))


def _public_names(module: str) -> Collection[str]:
    return facades.exports().get(module, ())


def _defines(module: str, name: str) -> bool:
    return name in _public_names(module) or guest_modules.defines(module, name)


def _described(value: object) -> tuple[str, Iterable[str]] | None:
    return (module_name(value), variable_names(value)) if type(value) is GuestModule else None


def _signature(function: Callable[..., object]) -> inspect.Signature:
    return cast("inspect.Signature", getattr(facades.find("inspect"), "signature")(function))  # noqa: B009 - a facade has no static names


def _type_hints(function: Callable[..., object], scope: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", getattr(facades.find("typing"), "get_type_hints")(function, globalns=scope))  # noqa: B009 - as above


def provide() -> None:
    """Let them ask; done when the dialect is imported, and by a worker of full Python, for its hints."""
    KNOWN_MODULES.importable = _importable
    KNOWN_MODULES.public_names = _public_names
    KNOWN_MODULES.defines = _defines
    KNOWN_MODULES.described = _described
    KNOWN_MODULES.signature = _signature
    KNOWN_MODULES.type_hints = _type_hints
