"""The helpers that code calls and the host answers.

Each sends one host call through the guest; the host decides whether it is granted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import cast

from ..guest.facade import Facade
from ..guest.guest import GUEST
from ..job import Json
from . import displaying, hosted_runs, hosted_skills, hosted_tools
from .answers import awaitable

_SLICE = 3 * 1024 * 1024
"""Characters or bytes in one answer: far below what a frame holds, and whole groups of base64."""
_PART_CHARS = 800_000
"""Characters of a text in one call: each takes up to 6 bytes of `frames.CALL_BYTES_MAX`."""
_PART_CHARS_BASE64 = 4 * 1024 * 1024
_CUT_CHARS = 100_000
_TOKEN_CHARS = 200


def read_file(filename: str, offset: int = 0, limit: int | None = None, encoding: str | None = "utf-8") -> str | bytes:
    """Read a workspace file as text, or as bytes with `encoding=None`; "base64" gives base64 text.

    `offset` and `limit` count characters of a text, else bytes; None is all that follows, however much it is. Raises
    FileNotFoundError, PermissionError, ValueError, which names the encoding of a text that is in another one.
    """
    if encoding not in {None, "utf-8", "base64"}:
        text = cast("bytes", read_file(filename, encoding=None)).decode(encoding)
        return text[offset : None if limit is None else offset + limit]
    wire = "base64" if encoding is None else encoding
    slices: list[str] = []
    while True:
        wanted = _SLICE if limit is None else min(limit, _SLICE)
        arguments: dict[str, Json] = {"filename": filename, "offset": offset, "limit": wanted, "encoding": wire}
        answer = cast("Mapping[str, Json]", GUEST.call_host("read_file", arguments))
        slices.append(cast("str", answer["content"]))
        offset += wanted
        limit = None if limit is None else limit - wanted
        if not answer["truncated"] or limit == 0:
            content = "".join(slices)
            return base64.b64decode(content) if encoding is None else content


def write_file(
    filename: str, content: str | bytes, encoding: str = "utf-8", tokens: bool = False, allow_tokens: bool = False
) -> object:
    """Write a workspace file and return `{filename, size}`; bytes are written as they are.

    Under `PRIVACY=auto` tokens of personal data in a text become values. With `tokens=True` they stay tokens; values
    stay values, so hide them first: `write_file(name, sanitize_pii(text), tokens=True)`. Where the text had tokens, the
    answer has `tokens`: how many were `restored` or `kept`. A token that was cut or altered, so that its value is not
    certain, is refused; with `allow_tokens=True` it is written as it is, and is among the `unknown`.
    Raises PermissionError, ValueError, OSError when the quota is used up.
    """
    if isinstance(content, bytes | bytearray | memoryview):
        content, encoding = base64.b64encode(content).decode("ascii"), "base64"
    elif not isinstance(content, str):
        raise TypeError(
            f"write_file() takes text or bytes, not {type(content).__name__}. Use json.dumps(…) or str(…) first."
        )
    arguments: dict[str, Json] = {"filename": filename, "content": content, "encoding": encoding}
    if tokens is not False:
        arguments["tokens"] = tokens
    if allow_tokens is not False:
        arguments["allow_tokens"] = allow_tokens
    if len(content) <= _PART_CHARS:
        return awaitable(GUEST.call_host("write_file", arguments))
    token_report: dict[str, Json] = {}
    answer: Mapping[str, Json] = {}
    for part, last in parts_of(content, encoding):
        sent = {**arguments, "content": part, "last": int(last)}
        answer = cast("Mapping[str, Json]", GUEST.call_host("write_file", sent) or {})
        _add_token_report(token_report, cast("Mapping[str, Json]", answer.get("tokens", {})))
    return awaitable({**answer, "tokens": token_report} if token_report else cast("Json", answer))


def _add_token_report(token_report: dict[str, Json], part: Mapping[str, Json]) -> None:
    """Add the host's report on the tokens in one part of a text to the report on the parts before."""
    for what, more in part.items():
        if isinstance(more, list):
            token_report[what] = list(
                dict.fromkeys([*cast("list[str]", token_report.get(what, [])), *cast("list[str]", more)])
            )
        else:
            token_report[what] = cast("int", token_report.get(what, 0)) + cast("int", more)


def parts_of(content: str, encoding: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts in which a long content travels, and whether each is the last.

    Base64 is cut between whole groups. A text is cut after a line, else before a bracket or where it must be: the host
    looks for tokens in each part alone, and none of them holds a line break.
    """
    at, last = 0, False
    while not last:
        end = at + _PART_CHARS_BASE64 if encoding == "base64" else _cut(content, at)
        last = end >= len(content)
        yield content[at:end], last
        at = end


def _cut(content: str, at: int) -> int:
    end = at + _PART_CHARS
    if end >= len(content):
        return end
    line = content.rfind("\n", end - _CUT_CHARS, end)
    bracket = content.find("[", end - _TOKEN_CHARS, end)
    return line + 1 if line >= 0 else bracket if bracket >= 0 else end


def list_files(subpath: str = ".") -> object:
    """List workspace files below a folder, as `[{name, size, modified}]`."""
    answer = GUEST.call_host("list_files", {"subpath": subpath})
    return awaitable(cast("Mapping[str, Json]", answer)["files"])


def delete_file(filename: str) -> object:
    """Delete a workspace file and return `{filename, deleted}`. Raises FileNotFoundError, PermissionError."""
    return awaitable(GUEST.call_host("delete_file", {"filename": filename}))


def sanitize_pii(content: object) -> object:
    """Return a text, or a value made of JSON's types, with a token in place of everything personal in it.

    The same value always has the same token, so that values can be compared with tokens. Raises TypeError for what is
    not JSON, RuntimeError where it could not be looked for.
    """
    return GUEST.call_host("sanitize_pii", {"content": cast("Json", content)})


def restore_pii(content: object) -> object:
    """Return a text, or a value made of JSON's types, with the values that its tokens stand for.

    Tokens that the vault does not know stay. Raises PermissionError where values may not be given back.
    """
    return GUEST.call_host("restore_pii", {"content": cast("Json", content)})


def helpers() -> dict[str, object]:
    """Give every helper by the name under which code finds it."""
    return {
        "read_file": read_file,
        "write_file": write_file,
        "list_files": list_files,
        "delete_file": delete_file,
        **hosted_tools.helpers(),
        **hosted_skills.helpers(),
        "sanitize_pii": sanitize_pii,
        "restore_pii": restore_pii,
        **hosted_runs.helpers(),
        **displaying.helpers(),
    }


def modules() -> dict[str, Facade]:
    """Give what code can import beside the standard library: frozen or dynamic facades, by dotted name."""
    return {
        **hosted_tools.modules(),
        **hosted_skills.modules(),
        **displaying.modules(),
    }
