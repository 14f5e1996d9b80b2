"""What a client and a guarded server get of each other's messages: tokens for one, and values for the other by rule."""

from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ...waiting import wait_until
from .guarded import Guarded, guarded

MAIL = "jane.doe@corp.example"
TOKEN = re.compile(r"\[EMAIL_[0-9a-hjkmnp-tv-z]{10}\]")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("guard")) as running:
        yield running


@pytest.fixture(scope="module")
def token(guard: Guarded) -> str:
    """What stands for the address everywhere."""
    return TOKEN.fullmatch(guard.text(MAIL))[0]


def test_every_kind_of_content_has_tokens_and_what_the_protocol_says_stays(guard: Guarded, token: str) -> None:
    given = {
        "content": [
            {"type": "text", "text": f"Mail {MAIL}.", "annotations": {"audience": ["user"], "priority": 0.5}},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": f"crm://people/{MAIL}", "name": MAIL, "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "crm://all", "mimeType": "text/csv", "text": f"email\n{MAIL}\n"}},
        ],
        "structuredContent": {"rows": [{"email": MAIL, "open": 3}], "total": 1},
        "isError": False,
        "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t1"}, "corp.example/owner": MAIL},
        "resultType": "complete",
    }
    shown = guard.result(given)
    escaped = f"%5B{token[1:-1]}%5D"
    text, image, audio, link, resource = shown["content"]
    assert text == {**given["content"][0], "text": f"Mail {token}."}
    assert [image, audio] == given["content"][1:3]
    assert link == {**given["content"][3], "uri": f"crm://people/{escaped}", "name": token}
    assert resource["resource"]["text"] == f"email\n{token}\n"
    assert shown["structuredContent"] == {"rows": [{"email": token, "open": 3}], "total": 1}
    assert shown["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": "t1"}, "corp.example/owner": token}
    assert (shown["isError"], shown["resultType"]) == (False, "complete")


def test_bytes_that_are_text_are_filtered_and_written_again(guard: Guarded, token: str) -> None:
    for mime_type, charset in (
        ("text/csv", "utf-8"),
        ("text/plain", "utf-16"),
        ("text/plain; charset=latin-1", "latin-1"),
        ("image/svg+xml", "utf-8"),
        ("", "utf-8"),
        ("application/x-own", "utf-16-le"),
    ):
        blob = base64.b64encode(f"José writes to {MAIL} today".encode(charset)).decode()
        content = {"uri": "file:///a", "mimeType": mime_type, "blob": blob}
        (shown,) = guard.result({"contents": [content]}, "resources/read")["contents"]
        assert base64.b64decode(shown["blob"]).decode(charset) == f"José writes to {token} today", mime_type


def test_a_packed_resource_is_shown_where_nothing_personal_is_in_it(guard: Guarded) -> None:
    for text, passes in (("size,colour\n7,red\n", True), (f"email\n{MAIL}\n", False)):
        blob = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        content = {"uri": "file:///a", "mimeType": "application/gzip", "blob": blob}
        (shown,) = guard.result({"contents": [content]}, "resources/read")["contents"]
        assert (shown == content) is passes
        assert passes or b"bytes withheld: they hold EMAIL]" in base64.b64decode(shown["blob"])


def test_bytes_that_are_no_text_pass_and_what_is_no_base64_does_not(guard: Guarded) -> None:
    content = {"uri": "file:///a", "mimeType": "application/zip", "blob": PNG}
    assert guard.result({"contents": [content]}, "resources/read")["contents"] == [content]
    broken = {**content, "blob": f"{MAIL}!"}
    failed = guard.answer("resources/read", script={"answer": {"result": {"contents": [broken]}}})
    assert failed["error"]["code"] == -32603
    assert MAIL not in str(failed)


def test_an_error_keeps_its_code_and_its_texts_have_tokens(guard: Guarded, token: str) -> None:
    error = {
        "code": -32042,
        "message": f"{MAIL} must sign in",
        "data": {
            "who": MAIL,
            "elicitations": [
                {
                    "mode": "url",
                    "url": "https://corp.example/sign-in?for=7",
                    "elicitationId": "e1",
                    "message": f"Sign in as {MAIL}",
                }
            ],
        },
    }
    shown = guard.answer(script={"answer": {"error": error}})["error"]
    assert shown == {
        "code": -32042,
        "message": f"{token} must sign in",
        "data": {
            "who": token,
            "elicitations": [{**error["data"]["elicitations"][0], "message": f"Sign in as {token}"}],
        },
    }


def test_notifications_have_tokens_and_come_before_the_answer_in_their_order(guard: Guarded, token: str) -> None:
    before = [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": MAIL, "progress": 1, "total": 2, "message": f"Asking {MAIL}"}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "logger": "crm.people", "data": {"email": MAIL}}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": MAIL, "progress": 2, "total": 2}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    ]  # fmt: skip
    guard.seen.clear()
    assert guard.answer(script={"before": before})["result"] == {}
    told, logged, *rest = guard.seen
    assert told == {**before[0], "params": {**before[0]["params"], "message": f"Asking {token}"}}
    assert logged == {**before[1], "params": {**before[1]["params"], "data": {"email": token}}}
    assert rest == before[2:]


def test_methods_and_members_that_nobody_knows_pass_with_tokens_in_them(guard: Guarded, token: str) -> None:
    odd = {
        "jsonrpc": "2.0",
        "method": "x-corp/seen",
        "params": {"owner": {"email": MAIL}, "level": 7},
        "x-more": [1, MAIL],
    }
    guard.seen.clear()
    answer = guard.answer(
        "x-corp/people", script={"before": [odd], "answer": {"result": {"boss": MAIL, "n": None}, "x-took": 5}}
    )
    assert guard.seen == [{**odd, "params": {"owner": {"email": token}, "level": 7}, "x-more": [1, token]}]
    assert (answer["result"], answer["x-took"]) == ({"boss": token, "n": None}, 5)


def test_lists_of_resources_and_completions_have_tokens(guard: Guarded, token: str) -> None:
    listed = guard.result(
        {
            "resources": [{"uri": "crm://1", "name": "a", "description": f"All of {MAIL}", "size": 12}],
            "nextCursor": "2",
        },
        "resources/list",
    )
    assert listed == {
        "resources": [{"uri": "crm://1", "name": "a", "description": f"All of {token}", "size": 12}],
        "nextCursor": "2",
    }
    templates = {"resourceTemplates": [{"uriTemplate": "crm://{id}", "name": "one", "title": f"As {MAIL} has it"}]}
    assert guard.result(templates, "resources/templates/list")["resourceTemplates"][0] == {
        "uriTemplate": "crm://{id}",
        "name": "one",
        "title": f"As {token} has it",
    }
    ref = {"type": "ref/prompt", "name": "write"}
    argument = {"name": "customer_name", "value": "J"}
    completed = guard.result(
        {"completion": {"values": [MAIL, "Johanna Mustermann"], "total": 2, "hasMore": False}},
        "completion/complete",
        ref=ref,
        argument=argument,
    )
    address, name = completed["completion"].pop("values")
    assert completed == {"completion": {"total": 2, "hasMore": False}}
    assert address == token
    assert name.startswith("[PERSON_")


def test_the_acknowledgement_of_subscriptions_has_tokens(guard: Guarded, token: str) -> None:
    params = {"notifications": {"resourceSubscriptions": [f"crm://people/{MAIL}"], "toolsListChanged": True}}
    told = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
    guard.seen.clear()
    guard.answer(script={"before": [told]})
    (shown,) = guard.seen
    assert shown["params"]["notifications"] == {
        "resourceSubscriptions": [f"crm://people/%5B{token[1:-1]}%5D"],
        "toolsListChanged": True,
    }


def test_prompts_and_questions_have_tokens(guard: Guarded, token: str) -> None:
    message = {"role": "user", "content": {"type": "text", "text": f"Write to {MAIL}"}}
    assert guard.result({"description": "d", "messages": [message]}, "prompts/get")["messages"] == [
        {"role": "user", "content": {"type": "text", "text": f"Write to {token}"}}
    ]
    schema = {
        "type": "object",
        "properties": {"email": {"type": "string", "format": "email", "default": MAIL}},
        "required": ["email"],
    }
    question = {"mode": "form", "message": f"Is {MAIL} right?", "requestedSchema": schema}
    asked = {
        "inputRequests": {"confirm": {"method": "elicitation/create", "params": question}},
        "requestState": "s1",
        "resultType": "input_required",
    }
    hidden_schema = {**schema, "properties": {"email": {"type": "string", "format": "email", "default": token}}}
    hidden = {"mode": "form", "message": f"Is {token} right?", "requestedSchema": hidden_schema}
    assert guard.result(asked) == {
        **asked,
        "inputRequests": {"confirm": {"method": "elicitation/create", "params": hidden}},
    }


def test_of_definitions_known_values_are_hidden_and_all_else_stays(guard: Guarded, token: str) -> None:
    tool = {
        "name": "send_mail",
        "description": f"Sends a mail, by default to {MAIL}; not to new.person@corp.example.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "to": {"type": "string", "format": "email", "enum": [MAIL, "all"]},
                "description": {"type": "string"},
            },
            "required": ["to"],
        },
        "annotations": {"readOnlyHint": False},
        "x-more": {"n": 4930123456},
    }
    (shown,) = guard.result({"tools": [tool]}, "tools/list")["tools"]
    expected = {**tool, "description": f"Sends a mail, by default to {token}; not to new.person@corp.example."}
    expected["inputSchema"] = {
        **tool["inputSchema"],
        "properties": {
            **tool["inputSchema"]["properties"],
            "to": {"type": "string", "format": "email", "enum": [token, "all"]},
        },
    }
    assert shown == expected


def test_an_output_schema_says_what_answers_with_tokens_are(guard: Guarded) -> None:
    properties = {
        "phone": {"type": "integer"},
        "format": {"type": "string", "format": "email", "maxLength": 9},
        "state": {"enum": ["open"]},
    }
    tool = {
        "name": "t",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": properties, "required": ["phone"]},
    }
    (shown,) = guard.result({"tools": [tool]}, "tools/list")["tools"]
    assert shown["outputSchema"] == {
        "type": "object",
        "properties": {
            "phone": {"type": ["integer", "string"]},
            "format": {"type": "string"},
            "state": {"enum": ["open"]},
        },
        "required": ["phone"],
    }


def test_a_value_that_one_part_gives_away_is_hidden_in_all_of_them(guard: Guarded) -> None:
    shown = guard.result(
        {
            "content": [{"type": "text", "text": "Wilhelmine Osterkamp came."}],
            "structuredContent": {"customer_name": "Wilhelmine Osterkamp"},
        }
    )
    assert "Osterkamp" not in str(shown)


NAME = "Wilhelmine Osterkamp"
KEY = "sk-proj-Zx8KqT3vBn5YwLr7HcMfPd2J"


def test_arguments_become_values_and_everything_else_is_sent_as_it_is(guard: Guarded, token: str) -> None:
    arguments = {"to": [token, "all"], "text": f"Dear {token}", "n": 1.5, "deep": {"a": None}}
    guard.answer(name="send_mail", arguments=arguments, task={"ttl": 5}, note=token)
    params = guard.last_received()["params"]
    assert params["arguments"] == {"to": [MAIL, "all"], "text": f"Dear {MAIL}", "n": 1.5, "deep": {"a": None}}
    assert (params["name"], params["task"], params["note"]) == ("send_mail", {"ttl": 5}, token)


def test_prompts_completions_and_addresses_of_resources_become_values(guard: Guarded, token: str) -> None:
    guard.answer("prompts/get", name="write", arguments={"to": token})
    assert guard.last_received("prompts/get")["params"]["arguments"] == {"to": MAIL}
    guard.answer(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "write"},
        argument={"name": "to", "value": token},
        context={"arguments": {"cc": token}},
    )
    params = guard.last_received("completion/complete")["params"]
    assert (params["argument"], params["context"]) == ({"name": "to", "value": MAIL}, {"arguments": {"cc": MAIL}})
    (listed,) = guard.result({"resources": [{"uri": f"crm://people/{MAIL}", "name": "a"}]}, "resources/list")[
        "resources"
    ]
    for method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        guard.answer(method, uri=listed["uri"])
        assert guard.last_received(method)["params"]["uri"] == f"crm://people/{MAIL}"
    guard.answer(
        "subscriptions/listen", notifications={"resourceSubscriptions": [listed["uri"]], "toolsListChanged": True}
    )
    wanted = guard.last_received("subscriptions/listen")["params"]["notifications"]
    assert wanted == {"resourceSubscriptions": [f"crm://people/{MAIL}"], "toolsListChanged": True}
    ref = {"type": "ref/resource", "uri": listed["uri"]}
    guard.answer("completion/complete", ref=ref, argument={"name": "a", "value": ""})
    assert guard.last_received("completion/complete")["params"]["ref"] == {**ref, "uri": f"crm://people/{MAIL}"}
    guard.answer("resources/read", uri="file:///a%5Bb%5D")
    assert guard.last_received("resources/read")["params"]["uri"] == "file:///a%5Bb%5D"


def test_what_the_user_answers_becomes_values_in_both_eras(guard: Guarded, token: str) -> None:
    question = {
        "jsonrpc": "2.0",
        "id": "q1",
        "method": "elicitation/create",
        "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
    }
    sampling = {
        "jsonrpc": "2.0",
        "id": 77,
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": f"About {MAIL}"}}],
            "maxTokens": 5,
        },
    }
    roots = {"jsonrpc": "2.0", "id": 78, "method": "roots/list"}
    guard.seen.clear()
    guard.answer(script={"before": [question, sampling, roots]})
    wait_until(lambda: len(guard.seen) == 3 or guard.seen.append(guard.read()))
    asked = {each["id"]: each for each in guard.seen}
    assert asked["q1"] == question
    assert asked[77]["params"]["messages"][0]["content"]["text"] == f"About {token}"
    assert asked[78] == roots
    guard.send({"jsonrpc": "2.0", "id": "q1", "result": {"action": "accept", "content": {"who": token}}})
    guard.send(
        {
            "jsonrpc": "2.0",
            "id": 77,
            "result": {"role": "assistant", "model": "m", "content": {"type": "text", "text": token}},
        }
    )
    guard.send({"jsonrpc": "2.0", "id": 78, "result": {"roots": [{"uri": f"file:///{token}"}]}})
    wait_until(lambda: len(guard.received("")) == 3)
    answers = {each["id"]: each["result"] for each in guard.received("")}
    assert answers["q1"] == {"action": "accept", "content": {"who": MAIL}}
    assert answers[77] == {"role": "assistant", "model": "m", "content": {"type": "text", "text": MAIL}}
    assert answers[78] == {"roots": [{"uri": f"file:///{token}"}]}
    responses = {
        "a": {"action": "accept", "content": {"who": token}},
        "b": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": token}]},
        "c": {"roots": []},
    }
    guard.answer(name="send_mail", arguments={}, inputResponses=responses, requestState="s1")
    params = guard.last_received()["params"]
    assert params["inputResponses"]["a"] == {"action": "accept", "content": {"who": MAIL}}
    assert params["inputResponses"]["b"]["content"] == [{"type": "text", "text": MAIL}]
    assert params["inputResponses"]["c"] == {"roots": []}


def test_a_cursor_or_a_state_comes_back_to_the_server_as_it_gave_it_and_nothing_else_does(guard: Guarded) -> None:
    state = f"after:{MAIL}:{KEY}"
    shown = guard.result(
        {"resources": [], "nextCursor": state, "resultType": "input_required", "requestState": state}, "resources/list"
    )
    assert MAIL not in str(shown)
    assert KEY not in str(shown)
    guard.answer("resources/list", cursor=shown["nextCursor"])
    assert guard.last_received("resources/list")["params"]["cursor"] == state
    guard.answer(name="a", requestState=shown["requestState"])
    assert guard.last_received()["params"]["requestState"] == state
    guard.answer("resources/list", cursor=f"{shown['nextCursor']}+")
    assert guard.last_received("resources/list")["params"]["cursor"] == f"{shown['nextCursor']}+"


def test_numbers_are_numbers_again(guard: Guarded) -> None:
    shown = guard.result({"structuredContent": {"phone": 4930123456789}})["structuredContent"]
    assert isinstance(shown["phone"], str)
    guard.answer(name="call", arguments=shown)
    assert guard.last_received()["params"]["arguments"] == {"phone": 4930123456789}


def test_a_key_goes_nowhere_and_a_call_with_a_token_that_is_not_known_is_refused(guard: Guarded, token: str) -> None:
    shown = guard.text(f"api_key={KEY}")
    assert KEY not in shown
    for arguments in ({"token": shown, "to": token}, {"other": "[EMAIL_0000000000]", "to": token}):
        before = guard.received("tools/call")
        refused = guard.answer(name="login", arguments=arguments)["error"]["message"]
        assert "was not called" in refused
        assert MAIL not in refused
        assert guard.received("tools/call") == before


RULE = '{"EMAIL": ["send_mail.to", "resources/read"], "PERSON": "*"}'


def test_the_rule_says_which_tokens_become_values_and_which_tools_get_them_as_they_are(tmp_path: Path) -> None:
    options = ("--allow-tokens", "count_*, note", "--allow", "all@ours.example", "--allow", "/.*@mine[.]example/")
    with guarded(tmp_path, "--restore", RULE, *options) as guard:
        shown = guard.result({"structuredContent": {"email": MAIL, "customer_name": NAME}})["structuredContent"]
        arguments = {"to": shown["email"], "name": shown["customer_name"]}
        restored = set()
        for tool in ("send_mail", "log"):
            for key, token in arguments.items():
                answer = guard.answer(name=tool, arguments={key: token})
                if "error" in answer:
                    assert "was not called" in answer["error"]["message"]
                else:
                    assert guard.last_received()["params"]["arguments"][key] in {MAIL, NAME}
                    restored.add((tool, key))
        assert restored == {("send_mail", "to"), ("send_mail", "name"), ("log", "name")}
        guard.answer("resources/read", uri=f"crm://{shown['email']}")
        assert MAIL in guard.last_received("resources/read")["params"]["uri"]
        guard.answer(name="count_mails", arguments={"to": shown["email"]})
        assert guard.last_received()["params"]["arguments"] == {"to": shown["email"]}
        said = guard.text("all@ours.example, me@mine.example, john@roe.example")
        assert said.startswith("all@ours.example, me@mine.example, [EMAIL_")


def test_guards_of_one_home_know_each_others_tokens_and_those_of_another_home_do_not(tmp_path: Path) -> None:
    with guarded(tmp_path) as crm, guarded(tmp_path) as mail, guarded(tmp_path, home="other") as other:
        token = crm.text(MAIL)
        mail.answer(name="send", arguments={"to": token})
        assert mail.last_received()["params"]["arguments"] == {"to": MAIL}
        assert "stands for no value here" in other.answer(name="send", arguments={"to": token})["error"]["message"]
