"""Guest modules of a test's own, in place of those that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from textwrap import dedent

import pytest

from sealab.sandbox.dialect import green_threads, guest_modules
from sealab.sandbox.dialect.guest_modules import ModuleText
from sealab.sandbox.guest.guest import GUEST

Install = Callable[[Mapping[str, str]], None]


def texts_of(files: Mapping[str, str]) -> dict[str, ModuleText]:
    """Make modules of files: `{"pkg/__init__.py": source}`."""
    found = {}
    for place, text in files.items():
        name = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        found[name] = ModuleText(name, place, dedent(text), place.endswith("/__init__.py"))
    return found


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    for table in ("_packages", "_compiled"):
        monkeypatch.setattr(guest_modules, table, {})
    guest_modules.forget()
    before = dict(GUEST.sources)
    yield lambda files: guest_modules.add(texts_of(files))
    guest_modules.forget()
    GUEST.sources.clear()
    GUEST.sources.update(before)


@pytest.fixture
def modules_are_run_anew() -> Iterator[None]:
    yield
    guest_modules.forget()
    green_threads.forget()
