"""Finds the pure-Python packages that the operator installed for restricted code: PACKAGES names distributions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import PurePosixPath

from ..errors import SettingsError
from .package_names import misnamed

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_NO_MODULES = frozenset({"__pycache__", "bin", "share", "tests", "test"})


def find_packages(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the modules of distributions, each as the directory that it is in and its name.

    Raises `SettingsError` for one that is not installed, that has no Python source, whose dependencies are not listed
    too, or that has a module of a name that the standard library has.
    """
    listed = {_normal(name) for name in names}
    found: dict[str, str] = {}
    for name in names:
        package = installed(name)
        for needed in _needed_by(package):
            if _normal(needed) not in listed:
                raise SettingsError(
                    f"PACKAGES names {name}, which needs {needed}. Add {needed} to PACKAGES, or leave {name} out."
                )
        for module in modules_of(package):
            found[module] = str(package.locate_file(""))
    return tuple((folder, module) for module, folder in found.items())


def installed(name: str) -> Distribution:
    """Return an installed distribution. Raises `SettingsError`."""
    if not _NAME.fullmatch(name):
        raise SettingsError(f"PACKAGES names {name[:100]!r}. Give names of distributions, such as more-itertools.")
    try:
        return distribution(name)
    except PackageNotFoundError:
        if meant := misnamed(name):
            raise SettingsError(f"PACKAGES names {name}, which is a module of {meant}. Write {meant}.") from None
        raise SettingsError(
            f"PACKAGES names {name}, which is not installed. If that is its name, install it for {sys.executable}."
        ) from None


def modules_of(package: Distribution) -> list[str]:
    """Return the names of the top-level modules that a distribution has as Python source. Raises `SettingsError`."""
    name = package.metadata["Name"]
    paths = [PurePosixPath(str(file)) for file in package.files or ()]
    tops = {path.parts[0].removesuffix(".py") for path in paths if path.suffix == ".py"}
    modules = sorted(top for top in tops if top.isidentifier() and top not in _NO_MODULES)
    if not modules:
        raise SettingsError(
            f"PACKAGES names {name}, which has no modules written in Python. Leave it out; code with isolation "
            "'process' or 'container' can use such a package."
        )
    for module in modules:
        if module in sys.stdlib_module_names or module == "sealab":
            raise SettingsError(
                f"PACKAGES names {name}, whose module {module!r} has a name that is taken. Leave it out."
            )
    return modules


def _needed_by(package: Distribution) -> Iterator[str]:
    """Yield what a distribution needs in any case: what only some version, system or extra needs may be missing."""
    for line in package.requires or ():
        requirement, _, marker = line.partition(";")
        needed = _NAME.match(requirement.strip())
        if needed is not None and not marker.strip():
            yield needed.group()


def _normal(name: str) -> str:
    """Spell the name of a distribution as all its spellings are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
