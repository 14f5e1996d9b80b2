"""An issuer that answers as a test says, however odd, over real HTTP. What is usual, the real provider is asked."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from sealab.server.base.settings import Settings
from sealab.server.governance.access.oauth_verifier import OAuthVerifier

from ...clocks import Clock
from ...identity_provider.running import RESOURCE, SERVER, SigningKey


@dataclass
class ScriptedIssuer:
    """`answers` maps a path to a status, headers and a body; what is asked is counted by path."""

    url: str = ""
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    forms: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    held: threading.Event | None = None
    """Answers to POST wait for it."""

    def answer(self, path: str, content: object, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.answers[path] = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)

    def metadata(self, **changed: Any) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "introspection_endpoint": f"{self.url}/introspect",
            **changed,
        }

    def publish(self, *keys: SigningKey) -> None:
        """Answer as an issuer that works, with these keys."""
        self.answer("/.well-known/oauth-authorization-server", self.metadata())
        self.answer("/keys", {"keys": [key.public_jwk for key in keys]})

    def settings(self, **more: Any) -> Settings:
        given = {"oauth_client_id": SERVER[0], "oauth_client_secret": SERVER[1], **more}
        return Settings(oauth_issuer=self.url, oauth_audience=RESOURCE, **given)


@contextmanager
def scripted_issuer() -> Iterator[ScriptedIssuer]:
    issuer = ScriptedIssuer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            issuer.asked[self.path] += 1
            status, headers, body = issuer.answers.get(self.path, (404, {}, b"{}"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            issuer.forms.append((dict(self.headers), body))
            if issuer.held is not None:
                issuer.held.wait(30)
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()


class MakeVerifier(Protocol):
    """Makes a verifier that is closed when the test ends."""

    def __call__(self, settings: Settings, clock: Clock | None = None) -> OAuthVerifier: ...
