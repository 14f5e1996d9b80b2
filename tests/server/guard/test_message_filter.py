"""The filter of messages by itself: what its parts promise of every message."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.base.database import HomeDatabase
from sealab.server.base.errors import PrivacyFailed
from sealab.server.base.settings import PrivacyLevel, PrivacyMode, Settings
from sealab.server.interfaces.guard.base64_texts import exchanged_base64
from sealab.server.interfaces.guard.message_filter import SAID_VALUES_MAX, Asked, MessageFilter, NotSaid, SaidBy
from sealab.server.interfaces.guard.messages import read_message, written
from sealab.server.interfaces.guard.shown_parts import (
    KEPT_MAX,
    OpaqueHandles,
    ShownParts,
    exchanged_uri,
    loosened,
    with_plain_tokens,
)
from sealab.server.privacy.privacy import TRIALS_MAX, Privacy
from sealab.server.privacy.tokens.parts import Text, collected, replaced
from sealab.tools_registry.configuration import read_server

MAIL = "jane.doe@corp.example"
TOKEN = "[EMAIL_9g5ddg3tce]"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
KEYS = ("result", "params", "error", "content", "text", "data", "uri", "_meta", "nextCursor", "values", "tools", "name", "type", "blob", "inputRequests", "structuredContent", "x-own")  # fmt: skip
MESSAGES = st.dictionaries(
    st.sampled_from(KEYS),
    st.recursive(
        JSON,
        lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=3) | st.lists(inner, max_size=2),
        max_leaves=12,
    ),
)


@pytest.fixture
def messages(tmp_path: Path) -> Iterator[MessageFilter]:
    settings = replace(Settings(), privacy=PrivacyLevel.AUTO, privacy_mode=PrivacyMode.FAST, vault_keyring=False)
    database = HomeDatabase(None, tmp_path)
    privacy = Privacy(settings, tmp_path, database)
    yield MessageFilter(privacy, privacy, read_server("s", {"command": "s"}, {}))
    privacy.close()
    database.close()


async def shown(messages: MessageFilter, text: str, asked: Asked) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}}
    answer = await messages.shown(await messages.unshown(message, asked, is_large=False))
    return answer["result"]["content"][0]["text"]  # type: ignore[index, call-overload, return-value]


def asking(*values: str) -> Asked:
    return Asked.by({"method": "tools/call", "params": {"name": "echo", "arguments": {"a": list(values)}}})


async def test_who_tries_one_value_after_the_other_does_not_find_the_one_behind_a_token(
    messages: MessageFilter,
) -> None:
    known = await shown(messages, MAIL, Asked())
    assert await shown(messages, MAIL, asking(MAIL)) == known
    tried = [f"person{number}@corp.example" for number in range(TRIALS_MAX + 1)]
    await shown(messages, "\n".join(tried), asking(*tried))
    again = await shown(messages, MAIL, asking(MAIL.upper()))
    assert again.startswith("[EMAIL_")
    assert again != known
    assert await shown(messages, MAIL, Asked()) == known


def test_what_a_request_says_is_found_in_any_case_and_of_too_much_all_counts_as_said() -> None:
    said = SaidBy.of({"arguments": {"Jane Doe": [MAIL, {"n": 4930123456}], "x": True}, "_meta": {"a": "hidden"}})
    assert [text in NotSaid(said) for text in ("jane doe", MAIL.upper(), "4930123456", "hidden", "other")] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert "other" not in NotSaid(SaidBy.of({"a": [1] * (SAID_VALUES_MAX + 1)}))


@given(MESSAGES, st.sampled_from([None, "tools/list"]))
def test_a_message_in_which_nothing_is_personal_stays_as_it_is(message: dict, method: str | None) -> None:
    walk = ShownParts(method)
    try:
        parts = collected(message, walk.exchanged)
    except PrivacyFailed:  # bytes that are none
        return
    contents = [part.text if isinstance(part, Text) else part.value for part in parts]
    walked = replaced(message, walk.exchanged, contents)
    assert walked == message or "outputSchema" in json.dumps(message)
    assert list(walked) == list(message)


@given(st.dictionaries(st.text(), JSON))
async def test_a_message_is_written_as_it_was_read(message: dict) -> None:
    line = await written(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert await read_message(line.rstrip(b"\n")) == message


@given(st.text(min_size=1), st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1"]))
def test_a_text_in_bytes_is_looked_at_as_text_and_stays_in_its_encoding(text: str, charset: str) -> None:
    try:
        content = f"{text} for {MAIL} ".encode(charset)
    except UnicodeEncodeError:
        return
    looked_at: list[str] = []

    def exchange(part: Text) -> str:
        looked_at.append(part.text)
        return part.text.replace(MAIL, TOKEN)

    try:
        shown = exchanged_base64(base64.b64encode(content).decode(), f"text/plain; charset={charset}", exchange)
    except PrivacyFailed:
        return
    assert MAIL in looked_at[0]
    assert MAIL not in base64.b64decode(shown).decode(charset, "replace")


@given(st.text())
def test_an_address_comes_back_as_it_was(rest: str) -> None:
    uri = f"crm://people/{MAIL}/{rest}"
    shown = exchanged_uri(uri, lambda part: part.text.replace(MAIL, TOKEN))
    assert MAIL not in shown
    assert "[" not in shown.replace(rest, "")
    assert with_plain_tokens(shown).replace(TOKEN, MAIL) == with_plain_tokens(uri)


def test_of_handles_the_newest_are_remembered() -> None:
    handles = OpaqueHandles()
    for number in range(KEPT_MAX + 1):
        handles.shown(f"{MAIL} {number}", lambda part: part.text.replace(MAIL, TOKEN))
    assert handles.given(f"{TOKEN} 1") == f"{MAIL} 1"
    assert handles.given(f"{TOKEN} 0") == f"{TOKEN} 0"
    assert handles.given("other") == "other"


NUMBER = {"type": "integer", "minimum": 0}
MAIL_OR_NUMBER = {"oneOf": [{"type": "string", "format": "email", "maxLength": 9}, NUMBER]}
SCHEMA = {
    "type": "object",
    "properties": {
        "phone": NUMBER,
        "contact": MAIL_OR_NUMBER,
        "zip": {"type": ["number", "null"]},
        "all": {"type": "array", "items": NUMBER, "prefixItems": [{"$ref": "#/$defs/short"}]},
        "format": {"type": "string"},
    },
    "additionalProperties": {"type": "number"},
    "$defs": {"short": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"}},
    "required": ["phone"],
}


def test_a_loosened_schema_takes_tokens_and_still_says_what_there_is() -> None:
    schema = loosened(SCHEMA)
    given = {"phone": TOKEN, "contact": TOKEN, "zip": TOKEN, "all": [TOKEN, TOKEN], "format": "x", "more": TOKEN}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(given, SCHEMA)
    jsonschema.validate(given, schema)
    jsonschema.validate({"phone": 1, "contact": 2, "zip": None}, schema)
    for wrong in ({}, {"phone": -1}, {"phone": [1]}, {"phone": 1, "format": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
