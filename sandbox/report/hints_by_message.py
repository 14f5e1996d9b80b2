"""What to do about an error, where its message alone says enough: a table of patterns, and how a hint is phrased.

The messages are CPython's own and the dialect's.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from .unawaited import AWAIT

_ASYNC_WITH = "Write `async with`."
_NONE = "The value is None: look at what made it. Methods that change a list in place, such as sort(), return None."
_TOP_LEVEL_AWAIT = "`await` works at the top level: write `await main()` instead of starting an event loop."

_MESSAGES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (
            r"object (?!coroutine)\S+ can't be used in 'await' expression|object can't be awaited$",
            "The call is not asynchronous: leave out `await`.",
        ),
        (r"'async for' requires an object with __aiter__", "The value is not asynchronous: write a plain `for`."),
        (r"'async_generator' object is not iterable", "Write `async for`, which an async generator needs."),
        (
            r"'async with' received|'async with' requires|asynchronous context manager protocol$",
            "Write a plain `with`.",
        ),
        (
            r"does not support the context manager protocol \(missed __exit__ method\) but it supports",
            _ASYNC_WITH,
        ),
        (
            r"^'(?:Lock|Condition|(?:Bounded)?Semaphore|TaskGroup|Timeout|_?Async\w+)' object does not support",
            _ASYNC_WITH,
        ),
        (r"'coroutine'|[Tt]ype coroutine\b|\bcoroutine .* was never awaited", AWAIT),
        (
            r"cannot be called from a running event loop|event loop is already running|^no running event loop",
            _TOP_LEVEL_AWAIT,
        ),
        (r"cannot reuse already awaited coroutine", "Call the function again for each `await`."),
        (r"^the JSON object must be str, bytes or bytearray, not ", "The value is already parsed: use it as it is."),
        (
            r"is not JSON serializable$",
            "Set `result` to the value itself, which need not be JSON, or write json.dumps(…, default=str).",
        ),
        (r"^string indices must be integers", "The value is text: if it is JSON, parse it first with json.loads(…)."),
        (
            r"^list indices must be integers or slices, not str",
            "The value is a list: take one of its items first, as in [0], or loop over it.",
        ),
        (r"'NoneType' object ", _NONE),
        (
            r"^can only concatenate str|^unsupported operand type\(s\) for \+: '(?:int|float)' and 'str'",
            "Convert one side with str(…), int(…) or float(…), or write an f-string.",
        ),
        (
            r"^'(?:str|int|float|list|dict|set|tuple)' object is not callable",
            "A variable has the name of a function: rename the variable.",
        ),
        (
            r"\bunhashable type: '(?:list|set|dict)'",
            "Keys and members of sets cannot change: use tuple(…) or frozenset(…).",
        ),
        (r"changed size during iteration$", "Loop over a copy: `for … in list(…)`."),
        (r"^Exceeds the limit \(\d+ digits\)", "Keep it an int: `result` may be an int of any size."),
        (
            r"^Expecting value: line 1 column 1 ",
            "The text is empty or is not valid JSON: print(repr(text[:200])) shows what it is.",
        ),
        (
            r"^Expecting property name enclosed in double quotes",
            "If it is a Python literal and not JSON, write ast.literal_eval(text).",
        ),
    )
)

_REFUSED_HERE: Final = re.compile(r"\bhere; ([^;\n>]{1,200})>?$")
"""How the dialect ends a message that says what to do: `open() is not available here; use read_file(name)`."""


def by_message(message: str) -> str | None:
    """Return what to do about an error that its message alone says enough about, or None."""
    refused = _REFUSED_HERE.search(message)
    if refused is not None:
        return sentence(refused[1])
    return next((hint for pattern, hint in _MESSAGES if pattern.search(message)), None)


def sentence(clause: str) -> str:
    """Return a clause as a sentence; a first word that is code keeps its spelling."""
    first = clause.split(" ", 1)[0]
    if first.isalpha() and first.islower():
        clause = clause[0].upper() + clause[1:]
    return clause if clause.endswith((".", "!", "?")) else f"{clause}."


_LATER: Final = (
    (
        (3, 12),
        re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\["),
        re.compile(r""),
        "a list of type parameters after a name",
        "use typing.TypeVar and typing.Generic",
    ),
    (
        (3, 12),
        re.compile(r"^\s*type\s+\w+\s*[\[=]"),
        re.compile(r""),
        "the `type` statement",
        "write Name = …",
    ),
    (
        (3, 12),
        re.compile(r"(?i)\b(?:f|rf|fr)['\"]"),
        re.compile(r"^f-string(?!: (?:empty|single))|line continuation|^unterminated string"),
        "an f-string with its own quotes, a backslash or a comment within its braces",
        "use the other quotes there, or a variable",
    ),
    (
        (3, 14),
        re.compile(r"^\s*except\b"),
        re.compile(r"^multiple exception types must be parenthesized"),
        "`except A, B`",
        "write except (A, B)",
    ),
    ((3, 14), re.compile(r"\bt['\"]"), re.compile(r"^invalid syntax"), "a template string", "write an f-string"),
)
"""Since when, how the line of the error looks, how Python's message does, what it is, what to write instead."""


def newer_syntax(message: str, line: str) -> str | None:
    """Return what to say of a syntax error in `line`, or None where no later version would take it."""
    for since, looks, said, what, instead in _LATER:
        if sys.version_info < since and looks.search(line) and said.search(message):
            runs = ".".join(map(str, sys.version_info[:2]))
            return f"{what} needs Python {since[0]}.{since[1]}, and {runs} runs here; {instead}"
    return None
