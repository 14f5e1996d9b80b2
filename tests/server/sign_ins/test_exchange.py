"""Under `AUTH=oauth` the token of a caller goes to the token endpoint that the operator named, and nowhere else."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ...identity_provider.running import identity_provider, needs_identity_provider
from ..conftest import http_process
from .accounts import Accounts, calling

pytestmark = [needs_identity_provider, pytest.mark.timeout(300)]
CODE = "[await tools.accounts.whoami() for _ in range(2)]"


async def test_a_token_of_a_real_issuer_is_exchanged_and_seen_by_no_server_file_or_log(
    tmp_path: Path, upstream: Accounts
) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    resource = f"http://127.0.0.1:{port}/mcp"
    with identity_provider() as issuer:
        exchange = {"token_endpoint": f"{upstream.address}/token", "audience": "accounts", "client_id": "sealab"}
        upstream.configure(home, token_exchange=exchange)
        token = issuer.token(resource=resource, scope="run tools:read tools:write")
        settings = {
            "SEALAB_AUTH": "oauth",
            "SEALAB_OAUTH_ISSUER": issuer.issuer,
            "SEALAB_OAUTH_AUDIENCE": resource,
            "SEALAB_LOG_LEVEL": "debug",
        }
        with http_process(home, "--http", f"127.0.0.1:{port}", **settings) as server:
            async with calling(server.url, token) as caller:
                report = await caller.run(CODE)
            server.process.terminate()
            assert server.process.stderr is not None
            log = server.process.stderr.read()
        assert report["result"] == ["exchanged for signed"] * 2, report
        assert upstream.told("subjects") == [token]  # once for both calls
        exchanged = [each for each in upstream.told("secrets") if each.startswith("access-")]
        assert set(upstream.told("seen")) - {""} == {f"Bearer {exchanged[0]}"}  # the list is asked for without one
    signature = token.rpartition(".")[2]
    kept = b"".join(each.read_bytes() for each in sorted(home.rglob("*")) if each.is_file())
    for secret in (token, signature, exchanged[0]):
        assert secret not in str(report)
        assert secret not in log
        assert secret.encode() not in kept
