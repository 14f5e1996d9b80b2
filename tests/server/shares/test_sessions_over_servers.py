"""Sessions are bounded over all servers on one PostgreSQL database."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from ...skills_db.conftest import Place
from ..conftest import in_this_process


async def test_sessions_of_a_tenant_are_counted_over_two_servers_and_freed_when_they_end(
    postgres_place: Place, tmp_path: Path
) -> None:
    assert postgres_place.url is not None
    env = {
        "SEALAB_DATABASE_URL": postgres_place.url,
        "SEALAB_WORKERS_SPARE": "1",
        "SEALAB_VAULT_KEY": "ab" * 32,
        "SEALAB_TENANT_SESSIONS_MAX": "2",
    }
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(in_this_process(tmp_path / name, env)) for name in ("first", "second")
        ]
        for name in ("a", "b"):
            assert (await first.run("n = 1", session=name))["status"] == "ok"
        refused = await second.call("execute_code", code="n = 1", session="c")
        assert "2 sessions are alive on all servers together" in str(refused)
        assert "TENANT_SESSIONS_MAX" in str(refused)
        assert (await first.run("n + 1", session="a"))["result"] == 2, "what was there goes on"
        assert (await first.run("n = 3", session="d"))["status"] == "ok", "an idle one of its own ends for it"
        for name in ("a", "b", "d"):
            await first.run(f"close_session({name!r})")
        assert (await second.run("n = 5", session="c"))["status"] == "ok"
