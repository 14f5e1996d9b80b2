"""Tenants are opened at their first use, kept while they are used, and closed; a deleted one is served no more."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import zipfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from sealab.sandbox.job import Json
from sealab.server import app as of_app
from sealab.server.app import App, running
from sealab.server.base.database import database_of
from sealab.server.base.errors import RequestRefused, RightMissing, TenantRefused, TenantsBusy
from sealab.server.base.home import Home
from sealab.server.base.identity import Identity, Right
from sealab.server.base.settings import Settings
from sealab.server.governance.access.names import DEFAULT_RIGHTS
from sealab.server.governance.caller import Caller
from sealab.server.governance.scopes import of_principal
from sealab.server.interfaces.tenants import Tenants
from sealab.server.use_cases.runs.execute import execute
from sealab.server.use_cases.runs.request import CodeRequest
from sealab.server.use_cases.skills import use_cases as skills
from sealab.server.use_cases.tenants.contents import files_of, operators_database
from sealab.server.use_cases.tenants.deleting import delete_tenant
from sealab.server.use_cases.tenants.locks import TenantLock
from sealab.skills_db.errors import DatabaseUnavailable, SkillNotFound
from sealab.skills_db.tenants.schemas import schema_of
from sealab.skills_db.tenants.tenant_store import TenantStatus, TenantStore
from sealab.skills_db.vault_keys import tenants_key
from sealab.tools_registry.models import Tool
from sealab.tools_registry.upstream.pins import StandingApproval

from ...skills_db.conftest import Place
from ...waiting import until, wait_until
from ..conftest import settings_of
from .team import Member, command, team_server, token, told


@dataclass
class Plain:
    """What requests use of a tenant in these tests."""

    app: App
    holds_connections: bool = False


@asynccontextmanager
async def plain(app: App) -> AsyncIterator[Plain]:
    yield Plain(app)


@asynccontextmanager
async def opened(home: Path, *, most: int = 5, **settings: Any) -> AsyncIterator[Tenants[Plain]]:
    read = settings_of(home, {"SEALAB_PRIVACY_MODE": "fast", **settings})
    async with running(read, Home(home), serves=True) as app, Tenants(app, plain, open_max=most) as tenants:
        yield tenants


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tenants[Plain]]:
    """Tenants of one server, which are others in each test."""
    async with opened(tmp_path_factory.mktemp("home"), most=50) as tenants:  # a session keeps one from being closed
        yield tenants


@asynccontextmanager
async def two_of(tenants: Tenants[Plain]) -> AsyncIterator[tuple[tuple[str, App], tuple[str, App]]]:
    """Give two tenants that no other test uses, by name."""
    number = next(_NUMBERS)
    first, second = f"a-{number}", f"b-{number}"
    async with tenants.using(first) as one, tenants.using(second) as other:
        yield (first, one.app), (second, other.app)


_NUMBERS = itertools.count()


def alice(tenant: str, *rights: Right) -> Caller:
    return Caller("principal alice", identity=Identity(tenant, "alice", frozenset(rights) or DEFAULT_RIGHTS))


async def result_of(app: App, code: str, tenant: str, **more: Any) -> Json:
    execution = await execute(app.executor, CodeRequest(code, caller=alice(tenant), **more))
    assert execution.report["status"] == "ok", execution.report["error"]
    return execution.report["result"]


async def test_callers_of_one_name_in_two_tenants_have_nothing_in_common(shared: Tenants[Plain]) -> None:
    async with two_of(shared) as ((a, of_a), (b, of_b)):
        await result_of(of_a, "x = 1\nwrite_file('f', 'of a')", a, session="s")
        assert await result_of(of_b, "'x' in globals(), list_files(), list_sessions()", b) == [False, [], []]
        assert await result_of(shared.own.app, "list_files(), list_sessions()", "default") == [[], []]
        assert await result_of(of_b, "x = 2\nx", b, session="s") == 2
        assert await result_of(of_a, "x", a, session="s") == 1
        assert [each.name for _, each in of_a.pools.sessions_of("principal alice")] == ["s"]
        for principal in (f"{a}/alice", f"{a}\0alice", "\0alice", a):
            caller = Caller(f"principal {principal}", identity=Identity("default", principal, DEFAULT_RIGHTS))
            try:
                ran = await execute(shared.own.app.executor, CodeRequest("x", session="s", caller=caller))
            except RequestRefused:
                assert "\0" in principal
            else:
                assert ran.report["status"] == "error"


async def test_a_token_means_the_same_to_all_principals_of_a_tenant_and_nothing_in_another(
    shared: Tenants[Plain],
) -> None:
    async with two_of(shared) as ((a, of_a), (_b, of_b)):
        text = "mail quetzal.feather@zanzibar-example.org"
        hidden = await of_a.privacy.hide_text("principal alice", text)
        assert "@" not in hidden
        assert (await of_a.privacy.restored_for_model(Caller(scope="principal bob"), hidden)).content == text
        for app, scope in ((of_b, "principal alice"), (of_b, "home"), (shared.own.app, "principal alice")):
            assert (await app.privacy.restored_for_model(Caller(scope=scope), hidden)).content == hidden
            assert await app.privacy.hide_text(scope, text) != hidden
        keys = {each.privacy.key() for each in (of_a, of_b, shared.own.app)}
        assert len(keys) == 3
        assert of_a.privacy.key() == tenants_key(shared.own.app.privacy.key(), a)


async def test_values_come_in_place_of_tokens_in_code_and_in_files_with_the_scope_alone(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", SEALAB_PRIVACY="auto") as tenants, tenants.using("a") as a:
        email = "quetzal.feather@zanzibar-example.org"
        hidden = await a.app.privacy.hide_text("principal alice", email)
        assert hidden.startswith("[EMAIL")
        for is_limited in (True, False):
            may = alice("a", *(DEFAULT_RIGHTS - ({Right.PRIVACY_RESTORE} if is_limited else set())))
            for code, variables in (
                (f"[ord(each) for each in {hidden!r}]", {}),
                ("[ord(each) for each in given]", {"given": hidden}),
            ):
                ran = await execute(a.app.executor, CodeRequest(code, variables, caller=may))
                assert "".join(map(chr, cast("list[int]", ran.report["result"]))) == (hidden if is_limited else email)
            ran = await execute(a.app.executor, CodeRequest(f"write_file('f', {hidden!r})", caller=may))
            file = a.app.home.workspace / "f"
            if is_limited:
                assert "lacks the scope privacy:restore" in str(ran.report["error"])
                assert not file.exists()
            else:
                assert file.read_text() == email


async def test_the_shelf_is_read_by_all_tenants_and_changed_by_right_alone(shared: Tenants[Plain]) -> None:
    async with two_of(shared) as ((a, of_a), _other):
        operators = shared.own.app.skills
        for name, tags, answer in (("common", ["Shared"], 1), ("private", [], 2)):
            code = f"def {name}() -> int:\n    return {answer}"
            await skills.save(operators, skills.SaveRequest(name, code, tags=tags))
        own = of_a.skills
        assert [each["name"] for each in (await skills.listed(own, None, None, 9))["skills"]] == ["common"]
        assert [each["name"] for each in (await skills.listed(own, "common", None, 9))["skills"]] == ["common"]
        assert await result_of(of_a, "skills.common()", a) == 1
        with pytest.raises(Exception, match="There is no skill 'private'"):
            await skills.load(own, "private", None)
        with pytest.raises(Exception, match="There is no skill"):
            await skills.delete(own, "common", caller=alice(a, *Right))
        writer = alice("default", Right.SKILLS_WRITE)
        for change in (
            skills.save(operators, skills.SaveRequest("new", "1", tags=["shared"], caller=writer)),
            skills.save(operators, skills.SaveRequest("common", "1", caller=writer)),
            skills.delete(operators, "common", caller=writer),
        ):
            with pytest.raises(RightMissing):
                await change
        await skills.save(own, skills.SaveRequest("common", "def common() -> int:\n    return 3", caller=alice(a)))
        assert await result_of(of_a, "skills.common()", a) == 3
        assert (await skills.load(operators, "common", None))["code"].endswith("return 1")


async def test_of_a_skill_on_the_shelf_no_version_is_read_that_was_not_published(shared: Tenants[Plain]) -> None:
    async with two_of(shared) as ((a, of_a), _other):
        operators, own = shared.own.app.skills, of_a.skills
        for answer, tags in ((1, []), (2, ["shared"]), (3, ["Shared"])):
            code = f"def newer() -> int:\n    return {answer}"
            await skills.save(operators, skills.SaveRequest("newer", code, tags=tags))
        for version in (None, 3, 2):
            assert (await skills.load(own, "newer", version))["code"][-1] == str(version or 3)
        with pytest.raises(SkillNotFound, match="no version 1 that is published"):
            await skills.load(own, "newer", 1)
        assert await result_of(of_a, "skills.newer()", a) == 3
        await skills.save(operators, skills.SaveRequest("newer", "def newer() -> int:\n    return 4"))
        with pytest.raises(SkillNotFound):
            await skills.load(own, "newer", 3)


async def test_the_tests_of_a_skill_run_at_no_isolation_that_the_caller_has_no_scope_for(tmp_path: Path) -> None:
    env = {"SEALAB_ALLOWED_ISOLATION": "process"}
    async with opened(tmp_path / "home", **env) as tenants:
        app = tenants.own.app
        request = skills.SaveRequest("one", "def one() -> int:\n    return 1", tests="one()")
        limited = alice("default", Right.RUN, Right.SKILLS_WRITE)
        with pytest.raises(RightMissing, match="run:process"):
            await skills.save(app.skills, replace(request, caller=limited))
        wider = alice("default", *limited.identity.rights, Right.RUN_PROCESS, Right.FILES, Right.SKILLS_READ)
        assert (await skills.save(app.skills, replace(request, caller=wider)))["version"] == 1


async def test_the_idlest_tenant_is_closed_for_another_unless_something_is_at_work_in_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "home", most=2) as tenants:
        first = await tenants.app_of("a")
        async with tenants.using("b"):
            await tenants.app_of("c")
            assert tenants.open_ones == ("b", "c")
            async with tenants.using("c"):
                with pytest.raises(TenantsBusy, match="2 tenants are at work"):
                    await tenants.app_of("d")
            await result_of(await tenants.app_of("c"), "x = 1", "c", session="s")
            with pytest.raises(TenantsBusy):
                await tenants.app_of("a")
        assert await tenants.app_of("a") is not first
        assert tenants.open_ones == ("c", "a")


async def test_many_that_come_at_once_open_a_tenant_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as tenants:
        apps = await asyncio.gather(*(tenants.app_of(name) for name in ["a", "b"] * 20))
        assert len({id(app) for app in apps}) == 2
        with pytest.raises(RequestRefused):
            await tenants.app_of("../a")


async def test_a_tenant_that_is_suspended_is_closed_within_a_moment_and_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "home") as tenants:
        app = await tenants.app_of("a")
        assert app.home.root == tmp_path / "home" / "tenants" / "a"
        store = TenantStore(tenants.own.app.database())
        store.set_status("a", TenantStatus.SUSPENDED)
        await until(lambda: not tenants.open_ones)
        with pytest.raises(TenantRefused, match="suspended"):
            await tenants.app_of("a")
        store.set_status("a", TenantStatus.ACTIVE)
        await tenants.app_of("a")


async def test_a_background_run_of_a_tenant_that_nobody_opened_is_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(home, SEALAB_BACKGROUND_RUNS_MAX="1") as tenants:
        app = await tenants.app_of("a")
        request = CodeRequest("import asyncio\nawait asyncio.sleep(60)", caller=alice("a"))
        states = [await app.background.submit(request) for _ in range(2)]
        await asyncio.sleep(0)
    async with opened(home) as tenants:
        tenants.watch()
        await until(lambda: tenants.open_ones == ("a",))
        app = await tenants.app_of("a")
        for state in states:
            await app.background.cancel(state.run_id, "principal alice")


async def test_deleting_goes_on_where_it_was_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_app, "CLOSING_SECONDS", 60.0)  # nothing of the run is written once its server has ended
    home = tmp_path / "home"
    async with opened(home) as tenants:
        await result_of(await tenants.app_of("a"), "write_file('f', 'x')", "a")
        settings = tenants.own.app.settings
    of_a = Home(home).of_tenant("a")
    (of_a.workspace / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    counted = files_of(of_a)
    with operators_database(settings, of_a) as operators:
        with monkeypatch.context() as patched:
            patched.setattr("shutil.rmtree", _cut)
            _cut.avoids_symlink_attacks = True  # type: ignore[attr-defined]
            with pytest.raises(KeyboardInterrupt):
                delete_tenant(settings, of_a, operators)
        found = TenantStore(operators).find("a")
        assert found is not None
        assert found.status is TenantStatus.DELETING
        (of_a.root / "sealab.db").unlink()
        proof = delete_tenant(settings, of_a, operators)
        assert proof["counted"]["sha256"] == counted.sha256  # type: ignore[index]  # as it was before anything was removed
        assert delete_tenant(settings, of_a, operators) == json.loads(json.dumps(proof))
    assert not of_a.root.exists()
    assert (tmp_path / "outside" / "kept").exists()
    async with opened(home) as tenants:
        with pytest.raises(TenantRefused, match="deleted"):
            await tenants.app_of("a")


def _cut(*_: object, **_more: object) -> None:
    raise KeyboardInterrupt


def test_a_tenant_that_is_served_is_not_removed_by_another_process(tmp_path: Path) -> None:
    home = Home(tmp_path).of_tenant("a")
    with TenantLock(home).serve(), pytest.raises(TenantRefused, match="still serves"):
        TenantLock(home).remove(0)
    with TenantLock(home).remove(0), pytest.raises(TenantRefused, match="being removed"):
        TenantLock(home).serve()
    TenantLock(home).serve().release()


def test_commands_list_show_export_and_delete_a_tenant_beside_a_running_server(tmp_path: Path) -> None:
    home = tmp_path / "home"
    given = token(home, "acme", "alice", "default")
    target = tmp_path / "acme.zip"
    with team_server(home) as url:
        member = Member(url, given)
        member.run("write_file('new.txt', 'x'); write_file('a%b.txt', 'y'); write_file('old.txt', 'z')")
        workspace = home / "tenants" / "acme" / "workspace"
        os.utime(workspace / "old.txt", (-1, -1))
        (Path(os.fsdecode(os.fsencode(workspace) + b"/\xff%"))).write_text("bytes")
        (workspace / "link").symlink_to("/etc/passwd")
        listed = told(home, "tenants", "list")["tenants"]
        assert [(each["tenant"], each["status"]) for each in listed] == [("acme", "active")]
        shown = told(home, "tenants", "show", "acme")
        assert (shown["runs"] >= 0, shown["tokens"]) == (True, 1)
        manifest = told(home, "tenants", "export", "acme", str(target))
        assert manifest["files"] == 4
        assert list(manifest["left_out"]) == ["link"]
        assert manifest["renamed"] == {"%FF%25": "ff25"}
        with zipfile.ZipFile(target) as archive:
            names = {each for each in archive.namelist() if each.startswith("workspace/")}
            assert names == {f"workspace/{each}" for each in ("new.txt", "a%b.txt", "old.txt", "%FF%25")}
            assert archive.getinfo("workspace/old.txt").date_time[0] == 1980
            assert given not in "".join(archive.read(each).decode("latin-1") for each in archive.namelist())
        assert command(home, "tenants", "export", "acme", str(target)).returncode == 2
        refused = command(home, "tenants", "delete", "acme")
        assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
        proof = told(home, "tenants", "delete", "acme", "--yes")
        assert proof["counted"]["tokens"] == proof["rows"]["token"] == 1
        assert member.call("execute_code", code="1").status == 401
        again = Member(url, token(home, "acme", "alice", "default"))
        reply = again.call("execute_code", code="1")
        assert (reply.status, "deleted" in reply.text) == (403, True)
        told(home, "tenants", "create", "acme")
        assert again.run("list_files()") == []
    assert sorted(each.name for each in (home / "tenants").iterdir()) == ["acme", "acme.lock"]


def test_names_of_schemas_are_one_for_each_tenant_and_short_enough() -> None:
    names = ["a", "a-b", "a" * 54, "a" * 55, "a" * 63, "a" * 62 + "b", "a" * 62]
    schemas = [schema_of(name) for name in names]
    assert len(set(schemas)) == len(names)
    assert all(len(each) <= 63 for each in schemas)


async def test_on_postgresql_each_tenant_has_a_schema_that_no_other_sees(postgres_place: Place, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(home, SEALAB_DATABASE_URL=postgres_place.server_url) as tenants:
        for name in ("a", "a-b"):
            app = await tenants.app_of(name)
            code = f"def mine() -> str:\n    return {name!r}"
            await skills.save(app.skills, skills.SaveRequest("mine", code, caller=alice(name)))
            await app.privacy.hide_text("principal alice", "mail quetzal.feather@zanzibar-example.org")
        for name in ("a", "a-b"):
            app = await tenants.app_of(name)
            assert await result_of(app, "skills.mine()", name) == name
            with app.database().read() as session:
                seen = session.exec_driver_sql(
                    "SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
                    "WHERE relname = 'sealab_skill' AND pg_table_is_visible(pg_class.oid)"
                )
                assert seen.scalar_one() == 1
        assert (await skills.listed(tenants.own.app.skills, None, None, 9))["count"] == 0
        settings = tenants.own.app.settings
    of_a = Home(home).of_tenant("a")
    with operators_database(settings, of_a) as operators:
        proof = delete_tenant(settings, of_a, operators)
        assert proof["counted"]["skills"] == 1  # type: ignore[index]  # told by `show` too
        left = [each for each in ("a", "a-b") if _is_there(operators, each)]
    assert left == ["a-b"]


def test_on_postgresql_a_schema_is_removed_once_the_last_connection_to_it_has_ended(
    postgres_place: Place, tmp_path: Path
) -> None:
    settings, of_a = Settings(database_url=postgres_place.server_url), Home(tmp_path).of_tenant("a")
    with operators_database(settings, of_a) as operators, ThreadPoolExecutor(1) as beside:
        TenantStore(operators).ensure("a")
        elsewhere = database_of(
            settings.database_url, of_a
        )  # a server of another machine, without the lock of this one
        with elsewhere().read():
            deleting = beside.submit(delete_tenant, settings, of_a, operators)

            def waits() -> bool:
                assert not deleting.done()
                with operators.read() as looking:
                    found = looking.exec_driver_sql(
                        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                    )
                    return bool(found.scalar_one())

            wait_until(waits)
            assert _is_there(operators, "a")
            late = database_of(settings.database_url, of_a)
            with pytest.raises(DatabaseUnavailable, match="The tenant is being removed"):
                late()
        elsewhere.close()
        assert deleting.result(60)["tenant"] == "a"
        assert not _is_there(operators, "a")


async def test_a_yes_to_all_calls_of_a_tool_is_given_in_one_tenant_and_ends_with_it(tmp_path: Path) -> None:
    tool, scope = Tool("write", "notes", "notes"), of_principal("alice")
    home = tmp_path / "home"
    async with opened(home) as tenants:
        await (await tenants.app_of("a")).registry.approve(tool, scope, StandingApproval({}, {}))
        said = [await (await tenants.app_of(each)).registry.rules(tool, scope) for each in ("a", "b", "default")]
        settings = tenants.own.app.settings
    assert said == [[StandingApproval({}, {})], [], []]
    of_a = Home(home).of_tenant("a")
    with operators_database(settings, of_a) as operators:
        delete_tenant(settings, of_a, operators)
        TenantStore(operators).set_status("a", TenantStatus.ACTIVE)
    async with opened(home) as tenants:
        assert not await (await tenants.app_of("a")).registry.rules(tool, scope)


def _is_there(operators: Any, tenant: str) -> bool:
    from sealab.skills_db.tenants.schemas import is_there

    return is_there(operators.migrating, schema_of(tenant))


def test_a_sqlite_file_that_the_operator_named_is_not_a_tenants(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/named.db"
    home = Home(tmp_path / "home").of_tenant("a")
    home.prepare()
    opening = database_of(url, home)
    assert opening().file == home.root / "sealab.db"
    opening.close()
    assert not (tmp_path / "named.db").exists()
    assert replace(home).root.stat().st_mode & 0o777 == 0o700


def test_the_owner_of_a_folder_is_the_one_that_reads_a_tenants_home(tmp_path: Path) -> None:
    Home(tmp_path / "home").of_tenant("a").prepare()
    for each in (tmp_path / "home" / "tenants", tmp_path / "home" / "tenants" / "a"):
        assert each.stat().st_mode & 0o777 == 0o700
