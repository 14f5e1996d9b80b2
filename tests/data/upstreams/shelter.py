"""A small HTTP service for animals that look for a home, with its OpenAPI document, for the tests."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

ANIMAL = {
    "type": "object",
    "required": ["id", "name", "kind"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "kind": {"type": "string", "enum": ["cat", "dog", "owl"]},
        "age": {"type": "number", "nullable": True, "minimum": 0, "exclusiveMinimum": True},
        "mother": {"$ref": "#/components/schemas/Animal"},
    },
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shelter", "version": "4.2"},
    "servers": [{"url": "/{stage}", "variables": {"stage": {"default": "v1", "enum": ["v1", "v2"]}}}],
    "paths": {
        "/animals": {
            "get": {
                "operationId": "listAnimals",
                "summary": "List the animals that look for a home",
                "parameters": [
                    {"name": "kind", "in": "query", "schema": {"type": "string"}, "description": "Only of this kind"},
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 10}},
                ],
                "responses": {
                    "200": {
                        "description": "Some",
                        "content": {
                            "application/json": {
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Animal"}}
                            }
                        },
                    }
                },
            },
            "post": {
                "operationId": "take-in",
                "summary": "Take an animal in",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Animal"}}}},
                "responses": {"201": {"$ref": "#/components/responses/One"}},
            },
        },
        "/animals/{animal-id}": {
            "parameters": [{"$ref": "#/components/parameters/Which"}],
            "get": {
                "summary": "Look an animal up",
                "responses": {"200": {"$ref": "#/components/responses/One"}, "404": {"description": "None"}},
            },
            "delete": {"operationId": "giveAway", "responses": {"204": {"description": "Gone"}}},
        },
        "/animals/{animal-id}/picture": {
            "parameters": [{"$ref": "#/components/parameters/Which"}],
            "get": {
                "operationId": "picture",
                "responses": {"200": {"description": "It", "content": {"image/png": {}}}},
            },
        },
    },
    "components": {
        "parameters": {"Which": {"name": "animal-id", "in": "path", "required": True, "schema": {"type": "integer"}}},
        "responses": {
            "One": {
                "description": "One",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Animal"}}},
            }
        },
        "schemas": {"Animal": ANIMAL},
    },
}


@dataclass(frozen=True)
class Request:
    """What a service was sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Service:
    """A running service. `document` is what it gives at `/openapi.json`, and `answers` what it says by method and path."""

    url: str
    document: Any = None
    requests: list[Request] = field(default_factory=list)
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)

    @property
    def calls(self) -> list[Request]:
        return [each for each in self.requests if each.target != "/openapi.json"]

    def says(self, call: str, value: object, status: int = 200, **headers: str) -> None:
        """Set its answer to a call, such as `GET /x`: JSON, or bytes and a content type."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.answers[call] = status, {"content-type": "application/json", **named}, body


@contextmanager
def serving(document: Any = DOCUMENT) -> Iterator[Service]:
    """Run a service on a free port of the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.requests.append(Request(self.command, self.path, headers, body))
            status, named, content = self._found()
            self.send_response(status)
            for name, value in named.items():
                self.send_header(name, value)
            if not named.keys() & {"content-length", "transfer-encoding"}:
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _found(self) -> tuple[int, dict[str, str], bytes]:
            path = self.path.partition("?")[0]
            if path == "/openapi.json":
                given = service.document
                text = given if isinstance(given, bytes) else json.dumps(given).encode()
                return 200, {"content-type": "application/json"}, text
            nothing = {"type": "about:blank", "title": "Not Found", "detail": f"there is nothing at {path}"}
            problem = {"content-type": "application/problem+json"}
            return service.answers.get(f"{self.command} {path}", (404, problem, json.dumps(nothing).encode()))

        def log_message(self, *_: object) -> None:
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
        setattr(Handler, f"do_{method}", Handler._answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service = Service(f"http://127.0.0.1:{server.server_port}", document)
        service.says("GET /v1/animals", [{"id": 1, "name": "Mia", "kind": "cat", "age": None}])
        service.says("POST /v1/animals", {"id": 2, "name": "Bo", "kind": "dog"}, 201)
        service.says("GET /v1/animals/1", {"id": 1, "name": "Mia", "kind": "cat"})
        service.says("DELETE /v1/animals/1", b"", 204)
        service.says("GET /v1/animals/1/picture", PIXEL, content_type="image/png")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
