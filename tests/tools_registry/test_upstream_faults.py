"""Every error about an upstream server, whatever the server wrote: whole sentences, each of which ends once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, METHOD_NOT_FOUND, PARSE_ERROR, REQUEST_TIMEOUT

from sealab.tools_registry.configuration import ServerConfig
from sealab.tools_registry.errors import RegistryError, sentence
from sealab.tools_registry.upstream import upstream_faults as faults
from sealab.tools_registry.upstream.message_faults import HttpFault, MessageFault, error_of

from .upstream_servers import configured

ENTRIES = {
    "local": {"command": "sh"},
    "gateway": {"command": "docker", "args": ["mcp", "gateway", "run"]},
    "remote": {"type": "http", "url": "https://x.example/mcp", "headers": {"X-Key": "k"}},
    "signed": {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "k"}},
}
SAID = [
    "",
    "no",
    "no.",
    "no!",
    "no…",
    "it failed: ",
    "“no.”",
    "see (this.)",
    '{"why": "quota"}',
    "x would be . or ..",
    "one. \n",
]
WHAT = "The tool 'x'"


def made(config: ServerConfig, said: str) -> Iterator[RegistryError]:
    """Give what each function that makes an error makes of what a server wrote."""
    errors: list[Exception] = [OSError(2, said, "sh"), OSError(13, said), RuntimeError(said), httpx2.ConnectError(said)]
    errors += [faults.ConnectFailed(said), faults.ConnectionLost(said), faults.AnswerRefused(said)]
    codes = (CONNECTION_CLOSED, METHOD_NOT_FOUND, PARSE_ERROR, REQUEST_TIMEOUT, -1)
    errors += [MCPError(code, said) for code in codes] + [MCPError(PARSE_ERROR, f"Failed to parse {said}")]
    for fault in MessageFault:
        for status in (401, 403, 404, 500, 503):
            told = error_of(HttpFault(fault, status, said))
            errors.append(MCPError(told.code, told.message, told.data))
    for error in errors:
        if not isinstance(error, RegistryError) and not _is_sign_in(error):
            yield faults.of_connect(config, error, f" (its stderr ends: “{said}”)" if said else "")
            yield faults.of_call(config, WHAT, error)
    yield faults.of_connect(config, faults.ConnectionLost(said or "It ended."), "")
    yield faults.of_connect_timeout(config, f" (it wrote “{said}”, which is not MCP)" if said else "")
    yield faults.of_garbage(config, said)
    yield faults.of_call_timeout(config, WHAT, 3.0)
    yield faults.of_garbled(config, WHAT)


def _is_sign_in(error: Exception) -> bool:
    """Return whether the whole message is another's, of our own: see `sign_in`."""
    found = faults.fault_in(error.error.data) if isinstance(error, MCPError) else None
    return found is not None and found.fault is MessageFault.SIGN_IN


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("said", SAID)
def test_every_error_about_a_server_is_whole_sentences(tmp_path: Path, name: str, said: str) -> None:
    config = configured(tmp_path, ENTRIES).server(name)
    for error in made(config, said):
        for message in (str(error), error.for_operator):
            ours = message.replace("x would be . or ..", "dots")
            assert re.search(r"[.!?]$", ours), message
            assert not re.search(r"[.!?…]\.(?!\w)|\.”\.|[:,;]\.|\s\.(?:\s|$)|: (?:See|Look|The outcome)", ours), message


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("", ""), ("no", "no."), ("no.", "no."), ("no. \n", "no."), ("no!", "no!"), ("cut…", "cut…"), ("why:", "why."),
        ("“no.”", "“no.”"), ("(no.)", "(no.)."), ("a..", "a.."), ("{}", "{}."),
    ],
)  # fmt: skip
def test_a_sentence_ends_once(text: str, ended: str) -> None:
    assert sentence(text) == ended


def test_every_function_that_makes_an_error_is_tried() -> None:
    makers: set[Callable[..., object]] = {getattr(faults, name) for name in dir(faults) if name.startswith("of_")}
    tried = {"of_connect", "of_connect_timeout", "of_garbage", "of_call_timeout", "of_garbled", "of_call"}
    assert {each.__name__ for each in makers} == tried
