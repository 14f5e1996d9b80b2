"""`sealab pii`: replaces personal data in files by tokens, restores or deletes it, and reports what was done."""

from __future__ import annotations

import codecs
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from typing_extensions import TypedDict

from ...base.errors import Exit, UsageError
from ...governance.caller import LOCAL
from ...privacy.reading.encodings import SAMPLE_BYTES, Encoding, marked
from ...privacy.tokens import streams
from .command import AuditedAs, Group
from .opened import opened_vault
from .pii_forget import SCOPE_SHOWN, forget, of_types
from .terminal import Here, Output, counted, print_error

if TYPE_CHECKING:
    from ...privacy.privacy import Privacy
    from ...privacy.tokens.streams import FileKind

pii = Group(of_tenant=True)

Kind = Literal["auto", "text", "json", "csv"]
_STRAY = re.compile("[\udc80-\udcff]")


@pii.command()
def sanitize(
    here: Here, file: str = "-", *, encoding: str | None = None, as_: Kind = "auto", output: Path | None = None
) -> Output:
    """Put tokens in place of personal data.

    file: the file to read; - is stdin
    encoding NAME: what the file is written in
    as_: what the file is
    output FILE: write to this file instead of stdout
    """
    work, tally, text = _passed_through(here, file, encoding, as_, action="hide", output=output)
    types = tally.types()
    print_error(f"sealab: Hidden: {of_types(types)}.")
    strays = work.source.strays
    if strays:
        print_error(
            f"sealab: {strays} bytes are not {work.encoding.name}: what they stand in may hold personal data. "
            "Say --encoding."
        )
    summary = {"sanitized_text": text, "pii_found": sum(types.values()), "pii_types": sorted(types)}
    return Output(summary, code=Exit.FAILED if strays else Exit.OK)


@pii.command(audit=AuditedAs("exported"))
def restore(
    here: Here, file: str = "-", *, encoding: str | None = None, as_: Kind = "auto", output: Path | None = None
) -> Output:
    """Put values back in place of their tokens.

    file: the file to read; - is stdin
    encoding NAME: what the file is written in
    as_: what the file is
    output FILE: write to this file instead of stdout
    """
    _work, tally, text = _passed_through(here, file, encoding, as_, action="restore", output=output)
    print_error(f"sealab: Restored: {of_types(tally.replaced)}.")
    unknown = list(tally.unknown)
    if unknown:
        tokens = f"{counted(len(unknown), 'token')} ({', '.join(unknown[:5])})"
        print_error(f"sealab: Left as they are, since this home does not know them: {tokens}.")
    return Output({"restored_text": text, "restored": sum(tally.replaced.values()), "unknown_tokens": unknown})


pii.command(audit=AuditedAs(only_with="yes"))(forget)


@pii.command()
def audit(here: Here, *, limit: int = 100) -> Output:
    """Show what was hidden and restored, without the values.

    limit N: the newest N lines
    """
    if limit < 0:
        raise UsageError(f"--limit is {limit}, which is not allowed. Give 0 or more.")
    with opened_vault(here.home, here.settings) as work:
        contents = vault_json(work.privacy, limit)
    shown = [
        "{at}  {scope:.{shown}}  {action:<8} {destination:<20} {type:<12} {count:>6}".format(**each, shown=SCOPE_SHOWN)
        for each in contents["audit"]
    ]
    held = f"The vault holds {contents['values']} values in {contents['scopes']} scopes: {of_types(contents['types'])}."
    return Output(contents, [held, *shown])


class VaultContents(TypedDict):
    """What a vault holds by type, and the newest lines of what was done with values; never a value."""

    values: int
    scopes: int
    types: dict[str, int]
    audit: list[dict[str, object]]


def vault_json(privacy: Privacy, limit: int) -> VaultContents:
    """Return what a vault holds by type, and what was hidden and restored, newest first. Blocks."""
    counts = privacy.vault().counts()
    lines = [
        {
            "at": datetime.fromtimestamp(line.at).astimezone().isoformat(timespec="milliseconds"),
            "scope": line.scope,
            "action": line.action,
            "destination": line.destination,
            "type": line.type,
            "count": line.count,
            "run": line.run,
        }
        for line in privacy.vault().audit(limit)
    ]
    return {"values": counts.values, "scopes": counts.scopes, "types": dict(counts.types), "audit": lines}


@dataclass(frozen=True, slots=True)
class _Work:
    privacy: Privacy
    source: _Source
    kind: FileKind
    encoding: Encoding


def _passed_through(
    here: Here, file: str, named: str | None, kind: Kind, *, action: Literal["hide", "restore"], output: Path | None
) -> tuple[_Work, streams.Tally, str]:
    """Write a file with what is personal in it hidden or restored; return the text too, where it is for `--json`."""
    change = streams.sanitized if action == "hide" else streams.restored
    tally = streams.Tally()
    with _opened(here, file, named, kind) as work:
        pieces = change(work.privacy.sanitizer(), LOCAL.scope, work.source, work.kind, tally)
        text = _written(here, output, pieces, work.encoding)
        types = tally.types() if action == "hide" else tally.replaced
        work.privacy.note(action, "terminal", types, scope=LOCAL.scope)
    return work, tally, text


@contextmanager
def _opened(here: Here, file: str, named: str | None, kind: Kind) -> Iterator[_Work]:
    with _input(file) as raw, opened_vault(here.home, here.settings) as opened:
        encoding = _encoding(file, named, raw)
        text = io.TextIOWrapper(raw, encoding=encoding.name, errors="surrogateescape", newline="")
        source = _Source(text)
        found = streams.kind_of(file, source.peek(streams.PIECE_CHARS)) if kind == "auto" else streams.FileKind(kind)
        try:
            yield _Work(opened.privacy, source, found, encoding)
        finally:
            text.detach()


def _encoding(file: str, named: str | None, raw: io.BufferedReader) -> Encoding:
    """Return in what the input is written, as it is said or by its bytes, and leave out the mark that says so."""
    if named is not None:
        try:
            named = codecs.lookup(named).name
        except LookupError:
            raise UsageError(
                f"No encoding is called {named!r}. Give one such as utf-8, cp1252 or utf-16-le to --encoding."
            ) from None
    found = marked(raw.peek(SAMPLE_BYTES), None if file == "-" else raw)
    if named is not None:
        found = Encoding(named, found.mark if found is not None and found.name == named else b"")
    elif found is None:
        raise UsageError(
            f"{file} does not look like text, so nothing can be found in it. Name what it is in with --encoding."
        )
    elif found.name != "utf-8":
        print_error(f"sealab: Read as {found.name}, by its bytes. Say --encoding if it is in another encoding.")
    raw.read(len(found.mark))
    return found


@contextmanager
def _input(name: str) -> Iterator[io.BufferedReader]:
    if name == "-":
        yield sys.stdin.buffer  # type: ignore[misc]  # a BufferedReader, as documented
        return
    try:
        raw = open(name, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}. Name a file, or - for stdin.") from None
    with raw:
        yield raw


def _written(here: Here, output: Path | None, pieces: Iterator[str], encoding: Encoding) -> str:
    """Write the pieces as they come, or return them all for `--json`. A file appears whole or not at all."""
    if output is not None:
        _to_file(output, pieces, encoding)
        return ""
    if here.json:
        return "".join(pieces)
    if sys.stdout.isatty():
        sys.stdout.writelines(pieces)
    else:
        sys.stdout.buffer.writelines(_bytes(pieces, encoding))
    sys.stdout.flush()
    return ""


def _to_file(target: Path, pieces: Iterator[str], encoding: Encoding) -> None:
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


class _Source:
    """A text that is read piece by piece."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._peeked = ""
        self.strays = 0
        """Bytes that were in no encoding of a text."""

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
        return piece + self._taken(size - len(piece)) if len(piece) < size else piece


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
