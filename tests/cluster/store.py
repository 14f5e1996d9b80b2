"""An S3-compatible server from the registries, with a bucket, behind a relay that can be slow or refuse."""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.object_stores import ATOMIC_MOTO, S3RVER, UPSTREAMS

from .network import Network

BUCKET = "sealab"
KEYS = {"moto": ("testing", "testing"), "s3rver": ("S3RVER", "S3RVER")}
"""The credentials that each takes."""
START_SECONDS = 180.0


class Store:
    """A running store: the settings by which replicas reach it, and its relay."""

    def __init__(self, kind: str, network: Network, relay: subprocess.Popen[str]) -> None:
        self.kind = kind
        key, secret = KEYS[kind]
        self.url = f"s3://{BUCKET}/team"
        self.endpoint = f"http://{network.ip('store')}:{network.port('store')}"
        self.environment = {
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false",
        }
        self._relay = relay

    def is_told(self, line: str) -> int:
        """Tell the relay `count`, `pass`, `slow SECONDS` or `down`; return how many requests it has passed on."""
        assert self._relay.stdin is not None
        assert self._relay.stdout is not None
        self._relay.stdin.write(line + "\n")
        self._relay.stdin.flush()
        return int(self._relay.stdout.readline())


def program(kind: str) -> list[str]:
    """Return the command of a store. Raises `LookupError` where it is not installed."""
    if kind == "moto":
        return [sys.executable, str(ATOMIC_MOTO)]
    if not S3RVER.exists():
        raise LookupError(f"There is no {kind} here. `make upstreams` installs it.")
    return [str(UPSTREAMS / "node"), str(S3RVER)]


@contextmanager
def store_of(kind: str, network: Network) -> Iterator[Store]:
    """Run a store with a bucket."""
    outer, inner = network.port("store"), network.port("store", "inner")
    with tempfile.TemporaryDirectory(prefix="sealab-store-") as folder:
        command = [*network.launcher("store"), *program(kind)]
        if kind == "moto":
            command += ["-H", network.ip("store"), "-p", str(inner)]
        else:
            command += ["-d", folder, "-a", network.ip("store"), "-p", str(inner), "-s", "--no-vhost-buckets"]
            command += ["--configure-bucket", BUCKET]
        relayed = [sys.executable, "-P", str(Path(__file__).with_name("relay.py")), network.ip("store")]
        relayed += [str(outer), network.ip("store"), str(inner)]
        with (
            _running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
            _running(
                [*network.launcher("store"), *relayed], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as relay,
        ):
            assert relay.stdout.readline().strip() == "READY"
            _make_bucket(kind, network.ip("store"), inner)
            yield Store(kind, network, relay)


@contextmanager
def _running(command: list[str], **options) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def _make_bucket(kind: str, host: str, port: int) -> None:
    """Wait until the store answers, and make the bucket where it was not given one at its start."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            connection = http.client.HTTPConnection(host, port, timeout=5)
            connection.request("PUT" if kind == "moto" else "GET", f"/{BUCKET}")
            status = connection.getresponse().status
            connection.close()
        except OSError:
            if time.monotonic() > deadline:
                raise AssertionError(f"{kind} did not start") from None
            time.sleep(0.05)
        else:
            assert kind != "moto" or status == 200, f"{kind} made no bucket: HTTP {status}"
            return
