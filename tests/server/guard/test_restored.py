"""What a guarded server gets of a client's messages: values in place of tokens, where its rule allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ...waiting import wait_until
from .guarded import Guarded, guarded

MAIL, NAME = "jane.doe@corp.example", "Wilhelmine Osterkamp"
KEY = "sk-proj-Zx8KqT3vBn5YwLr7HcMfPd2J"


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("guard")) as running:
        yield running


@pytest.fixture(scope="module")
def token(guard: Guarded) -> str:
    return guard.text(MAIL)


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
