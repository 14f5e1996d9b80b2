"""What every test can ask for, and what holds for all of them."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from sealab.sandbox.dialect import guest_modules

from .costs import pytest_addoption, pytest_configure
from .skips import pytest_terminal_summary

__all__ = ["pytest_addoption", "pytest_configure", "pytest_terminal_summary"]

# Machines that run tests are shared and noisy, so no test fails for being slow; a run in CI repeats the last one.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("shared"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "shared")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def shared_certificates() -> Iterator[None]:
    """Share one trust context among the HTTP clients of this process: each read all certificates, which takes 25 ms."""
    import httpcore2

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True)
def state_of_the_process() -> Iterator[None]:
    """Take back what a server or code that runs in the tests' process leaves there, which else the next test meets."""
    handlers = logging.getLogger().handlers
    before = [(handler, list(handler.filters)) for handler in handlers]
    yield
    guest_modules.forget()
    for handler, filters in before:
        handler.filters[:] = filters


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep hostile tests off machines that could be hurt: `make adversarial WRAPPER=…` gives them a throw-away one."""
    if os.environ.get("SEALAB_DISPOSABLE") == "1":
        return
    hostile = [item for item in items if item.get_closest_marker("adversarial")]
    config.hook.pytest_deselected(items=hostile)
    items[:] = [item for item in items if not item.get_closest_marker("adversarial")]
