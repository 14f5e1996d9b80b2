"""Runs containers as pods: makes each, waits until it runs, attaches to it, and deletes it on every way out.

What is left behind all the same, since a server was killed or the API was away, ends by itself: its input has ended
with the connection, its deadline passes, the cluster deletes what belongs to a deleted pod, and the next start of the
server deletes what is labelled as its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, cast

from ...errors import ContainerMissing, WorkerLost
from ..engine import PODS
from ..host_link import HostLink, StreamHostLink
from ..running_container import ContainerNeeds
from .attached_streams import AttachedStreams, attached
from .cluster_access import ApiRefused, ClusterAccess, ClusterClient
from .pod_manifest import INSTANCE, LABEL, LABELLED, OWNER, PodOwner, manifest

READY_SECONDS = 55.0
"""How long a pod may take until it runs: a node may have to be added, or an image to be fetched."""
_LOOK_SECONDS = 0.2
_LOOK_SECONDS_MAX = 2.0
_GONE = 404
_EXISTS = 409
_CHARS_MAX = 63
_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"})
_DELETING: Mapping[str, object] = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
}
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class PodEngine:
    """What runs containers as pods of one namespace (`EngineTraits`). Its limits are proved inside each, not here."""

    client: ClusterClient
    image: str
    owner: PodOwner
    runtime_class: str | None = None
    left_behind: set[str] = field(default_factory=set)
    memory_held: bool = False
    processes_held: bool = False
    cpus_held: bool = False

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return f"{PODS} with {self.runtime_class}" if self.runtime_class else PODS

    @property
    def layers(self) -> list[str]:
        """Name the layer that a pod adds to what confines a worker in it."""
        return ["container"]

    async def start(self, needs: ContainerNeeds) -> RunningPod:
        """Start a pod and attach to it. Raises `ContainerMissing`, `WorkerLost`; then it was deleted again."""
        await self._delete_left_behind()
        body = manifest(needs, self.image, version("sealab"), self.owner, self.runtime_class)
        try:
            await self._create(body)
            await self._runs(needs.name)
            return RunningPod(self, needs.name, await attached(self.client, needs.name))
        except BaseException:
            await asyncio.shield(asyncio.create_task(self.delete(needs.name)))
            raise

    async def delete(self, name: str) -> bool:
        """Delete a pod; return whether it is gone, and remember it where not."""
        try:
            await self.client.ask("DELETE", f"{self.client.access.pods}/{name}", _DELETING)
        except ApiRefused as refused:
            if refused.status != _GONE:
                return self._remember(name, refused)
        except (ContainerMissing, WorkerLost) as error:
            return self._remember(name, error)
        self.left_behind.discard(name)
        return True

    async def close(self) -> None:
        """Delete what could not be deleted before, and close the connections to the API."""
        await self._delete_left_behind()
        await self.client.close()

    async def collect(self) -> int:
        """Delete the pods that earlier runs of this server left behind; return how many."""
        selector = f"{LABEL}={LABELLED},{OWNER}={self.owner.name},{INSTANCE}!={self.owner.instance}"
        try:
            found = await self.client.ask("GET", self.client.access.pods, query={"labelSelector": selector})
        except ApiRefused as refused:
            raise ContainerMissing(
                f"The cluster's API does not list pods: {refused}. Look at the server's account."
            ) from None
        names = [str(each["metadata"]["name"]) for each in found.get("items") or ()]
        return sum([await self.delete(name) for name in names])

    async def _create(self, body: Mapping[str, Any]) -> None:
        try:
            await self.client.ask("POST", self.client.access.pods, body)
        except ApiRefused as refused:
            # The name is drawn, so what has it was made by the same request, whose answer was lost.
            if (refused.status, refused.reason) == (_EXISTS, "AlreadyExists"):
                return
            if refused.status == 403:  # noqa: PLR2004 - a quota, of which others may give back something
                raise WorkerLost(
                    f"The quota of the cluster leaves no room for a pod: {refused.message[:200]}."
                ) from None
            raise ContainerMissing(
                f"The cluster takes no such pod: {refused}. Look at CONTAINER_IMAGE and its class."
            ) from None

    async def _runs(self, name: str) -> None:
        """Wait until a pod runs. Raises `WorkerLost`, which says what it waits for, or `ContainerMissing`."""
        pause, seen = _LOOK_SECONDS, "nothing is known of it"
        try:
            async with asyncio.timeout(READY_SECONDS):
                while True:
                    status = await self._status(name)
                    phase, waits = str(status.get("phase")), _waits_for(status)
                    if phase == "Running" and waits is None:
                        return
                    if phase in {"Succeeded", "Failed"}:
                        raise WorkerLost(f"A pod ended before it was attached to: {phase} {_why(status)}".strip() + ".")
                    if waits is not None and waits.partition(":")[0] in _HOPELESS:
                        raise ContainerMissing(f"A pod cannot start: {waits}. Look at CONTAINER_IMAGE.")
                    seen = waits or _why(status) or f"its phase is {phase}"
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, _LOOK_SECONDS_MAX)
        except TimeoutError:
            raise WorkerLost(f"A pod was not ready within {READY_SECONDS:g} seconds: {seen[:200]}.") from None

    async def _status(self, name: str) -> dict[str, Any]:
        try:
            said = await self.client.ask("GET", f"{self.client.access.pods}/{name}")
        except ApiRefused as refused:
            raise WorkerLost(f"A pod cannot be looked at: {refused}.") from None
        return cast("dict[str, Any]", said.get("status") or {})

    async def _delete_left_behind(self) -> None:
        for name in list(self.left_behind):
            if not await self.delete(name):
                return

    def _remember(self, name: str, error: Exception) -> bool:
        self.left_behind.add(name)
        _LOG.warning("The pod %s could not be deleted yet: %s", name, error)
        return False


class RunningPod:
    """A pod that is attached to (`RunningContainer`)."""

    def __init__(self, found: PodEngine, name: str, streams: AttachedStreams) -> None:
        self._engine = found
        self._name = name
        self._streams = streams
        self.link: HostLink = StreamHostLink(streams.reading, streams)
        self._deleting: asyncio.Task[bool] | None = None
        self._given_up = False

    async def wait(self) -> None:
        """Wait until nobody is attached any more, and it is deleted, or that was tried long enough."""
        await self._streams.ended.wait()
        if not self._given_up:
            await asyncio.shield(self._deleted())

    async def remove(self) -> None:
        """Delete it."""
        await asyncio.shield(self._deleted())

    def give_up(self) -> None:
        """Leave it to its deadline, and to whoever collects what is left behind."""
        self._given_up = True
        self._engine.left_behind.add(self._name)
        self._streams.close()

    def close(self) -> None:
        """No-op: it holds nothing once it is gone."""

    def complaint(self) -> str:
        """Return the last line that it wrote to standard error, or what the API said of its end."""
        return self._streams.complaint()

    def _deleted(self) -> asyncio.Task[bool]:
        if self._deleting is None or (self._deleting.done() and not self._deleting.result()):
            self._deleting = asyncio.create_task(self._engine.delete(self._name))
        return self._deleting


def why_not(environment: Mapping[str, str]) -> str | None:
    """Return why no pod could be had here, or None; whether they can shows when they are used."""
    if find_spec("websockets") is None:
        return "Pods need the extra `pods`: pip install 'sealab[pods]'."
    try:
        ClusterAccess.of_pod(environment)
    except ContainerMissing as error:
        return str(error)
    return None


async def find(wanted: str, image: str | None, environment: Mapping[str, str] | None = None) -> PodEngine:
    """Find the cluster that this server runs in, and delete what earlier runs of it left there.

    `wanted` is `kubernetes`, with `:` and a RuntimeClass where pods should have one. Raises `ContainerMissing`.
    """
    given = os.environ if environment is None else environment
    if (reason := why_not(given)) is not None:
        raise ContainerMissing(reason)
    if image is None:
        raise ContainerMissing("Pods need CONTAINER_IMAGE, an image that holds this version of sealab. Set it.")
    client = ClusterClient(ClusterAccess.of_pod(given))
    found = PodEngine(client, image, _owner(given), wanted.partition(":")[2] or None)
    try:
        if collected := await found.collect():
            _LOG.warning("%d pods were deleted that an earlier run of this server left behind.", collected)
    except BaseException as error:
        await client.close()
        if isinstance(error, WorkerLost):
            raise ContainerMissing(str(error)) from None
        raise
    return found


def _owner(environment: Mapping[str, str]) -> PodOwner:
    pod = environment.get("POD_NAME")
    name = re.sub(r"[^A-Za-z0-9.-]", "-", pod or socket.gethostname())[:_CHARS_MAX].strip("-.")
    return PodOwner(name or "sealab", _instance(), pod, environment.get("POD_UID"))


@cache
def _instance() -> str:
    """Return what tells this run of the server from others."""
    return uuid.uuid4().hex


def _waits_for(status: Mapping[str, Any]) -> str | None:
    """Return what the container of a pod waits for, or None."""
    for each in status.get("containerStatuses") or ():
        if (waiting := (each.get("state") or {}).get("waiting")) is not None:
            return f"{waiting.get('reason')}: {waiting.get('message') or ''}".strip(": ")
        if (each.get("state") or {}).get("running") is None:
            return "its container does not run yet"
    return None


def _why(status: Mapping[str, Any]) -> str:
    """Return what the cluster says of a pod that does not run, such as that no node has room."""
    said = [str(status.get("message") or "")]
    said += [str(each.get("message") or "") for each in status.get("conditions") or () if each.get("status") != "True"]
    return " ".join(each for each in said if each)[:200]
