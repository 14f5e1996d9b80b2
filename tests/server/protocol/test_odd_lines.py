"""Whatever line a client writes, what it asks for is answered, and what cannot be read by an error; short as long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from mcp.types import InitializeRequestParams

from sealab.server.interfaces.protocol.client_messages import with_id
from sealab.tools_registry.json_lines import LARGE_CHARS

from .test_shutdown import RawClient, call_of, lines_of

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
PING = b'{"jsonrpc":"2.0","id":%s,"method":"ping"}'
_pings = count(1_000_000)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with RawClient(tmp_path_factory.mktemp("home")) as client:
        yield client


def answers_to(client: RawClient, line: bytes) -> list[dict[str, Any]]:
    """Send a line and a ping after it, and return what else is answered up to when both are."""
    assert client.process.stdin is not None
    after = next(_pings)
    client.process.stdin.write(line + b"\n" + lines_of({"jsonrpc": "2.0", "id": after, "method": "ping"}))
    client.process.stdin.flush()
    answers: list[dict[str, Any]] = []
    pinged = False
    while not (answers and pinged):
        answer = client.receive()
        if answer.get("id", "") == after:
            pinged = True
        elif "method" not in answer:
            answers.append(answer)
    return answers


def long(line: bytes) -> bytes:
    """Return a line of the same kind that is large: what is put before its end, or at its end, says nothing."""
    before, brace, after = line.rpartition(b"}")
    more = b',"more":"' + b"x" * LARGE_CHARS + b'"'
    return before + more + brace + after if brace and before != b"{" else line + b" " * LARGE_CHARS


REFUSED = {
    "not JSON": (b"hello", PARSE_ERROR, None),
    "cut off": (b'{"jsonrpc":"2.0",', PARSE_ERROR, None),
    "cut off after its id": (b'{"jsonrpc": "2.0", "id": 23, "method": ', PARSE_ERROR, 23),
    "two on one line": (PING % b"1" + b"{}", PARSE_ERROR, 1),
    "UTF-16": (PING.decode().encode("utf-16-le"), INVALID_REQUEST, None),
    "deep": (b"[" * 5000, INVALID_REQUEST, None),
    "deep in its parameters": (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":' + b"[" * 5000, INVALID_REQUEST, 3),
    "a text": (b'"hello"', INVALID_REQUEST, None),
    "null": (b"null", INVALID_REQUEST, None),
    "an empty object": (b"{}", INVALID_REQUEST, None),
    "an empty list": (b"[]", INVALID_REQUEST, None),
    "a boolean id": (PING % b"true", INVALID_REQUEST, None),
    "a null id": (PING % b"null", INVALID_REQUEST, None),
    "an object as id": (PING % b'{"n":1}', INVALID_REQUEST, None),
    "a fraction as id": (PING % b"1.5", INVALID_REQUEST, None),
    "no method": (b'{"jsonrpc":"2.0","id":33}', INVALID_REQUEST, 33),
    "a number as method": (b'{"jsonrpc":"2.0","id":"a","method":4}', INVALID_REQUEST, "a"),
    "a list as parameters": (b'{"jsonrpc":"2.0","id":35,"method":"ping","params":[1]}', INVALID_REQUEST, 35),
    "another version": (b'{"jsonrpc":"1.0","id":36,"method":"ping"}', INVALID_REQUEST, 36),
    "no version": (b'{"id":37,"method":"ping"}', INVALID_REQUEST, 37),
    "a notification of no form": (b'{"jsonrpc":"2.0","method":"a","params":7}', INVALID_REQUEST, None),
}


@pytest.mark.parametrize("large", [False, True], ids=["short", "long"])
@pytest.mark.parametrize(("line", "code", "number"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_taken_is_answered_by_an_error_under_its_id_or_null(
    client: RawClient, line: bytes, code: int, number: object, large: bool
) -> None:
    line = long(line) if large else line
    (answer,) = answers_to(client, line)
    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert answer["error"]["message"].startswith("The message ")


TAKEN = {
    "half of a pair of surrogates": (rb"x = '\ud83d'\nhex(ord(x))", "0xfffd"),
    "the other half in a raw byte": (b"x = '\xe9'\\nhex(ord(x))", "0xfffd"),
    "an escaped backslash before what looks like one": (rb"x = '\\ud83d\\udfff'\nlen(x)", 2),
    "a whole pair": (rb"x = '\ud83d\ude00'\nhex(ord(x))", "0x1f600"),
    "a raw control character": (b"len('\t')", 1),
}


@pytest.mark.parametrize("large", [False, True], ids=["short", "long"])
@pytest.mark.parametrize(("code", "result"), TAKEN.values(), ids=TAKEN.keys())
def test_what_other_writers_let_pass_is_read_as_it_is_meant(
    client: RawClient, code: bytes, result: object, large: bool
) -> None:
    line = lines_of({**call_of("CODE"), "id": 50}).strip().replace(b"CODE", code)
    (answer,) = answers_to(client, long(line) if large else line)
    assert answer["id"] == 50
    assert answer["result"]["structuredContent"]["result"] == result


@pytest.mark.parametrize("large", [False, True], ids=["short", "long"])
def test_an_integer_with_a_fraction_of_nothing_is_one_and_a_byte_order_mark_says_nothing(
    client: RawClient, large: bool
) -> None:
    for line in (PING % b"70.0", b"\xef\xbb\xbf" + PING % b"70", PING % b"70" + b"\r", b"\n\r\n" + PING % b"70"):
        assert answers_to(client, long(line) if large else line) == [{"jsonrpc": "2.0", "id": 70, "result": {}}]


@pytest.mark.parametrize("line", [PING % b'38,"id":39', long(PING % b'38,"id":39')], ids=["short", "long"])
def test_a_request_with_two_ids_is_answered_under_one(client: RawClient, line: bytes) -> None:
    (answer,) = answers_to(client, line)
    assert answer["id"] in {38, 39}


def test_the_messages_of_a_batch_are_answered_one_by_one(client: RawClient) -> None:
    line = b"[" + b",".join([PING % b"80", b"7", PING % b"81", b'{"jsonrpc":"2.0","method":"none"}']) + b"]"
    answers = answers_to(client, line)
    while len(answers) < 3:
        answers += answers_to(client, b"hello")[:-1]
    assert sorted(str(answer["id"]) for answer in answers) == ["80", "81", "None"]


@pytest.mark.parametrize("large", [False, True], ids=["short", "long"])
def test_what_no_json_can_say_is_refused_as_the_variable_that_it_is(client: RawClient, large: bool) -> None:
    line = lines_of({**call_of("v"), "id": 90}).strip().replace(b'"v"', b'"v","context_vars":{"v":NaN}')
    (answer,) = answers_to(client, long(line) if large else line)
    assert answer["id"] == 90
    assert "Send less, and null for NaN." in answer["result"]["content"][0]["text"]


def test_an_error_of_the_client_is_an_answer_to_the_server_and_does_not_come_back(client: RawClient) -> None:
    line = b'{"jsonrpc":"2.0","id":91,"error":{"code":-32601,"message":"Method not found"}}\nhello'
    (answer,) = answers_to(client, line)
    assert (answer["id"], answer["error"]["code"]) == (None, PARSE_ERROR)


INFO = {"name": "t", "version": "1"}
HANDSHAKES = [
    {"jsonrpc": "2.0", "id": 60, "method": "initialize"},
    {"jsonrpc": "2.0", "id": 60, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}},
    {
        "jsonrpc": "2.0",
        "id": 60,
        "method": "initialize",
        "params": {"protocolVersion": 1, "capabilities": {"roots": True, "sampling": {}}, "clientInfo": {"name": "t"}},
    },
    {"jsonrpc": "2.0", "id": 60, "method": "initialize", "params": {"capabilities": None, "client_info": INFO}},
]


@pytest.mark.parametrize("asked", HANDSHAKES, ids=["nothing", "a version", "odd", "snake"])
def test_a_handshake_that_lacks_what_it_should_say_is_answered(client: RawClient, asked: dict[str, Any]) -> None:
    (answer,) = answers_to(client, lines_of(asked).strip())
    assert answer["result"]["serverInfo"]["name"] == "sealab"
    body = with_id(json.dumps(asked).encode())
    assert isinstance(body, bytes)
    InitializeRequestParams.model_validate(json.loads(body)["params"], by_name=False)


def test_a_handshake_that_is_right_and_arguments_that_say_arguments_stay_as_they_are() -> None:
    given: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": INFO}
    for each in ({**HANDSHAKES[0], "params": given}, call_of('"arguments": "x"')):
        body = json.dumps(each).encode()
        assert with_id(body) == body


def test_arguments_that_are_a_text_which_holds_them_are_taken(client: RawClient) -> None:
    asked = {**call_of("40 + 2"), "id": 61}
    asked["params"]["arguments"] = json.dumps(asked["params"]["arguments"])
    (answer,) = answers_to(client, lines_of(asked).strip())
    assert answer["result"]["structuredContent"]["result"] == 42
