"""What the code of a skill says of itself: read in a worker, since source can kill a parser, and judged here."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from ....sandbox.job import Job, Json, Limits, Outcome, SourceReading, Status
from ....sandbox.wire.bounded_json import write_in_steps
from ...base.errors import SkillUnfit
from ...base.host_work import Account, Kind, in_thread
from ...governance.caller import LOCAL, Caller
from ..runs.placement.escalation import escalated

if TYPE_CHECKING:
    from ..runs.executor import Executor

SOURCE_CHARS_MAX = 500_000
SCHEMA_CHARS_MAX = 100_000
"""Characters of the JSON Schema of a skill's parameters: checking so much takes a second."""
_READING_SECONDS = 20.0
_UNSORTED_MAX = 100
_ASKING = re.compile(r'[,.]? or ask for isolation="\w+"\.', re.IGNORECASE)
"""What hints advise to those who may: saving takes no isolation."""


@dataclass(frozen=True, slots=True)
class SkillFacts:
    """What `sandbox.skill_source.facts` returned, checked.

    `wider` says that the dialect refuses the code, or that of a skill that it uses. `constants` are those of a script,
    each with why it did not become a parameter, or nothing.
    """

    code: str
    entry: str
    is_script: bool
    is_async: bool
    signature: str
    parameters: Mapping[str, Json]
    description: str
    examples: bool
    modules: tuple[str, ...]
    tools: tuple[str, ...]
    skills: tuple[str, ...]
    test_functions: tuple[tuple[str, bool], ...]
    test_is_examples: bool
    undefined: tuple[str, ...] = ()
    wider: bool = False
    constants: Mapping[str, str] = field(default_factory=dict)


async def facts_of(
    executor: Executor, code: str, reading: SourceReading, *, nested: bool, caller: Caller = LOCAL
) -> SkillFacts:
    """Read the code of a skill. Raises `SkillUnfit`, with the line where there is one."""
    for part, text in (("code", code), ("tests", reading.tests)):
        if len(text) > SOURCE_CHARS_MAX:
            raise SkillUnfit(
                f"The {part} of {reading.name} is longer than {SOURCE_CHARS_MAX:,} characters. "
                "Keep data in a workspace file, or make several skills of it."
            )
    if not code.strip():
        raise SkillUnfit(f"There is no code for {reading.name}. Give code, or from_run with a run_id.")
    limits = Limits(
        timeout_seconds=min(_READING_SECONDS, executor.settings.max_timeout_seconds),
        memory_mb=executor.settings.memory_mb,
        pids_max=executor.settings.pids_max,
    )
    job = Job(
        code=code,
        limits=limits,
        isolation=executor.pools.default,
        reads=reading,
        nested=nested,
        caller=caller.scope,
    )
    own = Account(0.0)  # nothing is charged to it: the host computes nothing for a reading
    async with nullcontext() if nested else executor.shares.run(caller.scope, own, was_queued=True):
        outcome = await executor.pools.run(job, _no_calls)
        wider = outcome.refusal is not None
        if wider:
            outcome = await escalated(executor, job, _no_calls, outcome, caller=replace(caller, ask=None))
    if outcome.status is not Status.OK:
        raise SkillUnfit(_why(reading.name, outcome) + _without_full_python(executor, outcome))
    facts = await in_thread(Kind.SEARCH, partial(_judged, reading.name, outcome.result, wider=wider))
    used = [name for name in facts.skills if name != reading.name]
    if not wider and used and executor.wider_skills is not None and await executor.wider_skills(used):
        return replace(facts, wider=True)
    return facts


async def _no_calls(_name: str, _arguments: Mapping[str, Json]) -> Json:
    return None


def _without_full_python(executor: Executor, outcome: Outcome) -> str:
    why = executor.offer.full_python.why_not()
    modules = () if outcome.refusal is None else outcome.refusal.modules
    packages = [each for each in modules if each.partition(".")[0] not in sys.stdlib_module_names]
    return "" if why is None or not packages else f" A skill that imports {packages[0]} needs full Python. {why}"


def _why(name: str, outcome: Outcome) -> str:
    error = outcome.error
    if error is None:
        return f"The code of {name} could not be read: {outcome.status}. Nothing was saved."
    if outcome.status in {Status.CRASHED, Status.BUSY}:
        return f"The code of {name} could not be read: {error.message.rstrip('.')}. Nothing was saved. Save it again."
    where = "" if error.line is None else f" in line {error.line}"
    hint = " Correct it." if error.hint is None else f" {_ASKING.sub('.', error.hint)}"
    message = error.message.rstrip(".")
    return f"The code of {name} cannot be saved: {error.type}{where}: {message}.{hint} Nothing was saved."


def _judged(name: str, reply: Json, *, wider: bool) -> SkillFacts:
    """Make facts of what a worker said; whatever it says, they are of the right types and sizes."""
    if not isinstance(reply, Mapping):
        raise _nonsense(name)
    if isinstance(reply.get("problem"), str):
        raise SkillUnfit(f"{reply['problem']} Nothing was saved.")
    try:
        facts = SkillFacts(
            code=_text(reply["code"]),
            entry=_text(reply["entry"]),
            is_script=bool(reply["is_script"]),
            is_async=bool(reply["is_async"]),
            signature=_text(reply["signature"]),
            parameters=_schema(name, reply["parameters"]),
            description=_text(reply["description"]),
            examples=bool(reply["examples"]),
            modules=_texts(reply["modules"]),
            tools=_texts(reply["tools"]),
            skills=_texts(reply["skills"]),
            test_functions=tuple(
                (_text(pair[0]), bool(pair[1])) for pair in cast("Sequence[Sequence[Json]]", reply["test_functions"])
            ),
            test_is_examples=bool(reply["test_is_examples"]),
            undefined=_texts(reply["undefined"]),
            wider=wider,
            constants={
                _text(each): _text(why) for each, why in cast("Mapping[str, Json]", reply.get("constants", {})).items()
            },
        )
    except (KeyError, IndexError, TypeError, ValueError):
        raise _nonsense(name) from None
    names = [facts.entry, *(function for function, _ in facts.test_functions)]
    if not all(each.isidentifier() for each in names):
        raise _nonsense(name)
    return facts


def _text(value: Json) -> str:
    if not isinstance(value, str) or len(value) > 2 * SOURCE_CHARS_MAX:
        raise ValueError
    return value


def _texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > 1000:  # noqa: PLR2004 - more than any code uses
        raise ValueError
    return tuple(_text(each) for each in value)


def _schema(name: str, value: Json) -> Mapping[str, Json]:
    from jsonschema import Draft202012Validator, SchemaError

    if not isinstance(value, dict) or value.get("type") != "object" or not isinstance(value.get("properties"), dict):
        raise ValueError
    if len(write_in_steps(value)) > SCHEMA_CHARS_MAX:
        raise SkillUnfit(
            f"The parameters of {name} take more than {SCHEMA_CHARS_MAX:,} characters as a JSON Schema. "
            "Take fewer, or one dict. Nothing was saved."
        )
    # What should be unique names and cannot be sorted the library compares each with each.
    if any(
        len(names) > _UNSORTED_MAX and not all(isinstance(each, str) for each in names) for names in _names_in(value)
    ):
        raise ValueError
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError:
        raise ValueError from None
    return value


def _names_in(schema: Json) -> Iterator[list[Json]]:
    """Give every list of a schema that is to hold unique names, without recursion."""
    waiting: list[Json] = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, Mapping):
            waiting += each.values()
            required = each.get("dependentRequired")
            lists = (
                each.get("required"),
                each.get("type"),
                *(required.values() if isinstance(required, Mapping) else ()),
            )
            yield from (names for names in lists if isinstance(names, list))


def _nonsense(name: str) -> SkillUnfit:
    return SkillUnfit(f"The code of {name} could not be read: its worker did not say what it is. Nothing was saved.")
