"""What a process of full Python wrote before it was ended by native code: where in the program, and why.

A security boundary: the text is the worker's own, which may write anything there. Of it are taken the number of a line
that the program has, and a bounded line of printable text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..job import Failure

WORDS_BYTES_MAX = 64 * 1024
"""So much is looked at of what it wrote: a traceback of many threads."""
_MESSAGE_CHARS_MAX = 300
_LINE_CHARS_MAX = 200
_DUMP = re.compile(r"^(?:Fatal Python error|Windows fatal exception): ", re.MULTILINE)
"""How CPython's `faulthandler` begins; a thread's frames follow, the innermost first."""
_FRAME = re.compile(r'^  File "(<(?:code|call \d{1,9})>)", line (\d{1,9}) in ', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LastWords:
    """Where the program was, as the number of a line, and what a library said before it ended the process."""

    line: int | None = None
    message: str = ""


def last_words(written: str, filename: str, source: str) -> LastWords:
    """Return what the end of a process's output says of its end, where the program is `source` under that name."""
    begins = _DUMP.search(written)
    if begins is None:
        return LastWords()
    said, dump = written[: begins.start()], written[begins.start() :]
    message = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    count = source.count("\n") + 1
    lines = (int(number) for name, number in _FRAME.findall(dump) if name == filename)
    line = next((number for number in lines if 1 <= number <= count), None)
    return LastWords(line, _printable(message))


def with_last_words(failure: Failure, words: LastWords, filename: str, source: str) -> Failure:
    """Return the failure of a process that native code ended, with the line where the program was, if it is known."""
    said = f" It wrote last: {words.message}" if words.message else ""
    if words.line is None:
        return replace(failure, message=f"{failure.message}{said}")
    began = failure.message.partition(". ")[0]
    shown = _printable(source.splitlines()[words.line - 1]) if words.line <= len(source.splitlines()) else ""
    return replace(
        failure,
        message=f"{began} at line {words.line}, in native code of a library.{said}",
        line=words.line,
        hint="Try the line with less data or other options, or another library.",
        traceback=f'  File "{filename}", line {words.line}\n' + (f"    {shown[:_LINE_CHARS_MAX]}\n" if shown else ""),
    )


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text.strip())[:_MESSAGE_CHARS_MAX]
