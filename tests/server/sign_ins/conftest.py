"""One upstream server with accounts for all tests of this folder, which tells each of them of itself alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sealab.tools_registry.configuration import ServerConfig, Transport

from .accounts import Accounts, accounts


@pytest.fixture(scope="session")
def accounts_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    with accounts(tmp_path_factory.mktemp("accounts")) as running:
        yield running


@pytest.fixture
def upstream(accounts_server: Accounts) -> Accounts:
    accounts_server.set(anew=True)
    return accounts_server


@pytest.fixture
def server(upstream: Accounts) -> ServerConfig:
    """How a registry calls it."""
    return ServerConfig("accounts", Transport.HTTP, url=f"{upstream.address}/mcp")
