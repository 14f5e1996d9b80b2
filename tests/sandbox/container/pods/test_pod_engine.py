"""Pods are made, waited for, attached to and deleted, whatever the cluster's API answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import pytest

from sealab.sandbox.container.pods import cluster_access, pod_engine
from sealab.sandbox.container.pods.pod_engine import PodEngine, find, why_not
from sealab.sandbox.container.running_container import ContainerNeeds
from sealab.sandbox.errors import ContainerMissing, WorkerLost

from ....waiting import until
from .fake_cluster import FakeCluster, Manifest, fake_cluster

ECHO = "import os\nwhile data := os.read(0, 65536): os.write(1, data)\nos.write(2, b'bye\\n')"
NEEDS = ContainerNeeds("sealab-1-abc", memory_mb=300, processes=20, cpus=0.5)


async def echoing(_pod: Manifest) -> list[str]:
    return [sys.executable, "-u", "-c", ECHO]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once, and a pod is waited for a moment only."""
    monkeypatch.setattr(cluster_access, "_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(pod_engine, "READY_SECONDS", 1.0)
    monkeypatch.setattr(pod_engine, "_LOOK_SECONDS", 0.02)


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> AsyncIterator[FakeCluster]:
    account = tmp_path / "account"
    account.mkdir()
    monkeypatch.setattr(cluster_access, "ACCOUNT", account)
    async with fake_cluster(account, echoing) as found:
        yield found


@pytest.fixture
async def engine(cluster: FakeCluster) -> AsyncIterator[PodEngine]:
    found = await find("kubernetes:gvisor", "sealab:0.1.0", cluster.environment)
    yield found
    cluster.always.clear()
    await found.close()


async def test_a_pod_is_confined_bounded_labelled_and_belongs_to_the_pod_of_the_server(
    engine: PodEngine, cluster: FakeCluster
) -> None:
    pod = await engine.start(NEEDS)
    (made,) = cluster.made  # which the server took: its schema and its security are right
    assert made["metadata"]["labels"]["app.kubernetes.io/name"] == "sealab-sandbox"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-0"
    spec, (container,) = made["spec"], made["spec"]["containers"]
    assert spec["runtimeClassName"] == "gvisor"
    assert container["image"] == "sealab:0.1.0"
    assert container["command"][-1] == version("sealab")
    assert container["resources"]["limits"] == {"memory": "300Mi", "cpu": "500m", "ephemeral-storage": "128Mi"}
    assert spec["securityContext"]["runAsUser"] >= 100_000
    pod.link.close()
    await pod.wait()
    assert cluster.pods == {}
    assert cluster.deleted == [NEEDS.name]


async def test_what_is_written_comes_back_and_the_end_of_the_link_ends_the_pod(
    engine: PodEngine, cluster: FakeCluster
) -> None:
    pod = await engine.start(NEEDS)
    pod.link.send(hello=1)
    assert await pod.link.receive() == {"hello": 1}
    process = cluster.pods[NEEDS.name].process
    assert process is not None
    pod.link.close()
    await pod.wait()
    await process.wait()
    with pytest.raises(EOFError):
        await pod.link.receive()


async def test_a_container_that_ends_by_itself_is_gone_and_its_last_words_are_told(
    engine: PodEngine, cluster: FakeCluster
) -> None:
    async def failing(_pod: Manifest) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.stdin.read(1); sys.exit('the image has sealab 0.0.9')"]

    cluster.kubelet = failing
    pod = await engine.start(NEEDS)
    pod.link.send(hello=1)
    with pytest.raises(EOFError):
        await pod.link.receive()
    await pod.wait()
    assert "sealab 0.0.9" in pod.complaint() or "Success" in pod.complaint()
    assert cluster.pods == {}


PASSING = [(401, "Unauthorized"), (409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError")]


@pytest.mark.parametrize("answer", PASSING, ids=str)
@pytest.mark.parametrize("request_of", ["POST pods", "GET pod", "DELETE pod"])
async def test_an_error_that_passes_is_waited_out(
    engine: PodEngine, cluster: FakeCluster, request_of: str, answer: tuple[int, str]
) -> None:
    cluster.refusals[request_of] = [answer, answer]
    pod = await engine.start(NEEDS)
    pod.link.close()
    await pod.wait()
    assert cluster.refusals[request_of] == []
    assert cluster.pods == {}
    assert engine.left_behind == set()


STAYING = [
    (401, "Unauthorized", ContainerMissing, "does not know this server's account"),
    (403, "Forbidden", ContainerMissing, "may not do that in the cluster"),
    (409, "Conflict", WorkerLost, "does not answer as it should"),
    (410, "Gone", None, "410 Gone"),
    (422, "Invalid", None, "422 Invalid"),
    (429, "TooManyRequests", WorkerLost, "does not answer as it should"),
    (500, "InternalError", WorkerLost, "does not answer as it should"),
]


@pytest.mark.parametrize("request_of", ["POST pods", "GET pod"])
@pytest.mark.parametrize("staying", STAYING, ids=str)
async def test_an_error_that_stays_is_told_and_leaves_no_pod(
    engine: PodEngine, cluster: FakeCluster, request_of: str, staying: tuple[int, str, type[Exception] | None, str]
) -> None:
    status, reason, error, said = staying
    cluster.always[request_of] = (status, reason)
    expected = error or (ContainerMissing if request_of == "POST pods" else WorkerLost)
    with pytest.raises(expected, match=said):
        await engine.start(NEEDS)
    assert cluster.pods == {}
    assert len(cluster.asked) < 20


async def test_a_pod_whose_making_was_not_answered_is_taken_for_made(engine: PodEngine, cluster: FakeCluster) -> None:
    cluster.loses_answers = 1
    pod = await engine.start(NEEDS)
    assert cluster.asked.count("POST pods") == 2
    pod.link.close()
    await pod.wait()
    assert cluster.pods == {}


@pytest.mark.parametrize(
    ("waiting", "error", "said"),
    [
        ({"reason": "ContainerCreating"}, WorkerLost, "not ready within 1 seconds: ContainerCreating"),
        ({"reason": "ImagePullBackOff", "message": "no such image"}, WorkerLost, "ImagePullBackOff: no such image"),
        ({"reason": "InvalidImageName"}, ContainerMissing, "CONTAINER_IMAGE"),
    ],
    ids=str,
)
async def test_a_pod_that_never_gets_ready_is_deleted_and_what_it_waits_for_is_told(
    engine: PodEngine, cluster: FakeCluster, waiting: Manifest, error: type[Exception], said: str
) -> None:
    cluster.waits_for = waiting
    with pytest.raises(error, match=said):
        await engine.start(NEEDS)
    assert cluster.pods == {}


async def test_a_start_that_is_called_off_leaves_no_pod(engine: PodEngine, cluster: FakeCluster) -> None:
    cluster.waits_for = {"reason": "ContainerCreating"}
    starting = asyncio.create_task(engine.start(NEEDS))
    await until(lambda: cluster.pods)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert cluster.pods == {}


async def test_a_cluster_that_lets_nobody_attach_or_speaks_another_protocol_is_told_and_no_pod_is_left(
    engine: PodEngine, cluster: FakeCluster
) -> None:
    cluster.always["WS attach"] = (403, "Forbidden")
    with pytest.raises(ContainerMissing, match="may not attach"):
        await engine.start(NEEDS)
    cluster.always.clear()
    cluster.protocols = ()
    with pytest.raises(WorkerLost):
        await engine.start(NEEDS)
    assert cluster.pods == {}


async def test_a_pod_that_cannot_be_deleted_is_deleted_when_the_next_one_starts(
    engine: PodEngine, cluster: FakeCluster
) -> None:
    first = await engine.start(NEEDS)
    cluster.always["DELETE pod"] = (500, "InternalError")
    first.link.close()
    await first.wait()
    assert set(cluster.pods) == engine.left_behind == {NEEDS.name}
    cluster.always.clear()
    second = await engine.start(ContainerNeeds("sealab-1-def", 300, 20))
    assert set(cluster.pods) == {"sealab-1-def"}
    second.link.close()
    await second.wait()


async def test_the_next_start_of_a_server_deletes_what_its_last_run_left_and_nothing_of_others(
    engine: PodEngine, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.start(NEEDS)
    other = await find("kubernetes", "sealab:0.1.0", {**cluster.environment, "POD_NAME": "sealab-1"})
    await other.start(ContainerNeeds("sealab-other", 300, 20))
    again = await find("kubernetes", "sealab:0.1.0", cluster.environment)  # another pool of the same run
    assert set(cluster.pods) == {NEEDS.name, "sealab-other"}
    monkeypatch.setattr(pod_engine, "_instance", lambda: "f" * 32)
    later = await find("kubernetes", "sealab:0.1.0", cluster.environment)
    assert set(cluster.pods) == {"sealab-other"}
    for each in (other, again, later):
        await each.close()


async def test_the_token_is_read_anew_when_the_cluster_has_renewed_it(engine: PodEngine, cluster: FakeCluster) -> None:
    token = cluster.folder / "token"
    right = token.read_text()
    token.write_text("former")
    with pytest.raises(ContainerMissing, match="does not know this server's account"):
        await engine.start(NEEDS)
    token.write_text(right)
    pod = await engine.start(NEEDS)
    pod.link.close()
    await pod.wait()


async def test_outside_of_a_cluster_the_reason_says_so(tmp_path: Path) -> None:
    assert "no pod with a service account" in str(why_not({}))
    with pytest.raises(ContainerMissing, match="no pod with a service account"):
        await find("kubernetes", "sealab:0.1.0", {})


async def test_a_container_that_floods_its_output_is_read_no_faster_than_it_is_taken(
    engine: PodEngine, cluster: FakeCluster
) -> None:
    async def flooding(_pod: Manifest) -> list[str]:
        return [sys.executable, "-c", "import sys\nwhile True: sys.stdout.buffer.write(b'x' * 65536)"]

    cluster.kubelet = flooding
    pod = await engine.start(NEEDS)
    held = pod._streams.reading
    await until(lambda: not pod._streams._may_read._going.is_set())
    assert len(held._buffer) < 2_000_000  # type: ignore[attr-defined]
    pod.link.close()
    await pod.wait()
    assert cluster.pods == {}
