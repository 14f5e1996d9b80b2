"""Whose a request is, by what the connection says, and the rights that it keeps when it goes on later."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, InputRequiredResult

from sealab.sandbox.job import Isolation
from sealab.server.app import running
from sealab.server.base.errors import RequestRefused, RightMissing
from sealab.server.base.home import Home
from sealab.server.base.identity import (
    ALL_RIGHTS,
    IDENTITY,
    Identity,
    Right,
    identity_from,
    identity_json,
)
from sealab.server.base.settings import Settings
from sealab.server.governance.access.token_text import new_token
from sealab.server.governance.caller import Caller
from sealab.server.governance.questions import Question
from sealab.server.governance.scopes import is_brief, kept_identity, of_principal, scope_of, session_of, tokens_of
from sealab.server.interfaces.protocol import elicitation
from sealab.server.interfaces.protocol.elicitation import Client, Elicitations, _Suspended, can_be_asked
from sealab.server.privacy.detection.recognizers.secrets import secrets
from sealab.server.use_cases.runs.admission import admitted
from sealab.server.use_cases.runs.request import CodeRequest

ADA = Identity("acme", "ada", frozenset({Right.RUN}), "tok_1")
identities = st.builds(Identity, st.text(), st.text(), st.frozensets(st.sampled_from(list(Right))), st.text())


@given(identities)
def test_an_identity_comes_back_as_it_was_kept(identity: Identity) -> None:
    assert identity_from(json.loads(json.dumps(identity_json(identity)))) == identity


@pytest.mark.parametrize("told", [{}, [], "ada", {**identity_json(ADA), "rights": "run"}, {"principal": "ada"}])
def test_what_cannot_be_read_has_no_rights(told: object) -> None:
    assert kept_identity(told, "principal ada").rights == frozenset()
    assert kept_identity(told, "home").rights == frozenset()


def test_what_was_kept_without_an_identity_has_no_rights_and_a_right_of_a_later_version_is_left_out() -> None:
    assert kept_identity(None, "home").rights == frozenset()
    assert kept_identity(None, "principal ada").rights == frozenset()
    assert identity_from({**identity_json(ADA), "rights": ["run", "fly"]}) == ADA


@pytest.mark.parametrize("rights", [{Right.RUN}, {Right.RUN, Right.RUN_PROCESS}, {Right.RUN, Right.FILES}])
async def test_a_wider_isolation_needs_its_scope_and_the_files_that_it_sees(tmp_path: Path, rights: set[Right]) -> None:
    settings = Settings(workers_spare=0, allowed_isolation=(Isolation.RESTRICTED, Isolation.PROCESS))
    async with running(settings, Home(tmp_path)) as app:
        lacking = Caller("principal ada", identity=Identity("default", "ada", frozenset(rights)))
        assert admitted(CodeRequest("1", caller=lacking), app.executor).isolation is Isolation.RESTRICTED
        with pytest.raises(RightMissing, match="needs the scope"):
            admitted(CodeRequest("1", isolation="process", caller=lacking), app.executor)
        both = Identity("default", "ada", frozenset({Right.RUN, Right.RUN_PROCESS, Right.FILES}))
        request = CodeRequest("1", isolation="process", caller=Caller("principal ada", identity=both))
        assert admitted(request, app.executor).isolation is Isolation.PROCESS


async def test_where_full_python_is_all_there_is_a_run_that_asks_for_nothing_needs_its_scope_too(
    tmp_path: Path,
) -> None:
    settings = Settings(workers_spare=0, allowed_isolation=(Isolation.PROCESS,))
    async with running(settings, Home(tmp_path)) as app:
        with pytest.raises(RightMissing, match="run:process"):
            admitted(CodeRequest("1", caller=Caller("principal ada", identity=ADA)), app.executor)


def context_of(identity: Identity | None) -> Any:
    """What the SDK gives for a request over HTTP, as far as it is looked at."""
    scope = {} if identity is None else {IDENTITY: identity}
    request = SimpleNamespace(scope=scope, headers={})
    elicitation = SimpleNamespace(form={}, url=None)
    return SimpleNamespace(
        request_context=SimpleNamespace(request=request),
        client_capabilities=SimpleNamespace(elicitation=elicitation),
        input_responses={},
    )


async def test_an_answer_that_another_principal_or_a_lesser_token_sends_goes_on_with_nothing() -> None:
    conversations = Elicitations()
    held = _Suspended(context_of(ADA))
    conversations.suspended["state"] = held
    eve = context_of(Identity("acme", "eve", frozenset(Right)))
    lesser = context_of(Identity("acme", "ada", frozenset({Right.APPROVE})))
    for other in (eve, lesser, context_of(Identity("umbrella", "ada", frozenset(Right)))):
        with pytest.raises(RequestRefused, match="has ended"):
            await conversations.resume(cast("Any", other), "state")
    assert conversations.suspended["state"] is held


async def test_answers_that_nobody_came_back_for_are_kept_within_the_bounds_of_their_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elicitation, "ANSWER_SECONDS", 0.3)
    conversations = Elicitations()

    async def work(client: Client) -> CallToolResult:
        assert client.ask is not None
        await client.ask(Question(plain="May it?"))
        return CallToolResult(content=[])

    ben = Identity("acme", "ben", frozenset({Right.APPROVE}))
    for identity, count in ((replace(ADA, rights=ben.rights), elicitation.BROKEN_MAX + 2), (ben, 1)):
        context = context_of(identity)
        context.request_state, context.protocol_version = None, elicitation.ROUNDS_SINCE
        for _ in range(count):
            assert isinstance(await conversations.hold(context, work), InputRequiredResult)
    await asyncio.gather(*(each.task for each in conversations.suspended.values() if each.task is not None))
    await asyncio.sleep(0)
    kept = Counter(each.context is context for each in conversations.suspended.values())
    assert kept == {False: elicitation.BROKEN_MAX, True: 1}


def test_only_who_may_approve_is_asked() -> None:
    assert not can_be_asked(context_of(ADA))
    assert can_be_asked(context_of(Identity("acme", "ada", frozenset({Right.APPROVE}))))
    assert can_be_asked(context_of(None))


def test_the_privacy_filter_knows_tokens_of_this_server() -> None:
    token = new_token()
    text = f"the log says {token}, twice"
    assert [text[found.start : found.end] for found in secrets(text)] == [token]


def request_of(headers: dict[str, str], identity: Identity | None = None) -> Any:
    """What the SDK gives for a request over HTTP, as far as it is looked at."""
    scope = {} if identity is None else {IDENTITY: identity}
    return SimpleNamespace(request=SimpleNamespace(headers=headers, scope=scope))


ALICE, BOB = ({"authorization": f"Bearer of-{name}"} for name in ("alice", "bob"))
CREDENTIALS = scope_of(request_of(ALICE))


def test_each_credentials_session_and_principal_has_a_scope_of_its_own() -> None:
    ada, eve = (Identity("acme", name, ALL_RIGHTS) for name in ("ada", "eve"))
    scopes = [
        scope_of(request_of(headers, identity))
        for headers, identity in ((ALICE, None), (BOB, None), (ALICE, ada), (ALICE, eve), ({}, None))
    ]
    sessions = [scope_of(request_of({"mcp-session-id": name})) for name in ("1", "2")]
    assert len({"home", *scopes, *sessions}) == 8
    assert all(map(is_brief, sessions))
    assert not any(map(is_brief, scopes))
    assert "alice" not in scopes[0]


def test_the_principals_of_a_tenant_have_its_tokens_and_all_others_their_own() -> None:
    assert tokens_of(of_principal("ada")) == tokens_of(of_principal("eve")) == "home"
    others = [CREDENTIALS, scope_of(request_of({"mcp-session-id": "1"})), "http"]
    assert [tokens_of(scope) for scope in others] == others


@pytest.mark.parametrize("name", ["", "a/b", "x" * 65, "a\0b", f"{CREDENTIALS.rpartition(' ')[2]}/s"])
def test_no_name_that_a_caller_gives_stands_for_a_session_of_other_credentials(name: str) -> None:
    assert session_of(CREDENTIALS, "s") != session_of("http", "s") == "s"
    with pytest.raises(RequestRefused, match="letters, digits"):
        session_of("http", name)
