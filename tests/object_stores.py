"""S3 servers for tests: moto's, which keeps conditions, and s3rver, which does not. Each is lenient in its own way."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import obstore
import obstore.store
import pytest

from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.store_url import StoreUrl

UPSTREAMS = Path(__file__).resolve().parents[1] / ".upstreams"
S3RVER = UPSTREAMS / "node_modules" / "s3rver" / "bin" / "s3rver.js"
ATOMIC_MOTO = Path(__file__).with_name("atomic_moto.py")
_STARTING_SECONDS = 180.0
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server on this machine, its address, and the environment with which its clients find it."""

    kind: str
    port: int
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "S3RVER",
            "AWS_SECRET_ACCESS_KEY": "S3RVER",
            "AWS_REGION": "us-east-1",
        }

    def bucket(self) -> str:
        """Make a bucket and return its name."""
        name = f"files-{os.getpid()}-{next(_numbers)}"
        request = urllib.request.Request(f"{self.address}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return name

    def opened(self, bucket: str, prefix: str, process: pytest.MonkeyPatch) -> Bucket:
        """Return the objects below a prefix, as a server has them: it finds the store by variables of the process."""
        for name, value in self.environment.items():
            process.setenv(name, value)
        return Bucket(StoreUrl("s3", bucket, prefix))

    def client(self, bucket: str, prefix: str | None = None) -> obstore.store.S3Store:
        """Return a client of another program."""
        config = {"endpoint": self.address, "access_key_id": "S3RVER", "secret_access_key": "S3RVER"}
        return obstore.store.S3Store(
            bucket, prefix=prefix, region="us-east-1", config=config, client_options={"allow_http": True}
        )


@contextmanager
def moto() -> Iterator[S3Server]:
    """Run moto's server, which keeps everything in memory."""
    port = _free_port()
    command = [sys.executable, str(ATOMIC_MOTO), "--host", "127.0.0.1", "--port", str(port)]
    with _running(S3Server("moto", port, _started(command))) as server:
        yield server


@contextmanager
def s3rver(folder: Path) -> Iterator[S3Server]:
    """Run s3rver, which keeps everything below a folder; `make upstreams` installs it."""
    port = _free_port()
    command = [str(UPSTREAMS / "node"), str(S3RVER), "--address", "127.0.0.1", "--port", str(port)]
    command += ["--directory", str(folder), "--no-vhost-buckets", "--silent"]
    with _running(S3Server("s3rver", port, _started(command))) as server:
        yield server


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


@contextmanager
def _running(server: S3Server) -> Iterator[S3Server]:
    try:
        deadline = time.monotonic() + _STARTING_SECONDS
        while not _answers(server):
            assert server.process.poll() is None, f"{server.kind} ended"
            assert time.monotonic() < deadline, f"{server.kind} does not answer"
            time.sleep(0.05)
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def _answers(server: S3Server) -> bool:
    with suppress(OSError):
        try:
            urllib.request.urlopen(server.address, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
        return True
    return False


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
