"""A server that speaks as much of the Kubernetes API as sealab uses, over HTTPS and WebSockets, with a kubelet of its own.

It takes no object that the API's schema or the Pod Security Standard `restricted` refuses. `kubelet` says which command
stands for the container of a pod; it runs as a process here, whose streams whoever is attached to the pod gets.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import kubernetes_validate
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from ....waiting import until

NAMESPACE = "sealab"
TOKEN = "a-token-of-the-cluster"
API_VERSION = "1.34"
_PATH = "/api/v1/namespaces/{namespace}/pods"

Manifest = dict[str, Any]
Answer = tuple[int, str]
"""A status and the reason that stands in the object Status."""


@dataclass
class Pod:
    """One pod: what was asked for, what is told of it, and the process that stands for its container."""

    manifest: Manifest
    status: Manifest
    process: asyncio.subprocess.Process | None = None


@dataclass
class FakeCluster:
    """The state of the cluster, which tests look at and disturb.

    `refusals` maps a method and the last part of a path to answers that are given first; one that stands for ever is
    given by `always`. So many answers to the making of a pod are lost as `loses_answers` says. `waits_for` is what every container then waits for, so that none runs.
    """

    kubelet: Callable[[Manifest], Awaitable[list[str]]]
    folder: Path
    port: int = 0
    pods: dict[str, Pod] = field(default_factory=dict)
    made: list[Manifest] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refusals: dict[str, list[Answer]] = field(default_factory=dict)
    always: dict[str, Answer] = field(default_factory=dict)
    waits_for: Manifest | None = None
    loses_answers: int = 0
    protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")
    attached: set[asyncio.Task[Any]] = field(default_factory=set)
    removed: Callable[[Manifest], Awaitable[None]] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What a pod of the cluster has in its environment."""
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.port),
            "POD_NAME": "sealab-0",
            "POD_UID": "uid-0",
        }

    def cut(self) -> None:
        """Cut every connection that is attached to a pod."""
        for task in self.attached:
            task.cancel()

    async def create(self, request: Request) -> Response:
        body = await request.json()
        try:
            kubernetes_validate.validate(body, API_VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            return _status(422, "Invalid", str(error.message))
        if body["kind"] != "Pod" or (fault := _insecure(body["spec"])):
            return _status(403, "Forbidden", f"violates PodSecurity restricted: {fault}")
        name = body["metadata"]["name"]
        if name in self.pods:
            return _status(409, "AlreadyExists", f'pods "{name}" already exists')
        self.made.append(body)
        pod = self.pods[name] = Pod(body, {"phase": "Pending"})
        if self.waits_for is None:
            await self._run(pod)
        else:
            pod.status["containerStatuses"] = [{"state": {"waiting": self.waits_for}}]
        if self.loses_answers:
            self.loses_answers -= 1
            return _status(504, "Timeout", "the request took too long")
        return JSONResponse({**body, "status": pod.status}, 201)

    async def _run(self, pod: Pod) -> None:
        command = await self.kubelet(pod.manifest)
        pipe = asyncio.subprocess.PIPE
        pod.process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        pod.status |= {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}

    async def list(self, request: Request) -> Response:
        wanted = [each.partition("!=") if "!=" in each else each.partition("=") for each in _selector(request)]
        found = [
            pod.manifest
            for pod in self.pods.values()
            if all(
                (pod.manifest["metadata"].get("labels", {}).get(key) == value) == (how == "=")
                for key, how, value in wanted
            )
        ]
        return JSONResponse({"kind": "PodList", "apiVersion": "v1", "items": found})

    async def one(self, request: Request) -> Response:
        name = request.path_params["name"]
        pod = self.pods.get(name)
        if pod is None:
            return _status(404, "NotFound", f'pods "{name}" not found')
        if request.method == "GET":
            return JSONResponse({**pod.manifest, "status": pod.status})
        options = await request.json()
        assert options["kind"] == "DeleteOptions"
        assert options["gracePeriodSeconds"] == 0
        del self.pods[name]
        self.deleted.append(name)
        await self._end(pod)
        return JSONResponse({**pod.manifest, "status": pod.status})

    async def _end(self, pod: Pod) -> None:
        if pod.process is not None:
            try:
                if self.removed is not None:
                    await self.removed(pod.manifest)
                with suppress(ProcessLookupError):
                    pod.process.kill()
                await pod.process.wait()
            finally:
                # Who asked may have gone, and children of the killed process may hold its streams for a while longer.
                cast("Any", pod.process)._transport.close()

    async def attach(self, websocket: WebSocket) -> None:
        pod = self.pods.get(websocket.path_params["name"])
        offered = websocket.scope["subprotocols"]
        chosen = next((each for each in self.protocols if each in offered), None)
        if self._refusal("WS", "attach", websocket.headers.get("authorization")) is not None or pod is None:
            await websocket.close()  # before it is accepted: an answer 403
            return
        assert websocket.query_params["container"] == pod.manifest["spec"]["containers"][0]["name"]
        await websocket.accept(subprotocol=chosen)
        process = pod.process
        assert process is not None
        tasks = [
            asyncio.create_task(_to_client(websocket, 1, process.stdout)),
            asyncio.create_task(_to_client(websocket, 2, process.stderr)),
            asyncio.create_task(_to_container(websocket, process)),
        ]
        here = asyncio.current_task()
        assert here is not None
        self.attached.add(here)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if process.stdout is not None and process.stdout.at_eof():
                await process.wait()
                pod.status["phase"] = "Succeeded" if process.returncode == 0 else "Failed"
                await asyncio.wait(tasks[:2])
                with suppress(RuntimeError):
                    await websocket.send_bytes(b"\x03" + json.dumps({"status": "Success"}).encode())
                    await websocket.close()
        except asyncio.CancelledError:  # the connection is cut
            with suppress(RuntimeError):
                await websocket.close(1011)
        finally:
            self.attached.discard(here)
            for task in tasks:
                task.cancel()
            if process.stdin is not None:
                process.stdin.close()  # stdinOnce

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        last = scope["path"].rpartition("/")[2]
        request = Request(scope)
        self.asked.append(f"{scope['method']} {last}")
        kind = "pods" if last == "pods" else "pod"
        refused = self._refusal(scope["method"], kind, request.headers.get("authorization"))
        await (self._app if refused is None else refused)(scope, receive, send)

    def _refusal(self, method: str, kind: str, authorization: str | None) -> Response | None:
        if authorization != f"Bearer {TOKEN}":
            return _status(401, "Unauthorized", "Unauthorized")
        key = f"{method} {kind}"
        if self.refusals.get(key):
            status, reason = self.refusals[key].pop(0)
        elif key in self.always:
            status, reason = self.always[key]
        else:
            return None
        return _status(status, reason, f"{key} is refused on purpose")

    def __post_init__(self) -> None:
        self._app = Starlette(
            routes=[
                Route(_PATH, self.create, methods=["POST"]),
                Route(_PATH, self.list, methods=["GET"]),
                Route(_PATH + "/{name}", self.one, methods=["GET", "DELETE"]),
                WebSocketRoute(_PATH + "/{name}/attach", self.attach),
            ]
        )


@asynccontextmanager
async def fake_cluster(folder: Path, kubelet: Callable[[Manifest], Awaitable[list[str]]]) -> AsyncIterator[FakeCluster]:
    """Run one on a free port of loopback; `folder` becomes that of a pod's service account."""
    key_file = _account(folder)
    cluster = FakeCluster(kubelet, folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cluster.port = listener.getsockname()[1]
        config = uvicorn.Config(
            cluster,
            log_config=None,
            lifespan="off",
            ws="websockets-sansio",
            ssl_certfile=str(folder / "ca.crt"),
            ssl_keyfile=str(key_file),
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]  # those of the tests stay
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield cluster
        finally:
            for pod in list(cluster.pods.values()):
                await cluster._end(pod)
            for connection in list(server.server_state.connections):
                # Its own way of closing fails for a connection that the other side is closing, and is full.
                cast("Any", connection).transport.abort()
            await until(lambda: not server.server_state.connections)
            server.should_exit = True
            await serving


def _account(folder: Path) -> Path:
    """Write what a pod's service account has, and return the key of the API's certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file = folder.parent / "key.pem"
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "namespace").write_text(NAMESPACE)
    return key_file


def _status(code: int, reason: str, message: str) -> Response:
    headers = {"Retry-After": "0"} if code == 429 else {}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return JSONResponse(body, code, headers)


def _selector(request: Request) -> list[str]:
    return [each for each in request.query_params.get("labelSelector", "").split(",") if each]


def _insecure(spec: Manifest) -> str | None:
    """Return what the Pod Security Standard `restricted` forbids of a pod, and what a sandbox may not have."""
    pod = spec.get("securityContext", {})
    if pod.get("seccompProfile", {}).get("type") != "RuntimeDefault" or not pod.get("runAsNonRoot"):
        return "it has no filter, or may be root"
    if spec.get("automountServiceAccountToken") is not False or any(
        spec.get(key) for key in ("hostNetwork", "hostPID")
    ):
        return "it has a token, or the node's network or processes"
    if not spec.get("activeDeadlineSeconds") or spec.get("restartPolicy") != "Never":
        return "it has no end"
    for container in spec["containers"]:
        confined = container.get("securityContext", {})
        if confined.get("allowPrivilegeEscalation") is not False or confined.get("capabilities") != {"drop": ["ALL"]}:
            return "it may gain privileges"
        if confined.get("readOnlyRootFilesystem") is not True:
            return "its root can be written"
        if not container["resources"]["limits"].get("memory"):
            return "it has no limit of memory"
    if any("hostPath" in volume for volume in spec.get("volumes", [])):
        return "it sees the node's files"
    return None


async def _to_client(websocket: WebSocket, channel: int, stream: asyncio.StreamReader | None) -> None:
    assert stream is not None
    with suppress(RuntimeError, WebSocketDisconnect):
        while data := await stream.read(1 << 15):
            await websocket.send_bytes(bytes([channel]) + data)


async def _to_container(websocket: WebSocket, process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    with suppress(WebSocketDisconnect, ConnectionError, RuntimeError):
        while True:
            message = await websocket.receive_bytes()
            assert message[0] == 0, "a client sends to the standard input alone"
            process.stdin.write(message[1:])
            await process.stdin.drain()
