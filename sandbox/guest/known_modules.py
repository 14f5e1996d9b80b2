"""What code can import and how its functions are read, for `report` and `guest_api`, which do not import the dialect.

`sealab.sandbox.dialect.facades.module_lookups` and `sealab.sandbox.guest_api.host_modules` provide it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from inspect import Signature


def _not_provided(*_arguments: object) -> object:
    raise RuntimeError("The dialect was not imported.")


@dataclass(slots=True)
class KnownModules:
    """Functions that others provide, each set once.

    `importable` gives the modules of the dialect, `public_names` the names of one of them, and `defines` says whether
    one has a name. `described` gives the name and the variables of a module that stands as an object, None for others.
    `signature` and `type_hints` read a function under the rules of the dialect; the latter takes the variables in which
    hints that are texts are evaluated. `host_module` gives a module that is made of helpers, None for others, and
    `host_names` the names that it lists.
    """

    importable: Callable[[], frozenset[str]] = _not_provided  # type: ignore[assignment]  # it raises
    public_names: Callable[[str], Collection[str]] = _not_provided  # type: ignore[assignment]  # it raises
    defines: Callable[[str, str], bool] = _not_provided  # type: ignore[assignment]  # it raises
    described: Callable[[object], tuple[str, Iterable[str]] | None] = _not_provided  # type: ignore[assignment]  # it raises
    signature: Callable[[Callable[..., object]], Signature] = _not_provided  # type: ignore[assignment]  # it raises
    type_hints: Callable[[Callable[..., object], object], Mapping[str, object]] = _not_provided  # type: ignore[assignment]  # it raises
    host_module: Callable[[str], object | None] = _not_provided
    host_names: Callable[[str], Collection[str]] = _not_provided  # type: ignore[assignment]  # it raises


KNOWN_MODULES = KnownModules()
