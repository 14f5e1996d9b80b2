"""Security boundary: reads an OpenAPI document from an address or a file, and follows references within it alone.

Source: OpenAPI Specification 3.0.4 and 3.1.1, sections "Reference Object" and "Server Object".
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote, urljoin, urlsplit

import httpx2

from ..configuration import ServerConfig
from ..errors import ConnectFailed, DefinitionRefused
from ..json_lines import LARGE_CHARS, ReadJson
from ..models import Json
from ..names import test_of
from ..threads import InThread
from ..yaml_values import read_yaml
from .exchange import ADDRESS_CHARS_MAX, ExchangeFailed, exchanged, origin

DOCUMENT_BYTES_MAX = 32 * 1024 * 1024
YAML_BYTES_MAX = 4 * 1024 * 1024
"""YAML takes thirty times as long to read as JSON."""

_REFERENCES_MAX = 20
_POINTER_CHARS_MAX = 1_000
_VERSION = re.compile(r"3\.[0-2](?:\.\d+(?:-[\w.]+)?)?")
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_OK = 200


class UnusablePart(Exception):
    """A part of the document cannot be used; the text says why, in words that follow a colon."""


@dataclass(frozen=True, slots=True)
class Document:
    """An OpenAPI document of version 3.0, 3.1 or 3.2. `where` is its address or path."""

    root: Mapping[str, Json]
    version: str
    where: str

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas are those of OpenAPI 3.0, which are not quite JSON Schema."""
        return self.version.startswith("3.0")

    @property
    def title(self) -> str:
        """How the document names its service; may be empty."""
        return self._of_info("title")

    @property
    def release(self) -> str:
        """The version of the service as the document states it; may be empty."""
        return self._of_info("version")

    def _of_info(self, key: str) -> str:
        found = mapping(self.root.get("info")).get(key)
        return found[:200] if isinstance(found, str) else ""

    def resolved(self, node: Json) -> Mapping[str, Json]:
        """Return the object that a node is or refers to. Raises `UnusablePart`."""
        for _ in range(_REFERENCES_MAX):
            if not isinstance(node, Mapping):
                raise UnusablePart("a part of it is not an object")
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            node = self.at(reference)
        raise UnusablePart("its references lead in a circle")

    def at(self, reference: str) -> Json:
        """Return what a reference leads to. Raises `UnusablePart` where it leads nowhere, or out of the document."""
        if not reference.startswith("#"):
            raise UnusablePart(
                f"it refers to {reference[:100]!r}, and only references within the document are followed"
            )
        if len(reference) > _POINTER_CHARS_MAX:
            raise UnusablePart("a reference in it is too long")
        node: Json = self.root
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdecimal() and len(key) < 10 and int(key) < len(node):  # noqa: PLR2004 - digits of an index
                node = node[int(key)]
            else:
                raise UnusablePart(f"it refers to {reference[:100]!r}, which is not there")
        return node


def mapping(node: Json) -> Mapping[str, Json]:
    """Return an object as it is, and an empty one for anything else."""
    return node if isinstance(node, Mapping) else {}


async def read_document(
    config: ServerConfig, client: httpx2.AsyncClient, read_large: ReadJson, in_thread: InThread
) -> Document:
    """Read the document of a server. Raises `ConnectFailed`."""
    if origin(config.openapi) is None:
        body, where = await asyncio.to_thread(_from_file, config), config.openapi
    else:
        body, where = await _fetched(config, client), config.openapi
    root = await _parsed(config, body, read_large, in_thread)
    version = root.get("openapi")
    version = str(version) if isinstance(version, float) else version  # of YAML
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        kind = f"Swagger {root['swagger']!s:.10}" if "swagger" in root else f"the version {version!r:.40}"
        raise ConnectFailed(
            f"The document of the server {config.name!r} is of {kind}, and OpenAPI 3.0 to 3.2 is needed. "
            "Convert it, or name another document."
        )
    return Document(root, version, where)


def base_of(document: Document, config: ServerConfig) -> str:
    """Return the address below which the paths of the document lie. Raises `ConnectFailed`.

    What the operator gives as `url` counts. Else a document from an address may only name its own origin: the
    operator's headers would go wherever it says.
    """
    if config.url:
        return config.url
    try:
        base = server_address(document, document.root.get("servers"))
    except UnusablePart as reason:
        raise ConnectFailed(
            f"The document of the server {config.name!r} cannot be used: {reason}. {_GIVE_URL}"
        ) from None
    here = origin(document.where)
    if origin(base) is None:
        raise ConnectFailed(
            f"The document of the server {config.name!r} does not say at which address its service is. {_GIVE_URL}"
        )
    if here is not None and origin(base) != here:
        raise _unusable(
            config,
            f"The document of the server {config.name!r} says that its service is at {base}, another origin than its "
            f"own. If that is right, {_GIVE_URL[0].lower()}{_GIVE_URL[1:]}",
        )
    return base


_GIVE_URL = 'Give the address as "url" in mcp.json, or as --url to `sealab servers add`.'


def server_address(document: Document, servers: Json) -> str:
    """Return the first address of a list of servers, its variables at their defaults. Raises `UnusablePart`."""
    first = mapping(servers[0]) if isinstance(servers, list) and servers else {}
    template = first.get("url", "/")
    if not isinstance(template, str) or len(template) > ADDRESS_CHARS_MAX or not template.isascii():
        raise UnusablePart("the address of its server is not a short ASCII text")
    variables = mapping(first.get("variables"))

    def value(found: re.Match[str]) -> str:
        default = mapping(variables.get(found[1])).get("default")
        if not isinstance(default, str | int) or len(str(default)) > ADDRESS_CHARS_MAX:
            raise UnusablePart(f"the variable {found[1][:40]!r} of its server's address has no default")
        return str(default)

    address = _VARIABLE.sub(value, template)
    if len(address) > ADDRESS_CHARS_MAX or not address.isascii():
        raise UnusablePart("the address of its server is not a short ASCII text")
    if origin(document.where) is None:
        return address
    try:
        return urljoin(document.where, address)
    except ValueError:
        raise UnusablePart("the address of its server cannot be read") from None


def _from_file(config: ServerConfig) -> bytes:
    try:
        file = os.open(
            config.openapi, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        )  # a pipe without a writer does not block
        with os.fdopen(file, "rb") as reading:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise _unusable(
                    config,
                    f"The document {config.openapi} of the server {config.name!r} is not a regular file. Name another.",
                )
            body = reading.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        raise _unusable(
            config,
            f"The document {config.openapi} of the server {config.name!r} cannot be read: {error.strerror}. "
            'Correct "openapi" in mcp.json.',
        ) from None
    if len(body) > DOCUMENT_BYTES_MAX:
        raise ConnectFailed(_too_large(config, DOCUMENT_BYTES_MAX))
    return body


async def _fetched(config: ServerConfig, client: httpx2.AsyncClient) -> bytes:
    # The headers are for the service: a document from elsewhere is fetched without them.
    own = not config.url or origin(config.url) == origin(config.openapi)
    headers = {**(config.headers if own else {}), "accept": "application/json, application/yaml, */*;q=0.5"}
    try:
        answer = await exchanged(
            client, client.build_request("GET", config.openapi, headers=headers), DOCUMENT_BYTES_MAX
        )
    except ExchangeFailed as error:
        raise _unusable(
            config,
            f"The document {_shown(config.openapi)} of the server {config.name!r} cannot be fetched: {error}. "
            'Look whether the server runs, or correct "openapi" in mcp.json.',
        ) from None
    if answer.status != _OK:
        leads = f", which leads to {_shown(answer.location)}" if answer.location else ""
        raise _unusable(
            config,
            f"The document {_shown(config.openapi)} of the server {config.name!r} was answered with HTTP status "
            f'{answer.status}{leads}. Correct "openapi" or "headers" in mcp.json.',
        )
    return answer.body


def _unusable(config: ServerConfig, for_operator: str) -> ConnectFailed:
    """Return the error for a document that cannot be used; `for_operator` names its address or path."""
    message = f"The OpenAPI document of the server {config.name!r} cannot be used. See {test_of(config.name)}."
    return ConnectFailed(message, for_operator=for_operator)


def _shown(address: str) -> str:
    """Return an address without its query, which may hold a key."""
    return address.partition("?")[0][:200]


async def _parsed(config: ServerConfig, body: bytes, read_large: ReadJson, in_thread: InThread) -> Mapping[str, Json]:
    test = f"See {test_of(config.name)}."
    try:
        text = body.decode("utf-8-sig")
        if text.lstrip()[:1] == "{":
            content = await read_large(text) if len(text) > LARGE_CHARS else json.loads(text)
        elif len(body) > YAML_BYTES_MAX:
            raise ConnectFailed(_too_large(config, YAML_BYTES_MAX, " of YAML"))
        else:
            content = cast("Json", await in_thread(lambda check: read_yaml(body, check)))
    except (ValueError, RecursionError, DefinitionRefused) as error:
        raise ConnectFailed(
            f"The document of the server {config.name!r} cannot be used: {_fault_of(error)} {test}"
        ) from None
    if not isinstance(content, Mapping):
        raise ConnectFailed(
            f"The document of the server {config.name!r} is not an OpenAPI document. "
            f'Name another as "openapi" in mcp.json. {test}'
        )
    return content


def _fault_of(error: Exception) -> str:
    """Return why a document cannot be read, and what to do."""
    match error:
        case DefinitionRefused():
            return str(error)
        case UnicodeDecodeError():
            return f"it is not UTF-8 text (byte {error.start}). Save it as UTF-8."
        case json.JSONDecodeError():
            return f"it is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}. Correct that."
        case RecursionError():
            return "it is nested too deeply. Make it flatter."
    return f"it is not valid JSON: {error!s:.160}. Correct that."


def _too_large(config: ServerConfig, most: int, of: str = "") -> str:
    return (
        f"The document of the server {config.name!r} has more than the {most // 1024**2} MB{of} that are taken. "
        "Give a smaller one, such as the part that is needed."
    )


def is_within(address: str, base: str) -> bool:
    """Return whether an address lies at the same origin as another."""
    return origin(address) is not None and origin(address) == origin(base)


def path_and_query(base: str) -> tuple[str, str]:
    """Return a base address without its trailing slash and query, and the query."""
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", parts.query
