"""Nothing of an ended run gets past its gate, in whatever field it stands: those that there are, and new ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.sandbox.job import Failure, Outcome, Status
from sealab.server.base.database import HomeDatabase
from sealab.server.base.errors import PrivacyFailed
from sealab.server.base.host_call import Answer, HostCall, for_worker
from sealab.server.base.host_work import Account
from sealab.server.base.settings import PrivacyLevel, PrivacyMode, Settings
from sealab.server.governance.caller import Caller
from sealab.server.governance.questions import Question, Reply
from sealab.server.privacy.gates.run_gate import (
    CalledTool,
    ChangedNames,
    EndedRun,
    Gate,
    LeftTokens,
    ReturnedShape,
    WrittenName,
)
from sealab.server.privacy.privacy import Privacy

ADDRESS = "jane.miller@example.org"
OF_THE_HOST = {"layers": ("limits",), "tool": "mail.send"}


@dataclass(frozen=True, slots=True)
class WiderOutcome(Outcome):
    """An outcome that tells more, as a later version may."""

    remark: str = ""
    remarks: tuple[str, ...] = ()
    table: Mapping[str, str] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()


def planted(kind: Any, name: str = "") -> Any:
    """Return a value of a type with an address wherever a text may stand."""
    if name in OF_THE_HOST:
        return OF_THE_HOST[name]
    if is_dataclass(kind):
        assert isinstance(kind, type)
        hints = get_type_hints(kind)
        return kind(**{each.name: planted(hints[each.name], each.name) for each in fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Mapping:
        return {"note": ADDRESS}
    if origin is tuple:
        return (planted(arguments[0]),)
    if origin is not None or arguments:  # a union, of which JSON is one
        return planted(str if str in arguments else arguments[0])
    if issubclass(kind, Enum):
        return next(iter(kind))
    return ADDRESS if kind is str else kind()


@pytest.fixture
def gate(tmp_path: Path) -> Any:
    settings = Settings(privacy=PrivacyLevel.AUTO, privacy_mode=PrivacyMode.FAST)
    with closing(HomeDatabase(None, tmp_path)) as database:
        privacy = Privacy(settings, tmp_path, database)
        yield Gate(privacy, Caller("someone"), Account(60.0))
        privacy.close()


def written(run: EndedRun) -> str:
    return json.dumps(
        asdict(run), default=lambda value: value.decode("latin-1") if isinstance(value, bytes) else str(value)
    )


def ended(outcome: Outcome) -> EndedRun:
    """Return a run with an address in each of its fields."""
    return EndedRun(
        outcome,
        code=f"mail({ADDRESS!r})",
        written=(WrittenName(ADDRESS, 1),),
        called=(CalledTool("mail.send", True, 1.0), CalledTool("", False, 1.0, ADDRESS)),
        returns=(ReturnedShape("mail.send", f'{{"{ADDRESS}": str}}'),),
        left=(LeftTokens("mail.send", 1, (ADDRESS,), (ADDRESS,), {"EMAIL": 1}),),
        dry_calls=[{"tool": "mail.send", "arguments": {"to": ADDRESS}}],
        attached={"letter.txt": ADDRESS.encode(), "image.png": b"\x89PNG\xff"},
        changed=ChangedNames(
            (WrittenName(ADDRESS, 1),), (WrittenName(ADDRESS, 1),), (ADDRESS,), (WrittenName(ADDRESS, 1),)
        ),
    )


async def test_an_address_in_any_field_is_hidden_also_in_fields_that_a_later_version_adds(gate: Gate) -> None:
    run = ended(planted(WiderOutcome))
    assert written(run).count(ADDRESS) >= len(fields(Failure)) + 16
    shown = await gate.shown(run)
    told = written(shown.run)
    assert ADDRESS not in told
    assert "mail.send" in told
    assert shown.types == {"EMAIL": 1}
    assert shown.run.attached["image.png"] == b"\x89PNG\xff"
    assert {each.name for each in fields(EndedRun)} == {
        *("outcome", "code", "written", "called", "returns", "left", "dry_calls", "attached", "changed"),
        *("writes", "orders"),
    }


async def test_a_field_that_cannot_be_looked_through_lets_nothing_leave(gate: Gate) -> None:
    @dataclass(frozen=True, slots=True)
    class Odd(Outcome):
        seen: frozenset[str] = frozenset()

    with pytest.raises(TypeError, match="frozenset cannot be looked through"):
        await gate.shown(EndedRun(Odd(Status.OK, seen=frozenset({ADDRESS}))))


async def test_where_the_filter_fails_nothing_of_a_run_is_shown(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_parts: object, **_how: object) -> None:
        raise PrivacyFailed("It was too much.")

    monkeypatch.setattr(gate._privacy, "hide", fails)
    shown = (await gate.shown(ended(planted(Outcome)))).run
    assert ADDRESS not in written(shown)
    assert shown.outcome.error is not None
    assert shown.outcome.error.type == "PrivacyFailed"
    assert [each.tool for each in shown.called] == ["mail.send", ""]


async def test_numbers_that_the_host_measured_stay_as_they_are(gate: Gate) -> None:
    outcome = Outcome(
        Status.OK, result=4155550123, duration_ms=4155550123.0, cpu_ms=2025550123.0, notes=MappingProxyType({})
    )
    shown = (await gate.shown(EndedRun(outcome))).run.outcome
    assert (shown.duration_ms, shown.cpu_ms) == (4155550123.0, 2025550123.0)


async def test_a_message_a_question_and_a_call_wait_for_what_the_code_was_given_before(gate: Gate) -> None:
    seen: list[str] = []

    async def calls(call: HostCall) -> Answer:
        if call.name != "call_tool":
            return Answer(sum(not each.done() for each in gate._learning._tasks))
        given = str(call.arguments["name"])
        return Answer([{"customer_name": f"{given} Ostermai{chr(97 + n % 26)}{chr(97 + n // 26)}"} for n in range(600)])

    async def shown(_done: float, _total: float | None, message: str) -> None:
        seen.append(message)

    async def ask(question: Question) -> Reply:
        seen.append(question.text)
        return Reply(choice="")

    answer, report = for_worker(gate.around(calls)), gate.hiding_progress(shown)
    assert report is not None
    await answer("call_tool", {"name": "Quirin"})
    await report(0.5, 1.0, "now Quirin Ostermaixc")
    asking = Gate(gate._privacy, Caller("someone", ask=ask), Account(60.0))
    assert asking.caller.ask is not None
    await for_worker(asking.around(calls))("call_tool", {"name": "Tassilo"})
    await asking.caller.ask(Question(plain="now Tassilo Ostermaixc"))
    assert len(seen) == 2
    assert all(each.startswith("now [PERSON_") for each in seen)
    await answer("call_tool", {"name": "Quirin"})
    assert await answer("sanitize_pii", {"content": "Quirin Ostermaixc"}) == 0


async def test_what_a_tool_answers_beside_its_failure_is_learned_too(gate: Gate) -> None:
    async def calls(_call: HostCall) -> Answer:
        raise HostCallError(
            "No.", type="ToolError", details={"structured": {"customer_name": "Qyrrh Zvantek"}, "content": []}
        )

    seen: list[str] = []

    async def shown(_done: float, _total: float | None, message: str) -> None:
        seen.append(message)

    report = gate.hiding_progress(shown)
    assert report is not None
    with pytest.raises(HostCallError):
        await gate.around(calls)(HostCall("call_tool", {"name": "crm.find"}))
    await report(0.5, 1.0, "now Qyrrh Zvantek")
    assert "Qyrrh Zvantek" not in seen[0]
