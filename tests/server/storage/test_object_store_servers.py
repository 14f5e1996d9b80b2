"""Files in an object store: code, containers, tools and commands find them on each server alike."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore
import pytest
from mcp import Client

from sealab.sandbox.job import Isolation, Job, Outcome, Status
from sealab.server.base.errors import HostWorkBusy
from sealab.server.base.host_work import in_thread
from sealab.server.base.storage import whole_workspace
from sealab.server.base.storage.whole_workspace import WholeWorkspace

from ...object_stores import S3Server, moto
from ...sandbox.containers import needs_podman
from ...waiting import until
from .. import command_line
from ..command_line import sealab_process
from ..conftest import HttpServer, http_process, in_full
from ..tenants.team import Member, token

WRITES = """
import os, glob, json, shutil, sqlite3, zipfile
from pathlib import Path
Path("data").mkdir()
with open("data/numbers.txt", "w") as stream:
    for number in range(1000):
        print(number, file=stream)
with open("data/numbers.txt", "a") as stream:
    stream.write("end\\n")
shutil.copy("data/numbers.txt", "data/copy.txt")
os.makedirs("deep/er", exist_ok=True)
os.rename("data/copy.txt", "deep/er/moved.txt")
with zipfile.ZipFile("archive.zip", "w") as archive:
    archive.write("deep/er/moved.txt", "inside.txt")
with sqlite3.connect("rows.db") as rows:
    rows.execute("CREATE TABLE t (a INTEGER)")
    rows.executemany("INSERT INTO t VALUES (?)", [(each,) for each in range(100)])
rows.close()
Path("gone.txt").write_text("x")
os.remove("gone.txt")
write_file("by helper.json", json.dumps({"ü": 1}))
sorted(glob.glob("**/*", recursive=True))
"""
READS = """
import os, sqlite3, zipfile
from pathlib import Path
rows = sqlite3.connect("rows.db")
[
    Path("data/numbers.txt").read_text().count("\\n"),
    os.stat("deep/er/moved.txt").st_size,
    zipfile.ZipFile("archive.zip").read("inside.txt").endswith(b"end\\n"),
    rows.execute("SELECT sum(a) FROM t").fetchone()[0],
    json.loads(read_file("by helper.json")["content"] if isinstance(read_file("by helper.json"), dict)
               else read_file("by helper.json")),
    os.path.exists("gone.txt"),
    sorted(os.listdir(".")),
]
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with moto() as server:
        yield server


def settings(s3: S3Server, bucket: str, folder: Path) -> dict[str, str]:
    return {
        **s3.environment,
        "SEALAB_WORKSPACE_URL": f"s3://{bucket}/team",
        "SEALAB_DATABASE_URL": f"sqlite:///{folder}/shared.db",
        "SEALAB_VAULT_KEY": "correct horse battery staple and more",
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
    }


@contextmanager
def two_servers(s3: S3Server, tmp_path: Path) -> Iterator[tuple[HttpServer, HttpServer]]:
    env = settings(s3, s3.bucket(), tmp_path)
    with http_process(tmp_path / "one", **env) as one, http_process(tmp_path / "two", **env) as two:
        yield one, two


async def run(client: Client, code: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool("execute_code", {"code": code, **arguments})
    assert answer.structured_content is not None
    return in_full(answer.structured_content)


@pytest.mark.timeout(150)
async def test_what_code_writes_on_one_server_code_finds_on_another(s3: S3Server, tmp_path: Path) -> None:
    with two_servers(s3, tmp_path) as (one, two):
        async with (
            Client(one.url, read_timeout_seconds=50) as first,
            Client(two.url, read_timeout_seconds=50) as second,
        ):
            wrote = await run(first, WRITES)
            assert wrote["error"] is None, wrote
            read = await run(second, READS)
            assert read["error"] is None, read
            top = ["archive.zip", "by helper.json", "data", "deep", "rows.db"]
            assert read["result"] == [1001, 3894, True, 4950, {"ü": 1}, False, top]
            full = await run(
                second,
                "import pathlib\nprint(sorted(each.name for each in pathlib.Path('/workspace').rglob('*')))\n"
                "print(pathlib.Path('/workspace/deep/er/moved.txt').read_text()[-4:])",
                isolation="process",
            )
            assert full["error"] is None, full
            assert "'moved.txt'" in full["output"]
            assert full["output"].endswith("end\n\n")
            long = await run(first, "for number in range(20_000): print(number)")
            path = f".runs/{long['run_id']}/output.txt"
            kept = await second.call_tool("read_workspace_file", {"filename": path, "offset": 0, "limit": 12})
            assert kept.structured_content["content"] == "0\n1\n2\n3\n4\n5\n"
            listed = await second.call_tool("list_workspace_files", {})
            assert [file["name"] for file in listed.structured_content["files"]] == [
                "archive.zip",
                "by helper.json",
                "data/numbers.txt",
                "deep/er/moved.txt",
                "rows.db",
            ]


@pytest.mark.timeout(150)
async def test_a_store_that_hangs_stops_files_alone_and_nothing_is_taken_for_written(tmp_path: Path) -> None:
    with moto() as s3:
        env = settings(s3, s3.bucket(), tmp_path)
        with http_process(tmp_path / "one", **env) as server:
            async with Client(server.url, read_timeout_seconds=55) as client:
                before = await run(client, "write_file('f.txt', 'before')")
                assert before["error"] is None, before
                s3.process.send_signal(signal.SIGSTOP)
                try:
                    waiting = asyncio.create_task(run(client, "open('f.txt', 'w').write('lost')", timeout_seconds=60))
                    quick = await run(client, "sum(range(10))")
                    assert quick["result"] == 45
                    assert not waiting.done()
                    failed = await waiting
                    assert failed["error"]["type"] == "OSError", failed
                    assert not failed["success"]
                    await until(lambda: ready(server.url)[0] == 503)
                    assert "object store" in ready(server.url)[1]["reason"]
                finally:
                    s3.process.send_signal(signal.SIGCONT)
                await until(lambda: ready(server.url)[0] == 200)
                after = await run(client, "open('f.txt').read()")
                assert after["result"] == "before", json.dumps(after)


def ready(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url.replace("/mcp", "/readyz"), timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


async def test_a_file_that_the_store_does_not_take_when_the_run_ends_fails_the_run(tmp_path: Path) -> None:
    with moto() as s3:
        env = settings(s3, s3.bucket(), tmp_path)
        with http_process(tmp_path / "one", **env) as server:
            async with Client(server.url, read_timeout_seconds=55) as client:
                session = await run(client, "stream = open('f.txt', 'w')\nstream.write('x')", session="s")
                assert session["error"] is None, session
                s3.process.kill()
                lost = await run(client, "stream.write('y')\nstream.flush()", session="s")
                assert not lost["success"]
                assert "object store" in lost["error"]["message"]
                assert (await run(client, "1 + 1"))["result"] == 2


@pytest.mark.timeout(200)
def test_objects_of_a_tenant_are_its_own_are_exported_and_deleted_with_it(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.bucket()
    env = {**s3.environment, "SEALAB_WORKSPACE_URL": f"s3://{bucket}/team"}
    home = tmp_path / "home"
    other = s3.client(bucket, "team")

    def keys() -> list[str]:
        return sorted(each["path"] for page in obstore.list(other) for each in page)

    tokens = {name: token(home, name, f"{name}-member", "run", "files", **env) for name in ("red", "blue")}
    with http_process(home, SEALAB_AUTH="tokens", **env) as server:
        for name in ("red", "blue"):
            member = Member(server.url, tokens[name])
            member.run(f"write_file('mine.txt', '{name}')\nopen('d.txt', 'w').write('{name}')")
            assert member.run("sorted(each['name'] for each in list_files())") == ["d.txt", "mine.txt"]
            assert member.run("read_file('mine.txt')") == name
        held = {key: bytes(obstore.get(other, key).bytes()).decode() for key in keys()}
        for name in ("red", "blue"):
            of_tenant = [content for key, content in held.items() if key.startswith(f".sealab-tenants/{name}/")]
            assert of_tenant.count(name) == 2
            assert len([content for content in held.values() if content == name]) == 2
    target = tmp_path / "red.zip"
    exported = sealab_process("tenants", "export", "red", str(target), "--home", str(home), "--json", **env)
    assert exported.returncode == 0, exported.stderr
    with zipfile.ZipFile(target) as archive:
        assert archive.read("workspace/mine.txt") == b"red"
    deleted = sealab_process("tenants", "delete", "red", "--yes", "--home", str(home), "--json", **env)
    assert deleted.returncode == 0, deleted.stderr
    assert not [key for key in keys() if "/red/" in key]
    assert [key for key in keys() if "/blue/" in key]


def test_doctor_tells_of_the_store(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.bucket()
    env = {**s3.environment, "SEALAB_WORKSPACE_URL": f"s3://{bucket}/team"}
    found = json.loads(sealab_process("doctor", "--json", "--home", str(tmp_path), **env).stdout)
    assert found["files"] == {
        "place": f"s3://{bucket}/team",
        "ok": True,
        "note": "it answers",
    }
    env["SEALAB_WORKSPACE_URL"] = "s3://no-such-bucket/team"
    found = json.loads(sealab_process("doctor", "--json", "--home", str(tmp_path), **env).stdout)
    assert not found["ok"]
    assert "no such bucket" in found["files"]["note"]


@pytest.mark.timeout(200)
async def test_a_person_is_forgotten_in_files_and_kept_runs_of_an_object_store(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.bucket()
    env = settings(s3, bucket, tmp_path) | {"SEALAB_PRIVACY_MODE": "fast"}
    name = "Ulrike Brandtner"
    with http_process(tmp_path / "one", **env) as server:
        async with Client(server.url, read_timeout_seconds=55) as client:
            report = await run(client, f"open('people.csv', 'w').write({name!r} + ',1')\n1  # {name}")
            assert report["error"] is None, report
            await run(client, "open('other.txt', 'w').write('Ada Lovelace')")
    other = s3.client(bucket, "team")

    def contents() -> list[bytes]:
        keys = [each["path"] for page in obstore.list(other) for each in page]
        return [bytes(obstore.get(other, key).bytes()) for key in keys]

    def holding() -> list[bytes]:
        return [content for content in contents() if name.encode() in content]

    kept = f".runs/{report['run_id']}/code.py"
    assert len(holding()) == 2

    def forgotten(*words: str) -> dict[str, Any]:
        words = ("pii", "forget", name, *words, "--home", str(tmp_path / "two"), "--json")
        told: dict[str, Any] = sealab_process(*words, **env).told
        return told

    told = forgotten()
    assert (told["archive"], told["files"]) == ([kept], ["people.csv"])
    assert len(holding()) == 2, "it only looks"
    forgotten("--yes")
    assert holding() == [f"{name},1".encode()]
    forgotten("--yes", "--files")
    assert holding() == []
    assert b"Ada Lovelace" in contents()
    assert forgotten()["archive"] == []


IN_A_CONTAINER = """
from pathlib import Path
found = sorted(str(each.relative_to("/workspace")) for each in Path("/workspace").rglob("*") if each.is_file())
[found, Path("/workspace/data/a.txt").read_text()]
"""
WRITES_IN_A_CONTAINER = """
write_file("made/by container.txt", "new")
write_file("data/a.txt", "one, more")
from pathlib import Path
[Path("/workspace/made/by container.txt").read_text(), Path("/workspace/data/a.txt").read_text()]
"""


@needs_podman
@pytest.mark.timeout(600)
def test_code_in_a_container_reads_and_writes_files_of_a_store(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    built = command_line.sealab("container", "build", "--json", "--home", str(home))
    assert built.returncode == 0, built.stderr
    with moto() as s3:
        bucket = s3.bucket()
        env = settings(s3, bucket, tmp_path) | {"SEALAB_ALLOWED_ISOLATION": "restricted,container"}
        obstore.put(s3.client(bucket), "team/data/a.txt", b"one")

        def run(where: Path, code: str, *arguments: str) -> dict[str, object]:
            given = ("run", "-", "--json", "--home", str(where), *arguments)
            done = command_line.sealab(*given, stdin=code, **env)
            assert done.stdout, done.stderr
            report: dict[str, object] = json.loads(done.stdout)
            assert report["status"] == "ok", json.dumps(report)
            return report

        read = run(home, IN_A_CONTAINER, "--isolation", "container")
        assert (read["isolation"], read["result"]) == ("container", [["data/a.txt"], "one"])
        wrote = run(home, WRITES_IN_A_CONTAINER, "--isolation", "container")
        assert (wrote["isolation"], wrote["result"]) == ("container", ["new", "one, more"])
        elsewhere = run(other, "import os\n[open('data/a.txt').read(), open('made/by container.txt').read()]")
        assert elsewhere["result"] == ["one, more", "new"]
        obstore.put(s3.client(bucket), "team/data/a.txt", b"two")
        again = run(home, IN_A_CONTAINER, "--isolation", "container")
        assert again["result"] == [["data/a.txt", "made/by container.txt"], "two"]


class Copies:
    """A workspace that counts who needs its copies."""

    needed = 0

    @contextmanager
    def brought_whole(self) -> Iterator[None]:
        self.needed += 1
        try:
            yield
        finally:
            self.needed -= 1


async def test_a_run_that_has_ended_is_reported_though_the_threads_for_files_are_all_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies, has_run = Copies(), False

    class Runner:
        async def run(self, *_given: object) -> Outcome:
            nonlocal has_run
            has_run = True
            assert copies.needed == 1
            return Outcome(Status.OK, isolation=Isolation.PROCESS)

    async def busy(kind: object, work: Callable[[], object], *, charged: bool = True) -> object:
        if has_run:
            raise HostWorkBusy("Too much waits.")
        return await in_thread(kind, work, charged=charged)  # type: ignore[arg-type]

    monkeypatch.setattr(whole_workspace, "in_thread", busy)
    outcome = await WholeWorkspace(Runner(), copies).run(Job("1"), None)  # type: ignore[arg-type]
    assert outcome.status is Status.OK
    assert copies.needed == 0
