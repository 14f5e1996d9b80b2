"""Code runs in pods as in podman's containers: the containers of these pods are podman's, started by a fake cluster."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from pathlib import Path

import pytest

from sealab.sandbox.container import engine as engines
from sealab.sandbox.container import image
from sealab.sandbox.container.container_pool import ContainerPool, ContainerSettings
from sealab.sandbox.container.engine import Engine
from sealab.sandbox.container.image import ContainerImage
from sealab.sandbox.container.pods import cluster_access, pod_engine
from sealab.sandbox.host.pool import PoolSettings
from sealab.sandbox.job import Isolation, Job, Json, Limits, Outcome, Status

from ....waiting import until
from ...containers import needs_podman
from .fake_cluster import FakeCluster, Manifest, fake_cluster

pytestmark = [needs_podman, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an image that has sealab installed, as that of the Dockerfile."""
    folder = tmp_path_factory.mktemp("home") / "container"
    built = image.build(folder)
    assert built.root is not None
    (packages,) = Path(built.root).glob("usr/local/lib/python3.*/site-packages")
    shutil.copytree(image.code(folder), packages, dirs_exist_ok=True)
    said = packages / f"sealab-{version('sealab')}.dist-info"
    said.mkdir()
    (said / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sealab\nVersion: {version('sealab')}\n")
    return folder


@pytest.fixture(scope="module")
async def cluster(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FakeCluster]:
    built = image.current(folder)
    assert built is not None
    found = await engines.find("podman", built, image.code(folder), folder / "engine")
    engine = Engine(found.kind, found.program, found.runtime, found.state)

    async def kubelet(pod: Manifest) -> list[str]:
        container = pod["spec"]["containers"][0]
        memory = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
        name = pod["metadata"]["name"]
        return engine.run(built, folder, name=name, memory_mb=memory, processes=200, command=container["command"])

    async def removed(pod: Manifest) -> None:
        await engine.remove(pod["metadata"]["name"])

    account = tmp_path_factory.mktemp("cluster") / "account"
    account.mkdir()
    async with fake_cluster(account, kubelet) as cluster:
        cluster.removed = removed
        yield cluster


@pytest.fixture
async def pool(cluster: FakeCluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ContainerPool]:
    monkeypatch.setattr(cluster_access, "ACCOUNT", cluster.folder)
    monkeypatch.setattr(pod_engine, "_LOOK_SECONDS", 0.05)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    settings = ContainerSettings(
        pool=PoolSettings(spares=0),
        image=ContainerImage(python="python3", name="sealab:0.1.0"),
        folder=folder,
        wanted="kubernetes",
    )
    async with ContainerPool(settings) as pool:
        yield pool
    assert cluster.pods == {}


async def read_file(name: str, arguments: Mapping[str, Json]) -> Json:
    return {"content": f"{name} {arguments['filename']}", "truncated": False}


async def run(pool: ContainerPool, code: str, *, session: str | None = None, seconds: float = 60.0) -> Outcome:
    limits = Limits(timeout_seconds=seconds, memory_mb=200)
    return await pool.run(Job(code, isolation=Isolation.CONTAINER, limits=limits, session=session), read_file)


async def test_code_in_a_pod_is_full_python_prints_calls_the_host_and_keeps_a_session(
    pool: ContainerPool, cluster: FakeCluster
) -> None:
    code = "import os, socket\nprint('hello')\nx = read_file('a.txt')\n(x, os.getuid(), sorted(os.environ))"
    outcome = await run(pool, code, session="s")
    assert outcome.status is Status.OK, outcome
    assert outcome.output == "hello\n"
    assert outcome.result[0] == "read_file a.txt"
    assert not any("SEALAB" in name or "KUBERNETES" in name for name in outcome.result[2])
    assert {"container", "process", "limits", "seccomp"} <= set(outcome.layers)
    again = await run(pool, "x * 2", session="s")
    assert again.result == "read_file a.txt" * 2
    assert len(cluster.pods) == 1
    assert await pool.end_session("s")


async def test_a_run_that_takes_too_long_or_ends_its_process_is_told_and_the_next_one_runs(pool: ContainerPool) -> None:
    late = await run(pool, "while True: pass", seconds=1.0)
    assert late.status is Status.TIMEOUT, late
    ended = await run(pool, "import os\nos._exit(3)")
    assert ended.status is Status.CRASHED, ended
    assert (await run(pool, "6 * 7")).result == 42


async def test_a_connection_that_is_cut_midway_ends_the_run_as_crashed_and_its_pod(
    pool: ContainerPool, cluster: FakeCluster
) -> None:
    begun = asyncio.Event()

    async def told(_name: str, _arguments: Mapping[str, Json]) -> Json:
        begun.set()
        return {"content": "", "truncated": False}

    limits = Limits(timeout_seconds=60.0, memory_mb=200)
    code = "read_file('a')\nimport time\ntime.sleep(50)"
    running = asyncio.create_task(pool.run(Job(code, isolation=Isolation.CONTAINER, limits=limits), told))
    await begun.wait()
    (name,) = cluster.pods
    cluster.cut()
    outcome = await running
    assert outcome.status is Status.CRASHED, outcome
    await until(lambda: name in cluster.deleted)
    assert (await run(pool, "6 * 7")).result == 42
