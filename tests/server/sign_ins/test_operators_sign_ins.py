"""The operator's own sign-in, as servers with homes of their own share it in one PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from sealab.server.base.database import HomeDatabase
from sealab.server.governance.sign_ins.sign_ins import SignIns
from sealab.server.governance.sign_ins.signing_in import signed_in_here
from sealab.skills_db.sql import sa
from sealab.skills_db.vault_root import root_of
from sealab.tools_registry.configuration import Configuration, ServerConfig
from sealab.tools_registry.errors import ConnectFailed, SignInFailed, SignInNeeded
from sealab.tools_registry.sign_in.owners import OPERATOR
from sealab.tools_registry.upstream.upstreams import Upstreams

from ...skills_db.conftest import Place
from ..command_line import sealab_process
from ..conftest import SEALAB, environment, in_this_process, sharing
from .accounts import Accounts, browser, granted, renewed_once, token_sent

KEY = bytes(range(32))


@contextmanager
def state(url: str | None, folder: Path, key: bytes = KEY, *, is_masters: bool = False) -> Iterator[SignIns]:
    """The operator's sign-ins as one server has them, with a home of its own."""
    database = HomeDatabase(url, folder)
    try:
        yield SignIns(database, lambda: root_of(database(), key) if is_masters else key)
    finally:
        database.close()


@pytest.fixture
def two(postgres_place: Place, tmp_path: Path) -> Iterator[list[SignIns]]:
    with ExitStack() as stack:
        yield [stack.enter_context(state(postgres_place.server_url, tmp_path / each)) for each in "ab"]


async def keep(each: SignIns, server: ServerConfig) -> None:
    await each.keep(server, OPERATOR, await granted(server), principal="local")


async def token(each: SignIns, server: ServerConfig) -> str | None:
    return await token_sent(server, await asyncio.to_thread(each.signs, server, OPERATOR))


async def agree(address: str) -> None:
    async with browser("operator") as theirs:
        assert "signed in" in (await theirs.get(address)).text


async def test_a_sign_in_through_one_server_counts_on_the_other_and_ends_for_both(
    upstream: Accounts, server: ServerConfig, two: list[SignIns]
) -> None:
    assert [await token(each, server) for each in two] == [None, None]
    await signed_in_here(two[0], server, OPERATOR, agree)
    async with Upstreams(Configuration({"accounts": server}), sign_for=two[1].signs) as upstreams:
        assert (await upstreams.call("accounts", "whoami", {})).value == "operator"
        assert await two[1].sign_out(server, OPERATOR) == (True, True)
        with pytest.raises(SignInNeeded, match="Run `sealab servers test accounts` in a terminal"):
            await upstreams.call("accounts", "whoami", {})
    assert [await token(each, server) for each in two] == [None, None]
    assert len(upstream.told("revoked")) == 2
    assert await two[0].sign_out(server, OPERATOR) == (False, False)


async def test_of_all_requests_of_both_servers_and_of_all_tenants_one_renews(
    upstream: Accounts, server: ServerConfig, two: list[SignIns]
) -> None:
    upstream.set(lasts=11)
    await keep(two[0], server)
    nobody = SignIns(lambda: pytest.fail("a tenant has none of the operator's"), lambda: KEY)
    tenants = [SignIns(nobody._database, lambda: KEY, tenant=each, operators=two[1]) for each in ("acme", "beta")]
    signing = [*two, *tenants]
    await renewed_once(upstream, lambda at: token(signing[at % 4], server), 16, "operator")


async def test_a_sign_in_that_cannot_be_kept_fails_once_with_the_reason_and_is_revoked(
    upstream: Accounts, server: ServerConfig, tmp_path: Path
) -> None:
    with (
        state("postgresql://nobody@127.0.0.1:1/none", tmp_path) as away,
        pytest.raises(SignInFailed, match="cannot be kept, so it is not used"),
    ):
        await signed_in_here(away, server, OPERATOR, agree)
    assert set(upstream.told("seen")) == {""}, "what is not kept signs nothing"
    assert len(upstream.told("revoked")) == 2


async def test_each_flow_waits_for_its_own_browser_and_ends_with_no_other_answer(
    server: ServerConfig, tmp_path: Path
) -> None:
    async def tries(address: str) -> None:
        back = httpx2.URL(address).params["redirect_uri"]
        async with browser("operator") as theirs:
            for wrong in ("", "?code=x", "?code=x&state=y", "?error=access_denied", "?error=access_denied&state=ü"):
                assert (await theirs.get(f"{back}{wrong}")).status_code == 400
            assert "signed in" in (await theirs.get(address)).text

    with state(None, tmp_path) as own:
        await signed_in_here(own, server, OPERATOR, tries)
        assert await token(own, server) is not None


async def test_a_sign_in_that_was_changed_in_the_database_is_refused_and_can_be_ended(
    server: ServerConfig, two: list[SignIns], postgres_place: Place
) -> None:
    await keep(two[0], server)
    with postgres_place.open() as database, database.transaction() as session:
        session.execute(sa.text("UPDATE sealab_sign_in SET sealed = sealed || sealed"))
    with pytest.raises(SignInNeeded, match="sealab servers test accounts"):
        await token(two[1], server)
    assert await two[1].sign_out(server, OPERATOR) == (True, False)
    assert await token(two[0], server) is None


async def test_without_the_key_of_the_others_a_home_has_none_of_their_sign_ins(
    server: ServerConfig, two: list[SignIns], postgres_place: Place, tmp_path: Path
) -> None:
    await keep(two[0], server)
    with state(postgres_place.server_url, tmp_path / "c", bytes(32)) as stranger:
        assert await token(stranger, server) is None
        assert await stranger.sign_out(server, OPERATOR) == (False, False)
    assert await token(two[1], server) is not None


async def test_without_the_database_nothing_is_sent_without_the_sign_in(
    tmp_path: Path, upstream: Accounts, server: ServerConfig
) -> None:
    with state("postgresql://nobody@127.0.0.1:1/none", tmp_path) as away:
        async with Upstreams(Configuration({"accounts": server}), sign_for=away.signs) as upstreams:
            with pytest.raises(ConnectFailed, match="whether the operator is signed in"):
                await upstreams.call("accounts", "whoami", {})
    assert upstream.told("seen") == []


async def test_programs_of_another_home_and_commands_use_the_sign_in_that_one_home_had(
    postgres_place: Place, tmp_path: Path, upstream: Accounts, server: ServerConfig
) -> None:
    env = sharing(postgres_place)
    homes = [tmp_path / each for each in "ab"]
    for home in homes:
        upstream.configure(home, sign_in="operator")
    with state(postgres_place.server_url, homes[0], bytes.fromhex("ab" * 32), is_masters=True) as first:
        await keep(first, server)

    async def command(home: Path, *words: str) -> object:
        ended = await asyncio.to_thread(sealab_process, "servers", *words, "--json", "--home", str(home), **env)
        return json.loads(ended.stdout)

    tested = await command(homes[0], "test", "accounts", "--no-sign-in")
    assert isinstance(tested, dict)
    assert tested["servers"][0]["ok"], tested
    async with in_this_process(homes[1], env) as caller:
        assert (await caller.run("await tools.accounts.whoami()"))["result"] == "operator"
        ended = await command(homes[0], "sign-out", "accounts")
        assert ended == {"name": "accounts", "signed_out": True, "revoked": True}
        message = (await caller.run("await tools.accounts.whoami()"))["error"]["message"]
        assert "sealab servers test accounts" in message
    assert (await command(homes[1], "sign-out", "accounts")) == {
        "name": "accounts",
        "signed_out": False,
        "revoked": False,
    }


async def test_the_command_has_a_user_sign_in_and_keeps_that_where_the_servers_look(
    tmp_path: Path, upstream: Accounts
) -> None:
    upstream.configure(tmp_path / "a", sign_in="operator")

    async def tested(*options: str) -> dict[str, object]:
        """Run the command, and follow the address that it shows."""
        command = await asyncio.create_subprocess_exec(
            *SEALAB,
            *("servers", "test", "accounts", "--json", "--home", str(tmp_path / "a"), *options),
            env=environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert command.stdout is not None
        assert command.stderr is not None
        async for line in command.stderr:
            if line.startswith(b"http"):
                async with browser("operator") as theirs:
                    assert "signed in" in (await theirs.get(line.decode().strip())).text
        answer: dict[str, object] = json.loads(await command.stdout.read())["servers"][0]
        await command.wait()
        return answer

    assert (await tested("--no-sign-in"))["ok"] is False
    assert upstream.told("secrets") == []
    first = await tested()
    assert first["ok"], first
    assert (await tested("--no-sign-in"))["ok"], "it is kept"
    signed_out = await asyncio.to_thread(
        sealab_process, "servers", "sign-out", "accounts", "--json", "--home", str(tmp_path / "a")
    )
    assert json.loads(signed_out.stdout) == {"name": "accounts", "signed_out": True, "revoked": True}
