"""Stores of other clouds for tests: Azurite, and a stand-in for Google Cloud Storage, of which no emulator is packaged."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import json
import os
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

from .waiting import wait_until

AZURITE = Path(__file__).resolve().parents[1] / ".azurite"
_MAIN = AZURITE / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
_KEY = base64.b64encode(b"k" * 64).decode()


@dataclass(frozen=True, slots=True)
class Cloud:
    """A store: the address of a bucket in it, and the variables with which a client finds it."""

    scheme: str
    bucket: str
    environment: Mapping[str, str]


def has_azurite() -> bool:
    """Return whether `make azure` has installed it."""
    return _MAIN.exists()


@contextmanager
def azurite() -> Iterator[Cloud]:
    """Run Azurite, which keeps all in memory, with one container."""
    port = _free_port()
    command = [str(AZURITE / "node"), str(_MAIN), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"sealab:{_KEY}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _listens(port))
            _make_container(port)
            yield Cloud(
                "az",
                "files",
                {
                    "AZURE_STORAGE_ACCOUNT_NAME": "sealab",
                    "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
                    "AZURE_STORAGE_USE_EMULATOR": "true",
                    "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
                    "AZURE_ALLOW_HTTP": "true",
                },
            )
        finally:
            process.kill()


def _make_container(port: int) -> None:
    """Make the container, as Azure's "Create Container" and "Authorize with Shared Key" have it."""
    date, version = email.utils.formatdate(usegmt=True), "2021-12-02"
    lines = "\n" * 12
    said = f"PUT{lines}x-ms-date:{date}\nx-ms-version:{version}\n/sealab/sealab/files\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(_KEY), said.encode(), "sha256")).decode()
    headers = {"x-ms-date": date, "x-ms-version": version, "Authorization": f"SharedKey sealab:{signature}"}
    url = f"http://127.0.0.1:{port}/sealab/files?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=30).close()


@dataclass
class _Held:
    content: bytes
    generation: int

    @property
    def headers(self) -> dict[str, str]:
        return {
            "ETag": f'"{hashlib.md5(self.content, usedforsecurity=False).hexdigest()}"',
            "Last-Modified": email.utils.formatdate(usegmt=True),
            "x-goog-generation": str(self.generation),
        }


@dataclass
class _Google:
    """What the stand-in holds; one request after the other."""

    objects: dict[str, _Held] = field(default_factory=dict)
    generations: int = 0
    turn: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def google() -> Iterator[Cloud]:
    """Run a stand-in that follows Google's documentation of its XML API, as far as the client here asks for it.

    A write is conditional by `x-goog-if-generation-match` alone, 0 for an object that must not be there; `If-Match`
    counts for reading. So it fails what the client would do wrong at Google's, as far as the documentation says so.
    """
    held = _Google()

    class Handler(_Handler):
        google = held

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    account = {
        "gcs_base_url": f"http://127.0.0.1:{server.server_address[1]}",
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    try:
        yield Cloud("gs", "files", {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "GOOGLE_ALLOW_HTTP": "true"})
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    google: _Google
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the overridden one
        """Say nothing."""

    def do_PUT(self) -> None:
        content = self._body()
        with self.google.turn:
            found = self.google.objects.get(self._key())
            expected = self.headers.get("x-goog-if-generation-match")
            if expected is not None and int(expected) != (found.generation if found else 0):
                self._answer(412)
                return
            if (source := self.headers.get("x-goog-copy-source")) is not None:
                copied = self.google.objects.get(urllib.parse.unquote(source).lstrip("/").partition("/")[2])
                if copied is None:
                    self._answer(404)
                    return
                content = copied.content
            self.google.generations += 1
            made = self.google.objects[self._key()] = _Held(content, self.google.generations)
            self._answer(200, headers=made.headers)

    def do_GET(self) -> None:
        with self.google.turn:
            if not self._key():
                self._answer(200, self._listing(), {"Content-Type": "application/xml"})
                return
            found = self.google.objects.get(self._key())
            if found is None:
                self._answer(404)
            elif self.headers.get("If-Match") not in {None, found.headers["ETag"]}:
                self._answer(412)
            else:
                self._answer(200, found.content, found.headers)

    do_HEAD = do_GET  # noqa: N815 - the name by which `http.server` finds it

    def do_DELETE(self) -> None:
        with self.google.turn:
            self._answer(404 if self.google.objects.pop(self._key(), None) is None else 204)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _key(self) -> str:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        return path.lstrip("/").partition("/")[2]

    def _listing(self) -> bytes:
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        contents, folders = "", set()
        for key, each in sorted(self.google.objects.items()):
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in key[len(prefix) :]:
                folders.add(prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter)
                continue
            contents += (
                f"<Contents><Key>{escape(key)}</Key><Size>{len(each.content)}</Size>"
                f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{escape(each.headers['ETag'])}</ETag>"
                "</Contents>"
            )
        common = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders)
        return f"<ListBucketResult>{contents}{common}</ListBucketResult>".encode()

    def _answer(self, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
