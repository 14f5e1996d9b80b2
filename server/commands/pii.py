"""`sealab pii`: replaces personal data in files by tokens, restores or deletes it, and reports what was done."""
# ruff: noqa: T201 - printing is what a command line does

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..caller import LOCAL
from ..errors import Exit, UsageError
from ..home import Home
from ..settings import Settings
from .pii_forget import SCOPE_SHOWN, forget
from .pii_forget import add_to as add_forget
from .pii_vault import counted, opened_vault

if TYPE_CHECKING:
    from ..privacy.privacy import Privacy
    from ..privacy.reading.encodings import Encoding
    from ..privacy.tokens.streams import FileKind

Begin = Callable[[argparse.Namespace], tuple[Home, Settings]]
"""Reads the home and the settings that a command line names."""

_STRAY = re.compile("[\udc80-\udcff]")
_BAR_EVERY_SECONDS = 0.1
_BAR_CELLS = 30
_AUDIT_LINES = 100
_KINDS = ("auto", "text", "json", "csv")


def add_to(parser: argparse.ArgumentParser, begin: Begin, options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Give the parser of `sealab pii` its four commands; `options` adds those that all commands have."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, help="what to do")

    def command(name: str, run: _Runs, help_text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help_text, description=f"{help_text.capitalize()}.", allow_abbrev=False)
        made.add_argument("--json", action="store_true", help="print it as JSON")
        made.set_defaults(command=lambda chosen: run(chosen, *begin(chosen)))
        options(made)
        return made

    for name, run, help_text in (
        ("sanitize", _sanitize, "put tokens in place of personal data"),
        ("restore", _restore, "put values back in place of their tokens"),
    ):
        made = command(name, run, help_text)
        made.add_argument("file", metavar="FILE", nargs="?", default="-", help="the file to read; - is stdin")
        made.add_argument("--encoding", metavar="NAME", type=_known_encoding, help="what the file is written in")
        made.add_argument("--as", dest="kind", choices=_KINDS, default="auto", help="what the file is")
        made.add_argument("--output", "-o", metavar="FILE", help="write to this file instead of stdout")
    add_forget(command("forget", forget, "show what is kept of a person, and erase it with --yes"))
    audit = command("audit", _audit, "say what was hidden and restored, without the values")
    audit.add_argument("--limit", metavar="N", type=int, default=_AUDIT_LINES, help="the newest N lines")


_Runs = Callable[[argparse.Namespace, Home, Settings], int]


def _sanitize(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ..privacy.tokens import streams

    tally = streams.Tally()
    with _opened(chosen, home, settings) as work:
        sanitizer = work.privacy.sanitizer()
        pieces = streams.sanitized(sanitizer, LOCAL.scope, work.source, work.kind, tally)
        text = _written(chosen, pieces, work.encoding)
        work.privacy.note("hide", "terminal", tally.types(), scope=LOCAL.scope)
    types = tally.types()
    if chosen.json:
        _print_json({"sanitized_text": text, "pii_found": sum(types.values()), "pii_types": sorted(types)})
    _print_error(f"Hidden: {counted(types)}.")
    if work.source.strays:
        _print_error(
            f"{work.source.strays} bytes are not {work.encoding.name}: what they stand in may hold personal data. "
            "Say --encoding."
        )
        return Exit.FAILED
    return Exit.OK


def _restore(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    from ..privacy.tokens import streams

    tally = streams.Tally()
    with _opened(chosen, home, settings) as work:
        sanitizer = work.privacy.sanitizer()
        lenient = settings.privacy_lenient_restore
        pieces = streams.restored(sanitizer, LOCAL.scope, work.source, work.kind, tally, lenient=lenient)
        text = _written(chosen, pieces, work.encoding)
        work.privacy.note("restore", "terminal", tally.replaced, scope=LOCAL.scope)
    if chosen.json:
        count = sum(tally.replaced.values())
        _print_json({"restored_text": text, "restored": count, "unknown_tokens": list(tally.unknown)})
    _print_error(f"Restored: {counted(tally.replaced)}.")
    if tally.unknown:
        some = ", ".join(list(tally.unknown)[:5])
        _print_error(f"Left as they are, since this home does not know them: {_tokens(len(tally.unknown))} ({some}).")
    return Exit.OK


def _audit(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    if chosen.limit < 0:
        raise UsageError(f"--limit is {chosen.limit}, which is not allowed. Give 0 or more.")
    with opened_vault(home, settings) as work:
        lines = work.privacy.vault().audit(chosen.limit)
        counts = work.privacy.vault().counts()
    told = [
        {
            "at": datetime.fromtimestamp(line.at, UTC).isoformat(timespec="milliseconds"),
            "scope": line.scope,
            "action": line.action,
            "destination": line.destination,
            "type": line.type,
            "count": line.count,
            "run": line.run,
        }
        for line in lines
    ]
    if chosen.json:
        _print_json({"values": counts.values, "scopes": counts.scopes, "types": dict(counts.types), "audit": told})
        return Exit.OK
    print(f"The vault holds {counts.values} values in {counts.scopes} scopes: {counted(counts.types)}.")
    for line in told:
        print(
            "{at}  {scope:.{shown}}  {action:<8} {destination:<20} {type:<12} {count:>6}".format(
                **line, shown=SCOPE_SHOWN
            )
        )
    return Exit.OK


@dataclass(frozen=True, slots=True)
class _Work:
    privacy: Privacy
    source: _Progress
    kind: FileKind
    encoding: Encoding


@contextmanager
def _opened(chosen: argparse.Namespace, home: Home, settings: Settings) -> Iterator[_Work]:
    from ..privacy.tokens import streams

    with _input(chosen.file) as (raw, size), opened_vault(home, settings) as opened:
        encoding = _encoding(chosen, raw)
        text = io.TextIOWrapper(raw, encoding=encoding.name, errors="surrogateescape", newline="")
        source = _Progress(text, raw, size)
        kind = (
            streams.kind_of(chosen.file, source.peek(streams.PIECE_CHARS))
            if chosen.kind == "auto"
            else streams.FileKind(chosen.kind)
        )
        try:
            yield _Work(opened.privacy, source, kind, encoding)
        finally:
            source.end()
            text.detach()


def _encoding(chosen: argparse.Namespace, raw: io.BufferedReader) -> Encoding:
    """Return in what the input is written, as it is said or by its bytes, and leave out the mark that says so."""
    from ..privacy.reading.encodings import SAMPLE_BYTES, Encoding, marked

    sample = raw.peek(SAMPLE_BYTES)
    found = marked(sample, None if chosen.file == "-" else raw)
    if chosen.encoding is not None:
        mark = found.mark if found is not None and found.name == chosen.encoding else b""
        found = Encoding(chosen.encoding, mark)
    elif found is None:
        raise UsageError(
            f"{chosen.file} does not look like text, so nothing can be found in it. Name what it is in with --encoding."
        )
    elif found.name != "utf-8":
        _print_error(f"Read as {found.name}, by its bytes. Say --encoding if it is in another encoding.")
    raw.read(len(found.mark))
    return found


@contextmanager
def _input(name: str) -> Iterator[tuple[io.BufferedReader, int | None]]:
    if name == "-":
        yield sys.stdin.buffer, None  # type: ignore[misc]  # a BufferedReader, as documented
        return
    try:
        raw = open(name, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}. Name a file, or - for stdin.") from None
    with raw:
        try:
            size = os.fstat(raw.fileno()).st_size
            yield raw, size
        except IsADirectoryError:
            raise UsageError(f"{name} is a folder. Name a file, or - for stdin.") from None


def _written(chosen: argparse.Namespace, pieces: Iterator[str], encoding: Encoding) -> str:
    """Write the pieces as they come, or return them all for `--json`. A file appears whole or not at all."""
    if chosen.output is not None:
        _to_file(Path(chosen.output), pieces, encoding)
        return ""
    if chosen.json:
        return "".join(pieces)
    if sys.stdout.isatty():
        sys.stdout.writelines(pieces)
    else:
        sys.stdout.buffer.writelines(_bytes(pieces, encoding))
    sys.stdout.flush()
    return ""


def _to_file(target: Path, pieces: Iterator[str], encoding: Encoding) -> None:
    import tempfile

    try:
        descriptor, new = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(_bytes(pieces, encoding))
            Path(new).replace(target)
        except BaseException:
            Path(new).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}. Name another file.") from error


class _Progress:
    """A text that is read piece by piece, with a bar on the terminal that says how far."""

    def __init__(self, text: TextIO, raw: io.BufferedReader, size: int | None) -> None:
        self._text = text
        self._raw = raw
        self._size = size
        self._peeked = ""
        self.strays = 0
        """Bytes that were in no encoding of a text."""
        self._shows = sys.__stderr__ is not None and sys.__stderr__.isatty()
        self._last = 0.0

    def peek(self, size: int) -> str:
        """Return the beginning, which `read` gives again."""
        self._peeked = self._taken(size)
        return self._peeked

    def _taken(self, size: int) -> str:
        text = self._text.read(size)
        self.strays += 0 if text.isascii() else len(_STRAY.findall(text))
        return text

    def read(self, size: int, /) -> str:
        """Return up to `size` characters."""
        piece, self._peeked = self._peeked[:size], self._peeked[size:]
        piece += self._taken(size - len(piece)) if len(piece) < size else ""
        if self._shows and time.monotonic() - self._last > _BAR_EVERY_SECONDS:
            self._last = time.monotonic()
            self._draw(self._raw.tell() if self._size is not None else 0)
        return piece

    def end(self) -> None:
        """Take the bar away."""
        if self._shows and self._last:
            print("\r\033[K", end="", file=sys.__stderr__, flush=True)

    def _draw(self, done: int) -> None:
        if not self._size:
            print("\rreading …", end="", file=sys.__stderr__, flush=True)
            return
        share = min(1.0, done / self._size)
        bar = "█" * round(share * _BAR_CELLS)
        print(f"\r{bar:<{_BAR_CELLS}} {share:4.0%} of {self._size:,} bytes", end="", file=sys.__stderr__, flush=True)


def _bytes(pieces: Iterator[str], encoding: Encoding) -> Iterator[bytes]:
    """Give texts as bytes: those that were in no encoding as they came."""
    yield encoding.mark
    for piece in pieces:
        try:
            yield piece.encode(encoding.name, "surrogateescape")
        except UnicodeEncodeError as error:
            # A lone surrogate that was not a byte comes from an escape in JSON, and has no bytes of its own but these.
            if not encoding.name.startswith("utf"):
                raise UsageError(
                    f"{error.object[error.start : error.end]!r} cannot be written in {encoding.name}. Convert the file "
                    "to UTF-8 first."
                ) from None
            yield piece.encode(encoding.name, "surrogatepass")


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise argparse.ArgumentTypeError(
            f"no encoding is called {name!r}, such as utf-8, cp1252 or utf-16-le"
        ) from None


def _tokens(count: int) -> str:
    return f"{count} token{'s' * (count != 1)}"


def _print_json(value: object) -> None:
    print(json.dumps(value))


def _print_error(text: str) -> None:
    print(f"sealab: {text}", file=sys.stderr, flush=True)
