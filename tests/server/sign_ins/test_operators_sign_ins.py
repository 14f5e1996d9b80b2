"""The operator's own sign-in, as two servers with homes of their own share it in one PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest

from sealab.server.database import HomeDatabase
from sealab.server.home import Home
from sealab.server.sign_ins.operators_sign_ins import OperatorsSignIns, operators_sign_ins
from sealab.server.sign_ins.sign_ins import SignIns
from sealab.skills_db.sign_ins.sign_in_store import sign_ins_of
from sealab.skills_db.sql import sa
from sealab.tools_registry.configuration import Configuration, ServerConfig, Transport
from sealab.tools_registry.errors import ConnectFailed, SignInNeeded
from sealab.tools_registry.sign_in.browsers import kept_sign_in, signing_in
from sealab.tools_registry.sign_in.sign_in_storage import GivenSignIn
from sealab.tools_registry.sign_in.token_endpoint import Granted
from sealab.tools_registry.upstream.upstreams import SIGN_INS, Upstreams

from ...skills_db.conftest import Place
from ..command_line import sealab_process
from ..conftest import SEALAB, environment, in_this_process, sharing
from .accounts import Accounts, browser, granted, in_file, renewed_once, token_sent

KEY = bytes(range(32))


@contextmanager
def state(url: str | None, folder: Path, key: bytes = KEY) -> Iterator[OperatorsSignIns]:
    """The operator's sign-ins as one server has them, with a home of its own."""
    home = Home(folder)
    database = HomeDatabase(url, home.root)
    try:
        found = operators_sign_ins(SignIns(database, lambda: key), home, database)
        assert found is not None
        yield found
    finally:
        database.close()


@pytest.fixture
def two(postgres_place: Place, tmp_path: Path) -> Iterator[list[OperatorsSignIns]]:
    with ExitStack() as stack:
        yield [stack.enter_context(state(postgres_place.server_url, tmp_path / each)) for each in "ab"]


async def token(each: OperatorsSignIns, server: ServerConfig) -> str | None:
    return await token_sent(server, await asyncio.to_thread(each.signs, server))


def test_with_a_file_as_database_nothing_is_shared(tmp_path: Path) -> None:
    for url in (None, f"sqlite:///{tmp_path}/x.db"):
        database = HomeDatabase(url, tmp_path)
        assert operators_sign_ins(SignIns(database, lambda: KEY), Home(tmp_path), database) is None


async def test_a_sign_in_through_one_server_counts_on_the_other_and_ends_for_both(
    upstream: Accounts, server: ServerConfig, two: list[OperatorsSignIns], tmp_path: Path
) -> None:
    assert [await token(each, server) for each in two] == [None, None]

    async def agree(address: str) -> None:
        async with browser("operator") as theirs:
            assert "signed in" in (await theirs.get(address)).text

    async def keep(given: Granted) -> None:
        await two[0].keep(server, given)

    async with (
        signing_in(server, GivenSignIn(server, keep), agree, 60) as auth,
        Upstreams(Configuration({"accounts": server}), sign_in=lambda _: auth) as upstreams,
    ):
        assert (await upstreams.call("accounts", "whoami", {})).value == "operator"
    async with Upstreams(Configuration({"accounts": server}), sign_in=two[1].signs) as upstreams:
        assert (await upstreams.call("accounts", "whoami", {})).value == "operator"
        assert await two[1].sign_out(server) == (True, True)
        with pytest.raises(SignInNeeded, match="Run `sealab servers test accounts` in a terminal"):
            await upstreams.call("accounts", "whoami", {})
    assert [await token(each, server) for each in two] == [None, None]
    assert len(upstream.told("revoked")) == 2
    assert not (tmp_path / "a" / "registry" / SIGN_INS / "accounts.json").exists()
    assert await two[0].sign_out(server) == (False, False)


async def test_of_all_requests_of_both_servers_one_renews(
    upstream: Accounts, server: ServerConfig, two: list[OperatorsSignIns]
) -> None:
    upstream.set(lasts=11)
    await two[0].keep(server, await granted(server))
    await renewed_once(upstream, lambda at: token(two[at % 2], server), 8, "operator")


async def test_what_a_home_had_in_its_file_is_taken_over_once_and_counts_for_all(
    upstream: Accounts, server: ServerConfig, two: list[OperatorsSignIns], postgres_place: Place, tmp_path: Path
) -> None:
    first, second = await granted(server), await granted(server, "another")
    files = [
        in_file(tmp_path / "a" / "registry" / SIGN_INS, first),
        in_file(tmp_path / "b" / "registry" / SIGN_INS, second),
    ]
    other = ServerConfig("accounts", Transport.HTTP, url=f"{upstream.address}/other")
    assert await token(two[0], other) is None
    assert files[0].exists(), "what is another address's is not touched"
    assert await asyncio.gather(*(token(two[0], server) for _ in range(4))) == [first.tokens.access_token] * 4
    assert await token(two[1], server) == first.tokens.access_token, "the database has one already"
    assert [each.exists() for each in files] == [False, False]
    with postgres_place.open() as database:
        assert sign_ins_of(database) == 1
    url = postgres_place.server_url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        stored = connection.execute("SELECT sealed FROM sealab_sign_in").fetchone()
    assert stored is not None
    assert not [each for each in upstream.told("secrets") if each.encode() in bytes(stored[0])]


async def test_a_program_that_read_the_file_before_renews_nothing_that_was_taken_over(
    upstream: Accounts, server: ServerConfig, two: list[OperatorsSignIns], tmp_path: Path
) -> None:
    upstream.set(lasts=11)
    file = in_file(tmp_path / "a" / "registry" / SIGN_INS, await granted(server))
    by_file = kept_sign_in(server, file.parent)
    upstream.set(lasts=3600)
    assert await token(two[0], server) is not None
    seen = upstream.told("seen")
    with pytest.raises(SignInNeeded, match="sealab servers test accounts"):
        async with httpx2.AsyncClient(auth=by_file) as client:
            await client.post(server.url)
    assert upstream.told("reused") == []
    assert upstream.told("seen") == seen


async def test_a_file_that_was_never_used_is_signed_out_of_too(
    upstream: Accounts, server: ServerConfig, two: list[OperatorsSignIns], tmp_path: Path
) -> None:
    file = in_file(tmp_path / "b" / "registry" / SIGN_INS, await granted(server))
    assert await two[1].sign_out(server) == (True, True)
    assert not file.exists()
    assert len(upstream.told("revoked")) == 2


async def test_a_sign_in_that_cannot_be_kept_fails_once_with_the_reason_and_is_revoked(
    upstream: Accounts, server: ServerConfig, tmp_path: Path
) -> None:
    shown: list[str] = []

    async def agree(address: str) -> None:
        shown.append(address)
        async with browser("operator") as theirs:
            await theirs.get(address)

    with state("postgresql://nobody@127.0.0.1:1/none", tmp_path) as away:

        async def keep(given: Granted) -> None:
            await away.keep(server, given)

        async with (
            signing_in(server, GivenSignIn(server, keep), agree, 60) as auth,
            Upstreams(Configuration({"accounts": server}), sign_in=lambda _: auth) as upstreams,
        ):
            for _ in range(2):
                with pytest.raises(ConnectFailed) as raised:
                    await upstreams.call("accounts", "whoami", {})
                assert "cannot be kept, so it is not used" in raised.value.for_operator
    assert len(shown) == 1
    assert set(upstream.told("seen")) == {""}, "what is not kept signs nothing"
    assert len(upstream.told("revoked")) == 2


async def test_each_flow_of_one_connection_waits_for_its_own_browser_and_ends_with_no_other_answer(
    upstream: Accounts, server: ServerConfig, tmp_path: Path
) -> None:
    names = iter(["operator", "another"])

    async def agree(address: str) -> None:
        back = httpx2.URL(address).params["redirect_uri"]
        async with browser(next(names)) as theirs:
            for wrong in ("", "?code=x", "?code=x&state=y", "?error=access_denied", "?error=access_denied&state=ü"):
                assert (await theirs.get(f"{back}{wrong}")).status_code == 400
            assert "signed in" in (await theirs.get(address)).text

    async with (
        signing_in(server, tmp_path, agree, 60) as auth,
        Upstreams(Configuration({"accounts": server}), sign_in=lambda _: auth) as upstreams,
    ):
        assert (await upstreams.call("accounts", "whoami", {})).value == "operator"
        upstream.set(end_access=True)
        assert (await upstreams.call("accounts", "whoami", {})).value == "another"


async def test_a_sign_in_that_was_changed_in_the_database_is_refused_and_can_be_ended(
    server: ServerConfig, two: list[OperatorsSignIns], postgres_place: Place
) -> None:
    await two[0].keep(server, await granted(server))
    with postgres_place.open() as database, database.transaction() as session:
        session.execute(sa.text("UPDATE sealab_sign_in SET sealed = sealed || sealed"))
    with pytest.raises(SignInNeeded, match="sealab servers test accounts"):
        await token(two[1], server)
    assert await two[1].sign_out(server) == (True, False)
    assert await token(two[0], server) is None


async def test_a_file_replaces_a_sign_in_to_a_former_url_of_the_server(
    upstream: Accounts, server: ServerConfig, two: list[OperatorsSignIns], tmp_path: Path
) -> None:
    given = await granted(server)
    former = ServerConfig("accounts", Transport.HTTP, url=f"{upstream.address}/former")
    await two[0].keep(former, given.model_copy(update={"url": former.url}))
    file = in_file(tmp_path / "b" / "registry" / SIGN_INS, given)
    assert await token(two[0], server) is None, "it is not sent to another address"
    assert await token(two[1], server) == given.tokens.access_token
    assert not file.exists()
    assert await token(two[0], server) == given.tokens.access_token


async def test_without_the_key_of_the_others_a_home_has_none_of_their_sign_ins(
    server: ServerConfig, two: list[OperatorsSignIns], postgres_place: Place, tmp_path: Path
) -> None:
    await two[0].keep(server, await granted(server))
    with state(postgres_place.server_url, tmp_path / "c", bytes(32)) as stranger:
        assert await token(stranger, server) is None
        assert await stranger.sign_out(server) == (False, False)
    assert await token(two[1], server) is not None


async def test_without_the_database_nothing_is_sent_without_the_sign_in(
    tmp_path: Path, upstream: Accounts, server: ServerConfig
) -> None:
    with state("postgresql://nobody@127.0.0.1:1/none", tmp_path) as away:
        async with Upstreams(Configuration({"accounts": server}), sign_in=away.signs) as upstreams:
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
    in_file(homes[0] / "registry" / SIGN_INS, await granted(server))

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


@pytest.mark.parametrize("is_shared", [True, False])
async def test_the_command_has_a_user_sign_in_and_keeps_that_where_the_servers_look(
    postgres_place: Place, tmp_path: Path, upstream: Accounts, is_shared: bool
) -> None:
    env = sharing(postgres_place) if is_shared else {}
    upstream.configure(tmp_path / "a", sign_in="operator")

    async def tested(*options: str) -> dict[str, object]:
        """Run the command, and follow the address that it shows."""
        command = await asyncio.create_subprocess_exec(
            *SEALAB,
            *("servers", "test", "accounts", "--json", "--home", str(tmp_path / "a"), *options),
            env=environment(**env),
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
    file = tmp_path / "a" / "registry" / SIGN_INS / "accounts.json"
    assert file.exists() is not is_shared
