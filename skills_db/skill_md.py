"""Skills as Agent Skills folders: `SKILL.md`, `scripts/<name>.py`, its tests, and what else a folder brings.

A folder that others wrote, with instructions and any number of scripts, or none, is kept file by file as it is.

    csv-profile/
    ├── SKILL.md                    frontmatter, then what a reader needs to know
    ├── scripts/csv_profile.py      the code; runs by itself where it needs no helper
    └── tests/csv_profile.py        its tests, and tests/recordings.json the upstream answers that they met

`written` and `read` are each other's inverse. Nothing here runs or parses code: what a folder says of parameters and
signatures is for people, and is read anew from the code by who imports it.

A plain name of a skill (lower-case words and digits, single underscores) and its folder's differ in their separator
alone: `csv_profile`, `csv-profile`. Any other name is cut to what a folder may be called and ends in `-u` and eight
digits of its hash, so that no two names meet; a plain name that happens to end so is marked too. The folder's SKILL.md
says the name itself.

Source of the format: https://agentskills.io/specification.
"""

from __future__ import annotations

import base64
import hashlib
import json
import keyword
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, cast

from .content import Json, SkillDraft
from .errors import SkillRefused

MANIFEST: Final = "SKILL.md"
DESCRIPTION_CHARS_MAX: Final = 1024
FILES_MAX: Final = 200
FILE_BYTES_MAX: Final = 1_000_000
FOLDER_BYTES_MAX: Final = 10_000_000
FOLDER_CHARS_MAX = 64
_READ_CHARS = 256
"""Of a longer name no more is read: normalizing takes time by the square of the marks in a row."""
_PLAIN = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MARKED = re.compile(r"(?:.*_)?u[0-9a-f]{8}")
_NOT_FOLDER = re.compile(r"[^a-z0-9]+")
_PLAIN_LINE = re.compile(r"([A-Za-z][\w-]*)[ ]*: +((?![\"'\[{|>#& ]).+)")
_NOT_NAME = re.compile(r"\W+")

_NAME: Final = "sealab-name"
_DESCRIPTION: Final = "sealab-description"
_TAGS: Final = "sealab-tags"
_BODY_MARK: Final = "<!-- This text was made by sealab from the skill. -->"
_KEPT: Final = ("license", "compatibility", "allowed-tools")
_MODULES: Final = (
    "json re math datetime statistics collections itertools functools random string decimal fractions asyncio"
)
_GIVEN: Final = "  # sealab gives these to all code\n"
_FOOTER: Final = "\n\n# What follows runs the skill from a command line; it was added by sealab and is no part of it.\n"
_RUN: Final = """\
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {{}}, {usage}
    if not _words and {needs_some}:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in {texts} else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps({call}, default=repr, ensure_ascii=False))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableSkill:
    """What a folder says of a skill, apart from what its code says itself.

    `extra` holds, as they were, the frontmatter's `license`, `compatibility`, `allowed-tools` and `metadata`, the
    `body` of SKILL.md, `files`, the texts of other files by their paths, and `assets`, what is no text, in base64. Of a
    folder of others these are all its files, there is no `code`, and `origin` says so.
    """

    name: str
    code: str
    description: str = ""
    tags: tuple[str, ...] = ()
    tests: str = ""
    recordings: Json = None
    extra: Mapping[str, Json] = field(default_factory=dict)


ORIGIN: Final = "origin"
EXTRA_KEYS: Final = frozenset({*_KEPT, "metadata", "body", "files", "assets", ORIGIN})
"""What of a stored skill's `extra` belongs into its folder; the rest says how it is called."""


def portable(draft: SkillDraft) -> PortableSkill:
    """Return what of a stored skill goes into a folder."""
    return PortableSkill(
        name=draft.name,
        code=draft.code,
        description=draft.description,
        tags=draft.tags,
        tests=draft.tests,
        recordings=draft.recordings,
        extra={key: value for key, value in draft.extra.items() if key in EXTRA_KEYS},
    )


def written(skill: PortableSkill, draft: SkillDraft | None = None) -> dict[str, bytes]:
    """Return the files of a skill's folder, by their paths in it; `draft` adds how it is called."""
    files = files_in(skill.extra)
    if ORIGIN in skill.extra:
        return files
    files[MANIFEST] = _manifest(skill, draft).encode()
    files[f"scripts/{skill.name}.py"] = _script(skill, draft).encode()
    if skill.tests:
        files[f"tests/{skill.name}.py"] = skill.tests.encode()
    if skill.recordings is not None:
        files["tests/recordings.json"] = json.dumps(skill.recordings, ensure_ascii=False, indent=1).encode()
    return files


def files_in(extra: Mapping[str, Json]) -> dict[str, bytes]:
    """Return the files that a skill brings beside its code, by their paths."""
    texts = cast("Mapping[str, str]", extra.get("files", {}))
    assets = cast("Mapping[str, str]", extra.get("assets", {}))
    files = {path: text.encode() for path, text in texts.items()}
    return files | {path: base64.b64decode(data) for path, data in assets.items()}


def read(folder: str, files: Mapping[str, bytes], *, as_folder: bool = False) -> PortableSkill:
    """Return the skill of a folder: its function, or a folder of others. Raises `SkillRefused` for what is neither.

    With `as_folder` it is a folder of others even where its code could be a function, unless sealab exported it.
    """
    assets = {path: base64.b64encode(data).decode() for path, data in files.items() if _is_asset(path, data)}
    texts = {path: _text(path, data) for path, data in files.items() if path not in assets}
    manifest = texts.get(MANIFEST)
    if manifest is None:
        raise SkillRefused(f"The folder {folder!r} has no {MANIFEST}, so it is not a skill. Name another folder.")
    front, body = split(folder, manifest)
    metadata = {str(key): _said(value) for key, value in _mapping(front.get("metadata")).items()}
    is_ours = _NAME in metadata
    name = metadata.pop(_NAME, None) or skill_name(str(front.get("name") or folder))
    description = (
        str(_loaded(metadata.pop(_DESCRIPTION, None), str) or "") or _said(front.get("description", "")).strip()
    )
    tags = cast("list[Json]", _loaded(metadata.pop(_TAGS, None), list) or [])
    script = _script_of(name, texts)
    if not is_ours and (script is None or (body.strip() and (as_folder or not _defines(texts[script], name)))):
        if not body.strip() and not any(path.endswith(".py") for path in texts):
            raise SkillRefused(f"The skill {folder!r} has neither instructions nor a Python script. It was left out.")
        return PortableSkill(
            name=_numbered(folder, name),
            code="",
            description=description or _first_paragraph(body),
            extra={"files": texts, ORIGIN: "others", **({"assets": assets} if assets else {})},
        )
    if script is None:
        raise SkillRefused(f"The skill {folder!r} has no Python script {name}.py, so there is nothing to call.")
    del texts[MANIFEST]
    code = _code(texts.pop(script))
    tests = texts.pop(f"tests/{name}.py", "")
    recordings = texts.pop("tests/recordings.json", None)
    extra: dict[str, Json] = {key: _said(front[key]) for key in _KEPT if front.get(key) is not None}
    if metadata:
        extra["metadata"] = metadata
    if body.strip() and not body.lstrip().startswith(_BODY_MARK):
        extra["body"] = body
    if texts:
        extra["files"] = texts
    if assets:
        extra["assets"] = assets
    return PortableSkill(
        name=name,
        code=code,
        description="" if description == _no_description(name) else description,
        tags=tuple(str(tag) for tag in tags),
        tests=tests,
        recordings=None if recordings is None else _json(folder, recordings),
        extra=extra,
    )


def _manifest(skill: PortableSkill, draft: SkillDraft | None) -> str:
    said = skill.description.strip() or _no_description(skill.name)
    shown = said if len(said) <= DESCRIPTION_CHARS_MAX else f"{said[: DESCRIPTION_CHARS_MAX - 1]}…"
    lines = [f"name: {folder_name(skill.name)}", f"description: {_quoted(shown)}"]
    lines += [f"{key}: {_quoted(str(skill.extra[key]))}" for key in _KEPT if key in skill.extra]
    metadata = {_NAME: skill.name}
    if skill.description and shown != skill.description:
        metadata[_DESCRIPTION] = json.dumps(skill.description)
    if skill.tags:
        metadata[_TAGS] = json.dumps(skill.tags)
    metadata |= {key: str(value) for key, value in _mapping(skill.extra.get("metadata")).items() if key not in metadata}
    lines += ["metadata:", *(f"  {_key(key)}: {_quoted(value)}" for key, value in metadata.items())]
    body = skill.extra.get("body")
    if isinstance(body, str):
        return "---\n" + "\n".join(lines) + "\n---\n" + body
    return "---\n" + "\n".join(lines) + "\n---\n\n" + _body(skill, said, draft)


def _body(skill: PortableSkill, said: str, draft: SkillDraft | None) -> str:
    signature = f"\n    {draft.signature}\n" if draft is not None and draft.signature else ""
    needs = [] if draft is None else [f"the tool {tool}" for tool in draft.tools]
    needs += [] if draft is None else [f"the skill {used}" for used in draft.skills]
    needed = f"\nIt needs {', '.join(needs)}.\n" if needs else ""
    return (
        f"{_BODY_MARK}\n\n# {skill.name}\n\n{said}\n{signature}{needed}\n"
        f"In sealab, call `skills.{skill.name}(…)` from code, or run it in a terminal, where it has its tools too:\n\n"
        f"    sealab skills run {skill.name}{_options(draft)}\n\n"
        f"`sealab skills import` of this folder brings it there. Elsewhere run `scripts/{skill.name}.py` with its "
        f"{'own options' if _runs_itself(skill.code) else 'arguments as one JSON object'}.\n"
    )


def _options(draft: SkillDraft | None) -> str:
    """Return how a skill's parameters are written as options, those that may be left out in brackets."""
    if draft is None:
        return ""
    required = cast("list[str]", draft.parameters.get("required", []))
    written = {
        name: f"--{name.replace('_', '-')}{'' if schema.get('type') == 'boolean' else f' {name.upper()}'}"
        for name, schema in _properties(draft.parameters).items()
    }
    return "".join(f" {text}" if name in required else f" [{text}]" for name, text in written.items())


def _properties(parameters: Mapping[str, Json]) -> Mapping[str, Mapping[str, Json]]:
    return cast("Mapping[str, Mapping[str, Json]]", parameters.get("properties", {}))


def _runs_itself(code: str) -> bool:
    """Return whether code does something of its own when it is run as a script."""
    return re.search(r"^if __name__ == ", code, re.MULTILINE) is not None


def _no_description(name: str) -> str:
    return f"Runs the Python function {name}."


def _script(skill: PortableSkill, draft: SkillDraft | None) -> str:
    code = skill.code
    modules = [] if "__future__" in code else [each for each in _MODULES.split() if _uses(code, each)]
    head = f"import {', '.join(modules)}{_GIVEN}" if modules else ""
    if _runs_itself(code):
        return f"{head}{code}"
    entry = str(draft.extra.get("entry", skill.name)) if draft is not None else skill.name
    is_async = draft is not None and bool(draft.extra.get("is_async"))
    required = [] if draft is None else cast("list[str]", draft.parameters.get("required", []))
    call = f"{entry}(**_given)"
    footer = _RUN.format(
        needs_some=bool(required) or draft is None,
        call=f"__import__('asyncio').run({call})" if is_async else call,
        usage=repr(
            "Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: "
            f"{'' if draft is None else draft.signature}"
        ),
        texts=[] if draft is None else _texts_among(draft.parameters),
    )
    return f"{head}{code}{_FOOTER}{footer}"


def _texts_among(parameters: Mapping[str, Json]) -> list[str]:
    """Return the parameters that take nothing but texts."""
    return [name for name, schema in _properties(parameters).items() if schema.get("type") == "string"]


def _uses(code: str, module: str) -> bool:
    return re.search(rf"\b{module}\.", code) is not None and not re.search(
        rf"^[^\S\n]*(?:import|from)\b.*\b{module}\b", code, re.MULTILINE
    )


def _code(script: str) -> str:
    """Take off what `_script` has added."""
    head, line_end, rest = script.partition("\n")
    if line_end and f"{head}\n".endswith(_GIVEN) and head.startswith("import "):
        script = rest
    code, mark, _ = script.rpartition(_FOOTER)
    return code if mark else script


def _script_of(name: str, texts: Mapping[str, str]) -> str | None:
    """Return the path of the script that is the skill: that of its name, else the only one, or None."""
    scripts = sorted(path for path in texts if path.startswith("scripts/") and path.endswith(".py"))
    scripts = scripts or sorted(path for path in texts if path.endswith(".py") and not path.startswith("tests/"))
    named = [path for path in scripts if path.rpartition("/")[2] in {f"{name}.py", "main.py"}]
    return next(iter(named or (scripts if len(scripts) == 1 else [])), None)


def _defines(code: str, name: str) -> bool:
    return re.search(rf"^(?:(?:async )?def {re.escape(name)}\(|{re.escape(name)} *=)", code, re.MULTILINE) is not None


def _numbered(folder: str, name: str) -> str:
    """Return a name with the number that its folder has, which tells it from one of the same name: `pdf-2`."""
    own = skill_name(folder)
    return own if re.fullmatch(rf"{re.escape(name)}_[0-9]+", own) else name


def _first_paragraph(body: str) -> str:
    lines = (line if line.strip() else "" for line in body.splitlines())
    paragraphs = (" ".join(part.split()) for part in "\n".join(lines).split("\n\n"))
    return next((each for each in paragraphs if each and not each.startswith(("#", "<!--", "---"))), "")


def split(folder: str, manifest: str) -> tuple[Mapping[str, object], str]:
    """Return what the frontmatter of a SKILL.md says, and the text below; a text without any says nothing.

    Where YAML refuses it and the meaning is plain (a colon or a sign in an unquoted text, tabs), that is taken. Raises
    `SkillRefused`, which names line and column.
    """
    text = manifest.removeprefix("\ufeff").replace("\r\n", "\n")
    found = re.match(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|$)", text, re.DOTALL)
    if found is None:
        if text.startswith("---") or not text.strip():
            raise SkillRefused(f"The {MANIFEST} of {folder!r} does not end its frontmatter. Close it by a line of ---.")
        return {}, text
    front = _mapped(folder, found[1], _with_quotes(found[1]))
    if not isinstance(front, dict):
        raise SkillRefused(f"The frontmatter of {folder!r} is not a mapping. Give it name and description.")
    return cast("Mapping[str, object]", front), text[found.end() :]


def _mapped(folder: str, text: str, otherwise: str = "") -> object:
    """Read YAML, or what is to be read where it is refused."""
    import yaml

    try:
        # A few lines of aliases can stand for more values than a machine can hold.
        if "&" in text and any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text, yaml.SafeLoader)):
            raise SkillRefused(f"The frontmatter of {folder!r} uses YAML aliases. Write its values out.")
        return cast("object", yaml.safe_load(text))
    except yaml.YAMLError as error:
        if otherwise and otherwise != text:
            with suppress(SkillRefused):
                return _mapped(folder, otherwise)
        if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
            raise SkillRefused(f"The frontmatter of {folder!r} is not valid YAML: {error}. Correct it.") from None
        mark = error.problem_mark
        keys = [line.partition(":")[0] for line in text.splitlines()[: mark.line + 1] if line[:1].isalpha()]
        advice = f"Put the value of {keys[-1]:.40} in double quotes" if keys else "Write lines such as name: text"
        raise SkillRefused(
            f"The frontmatter of {folder!r} is not valid YAML in line {mark.line + 2}, column {mark.column + 1}: "
            f"{error.problem}. {advice}."
        ) from None
    except (RecursionError, ValueError, TypeError, OverflowError):
        raise SkillRefused(f"The frontmatter of {folder!r} is not valid YAML. Correct it.") from None


def _with_quotes(front: str) -> str:
    """Return frontmatter with each unquoted text at its top level in quotes, and without tabs."""
    lines: list[str] = []
    key, value = "", ""
    for line in [*front.expandtabs(2).splitlines(), "-"]:
        if key and line.startswith(" "):
            value += f" {line.strip()}"
            continue
        if key:
            lines.append(f"{key}: {_quoted(value)}")
        said = _PLAIN_LINE.fullmatch(line)
        key, value = (said[1], said[2].strip()) if said else ("", "")
        if not key:
            lines.append(line)
    return "\n".join(lines[:-1])


def _is_asset(path: str, data: bytes) -> bool:
    """Return whether a file is no text, and need be none."""
    if path == MANIFEST or path.endswith((".py", ".json")):
        return False
    try:
        return "\0" in data.decode()
    except UnicodeDecodeError:
        return True


def _text(path: str, data: bytes) -> str:
    if len(data) > FILE_BYTES_MAX and path != "tests/recordings.json":
        raise SkillRefused(f"The file {path!r} is larger than {FILE_BYTES_MAX:,} bytes. Leave it out of the skill.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise SkillRefused(f"The file {path!r} is not UTF-8 text. Leave it out of the skill.") from None
    if "\0" in text:
        raise SkillRefused(f"The file {path!r} is binary. Leave it out of the skill.")
    return text


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _said(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str) if value is not None else ""
    except (ValueError, TypeError, RecursionError):  # a number of very many digits, a key that is a list
        raise SkillRefused("The frontmatter holds a value that no text can be made of. Write it as a text.") from None


def _loaded(text: str | None, kind: type) -> Json:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Json", value) if isinstance(value, kind) else None


def _json(folder: str, text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        raise SkillRefused(
            f"The recordings of {folder!r} are not valid JSON. Leave them out, or record them anew."
        ) from None


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z][\w.-]*", key, re.ASCII) else _quoted(key)


def _quoted(text: str) -> str:
    r"""Return a text as a double-quoted YAML scalar on one line; no "---" stands in it, where some readers cut."""
    parts = []
    for char in text:
        if char in '"\\':
            parts.append("\\" + char)
        else:
            parts.append(char if char.isprintable() else f"\\U{ord(char):08x}")
    return '"' + "".join(parts).replace("---", "--\\x2d") + '"'


def folder_name(name: str) -> str:
    """Return the folder's name: 1 to 64 of `[a-z0-9-]`, never two hyphens together."""
    if _PLAIN.fullmatch(name) and len(name) <= FOLDER_CHARS_MAX and not _MARKED.fullmatch(name):
        return name.replace("_", "-")
    mark = f"u{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    words = _NOT_FOLDER.sub("-", unicodedata.normalize("NFKD", name[:_READ_CHARS]).lower()).strip("-")
    return f"{words[: FOLDER_CHARS_MAX - len(mark) - 1].strip('-')}-{mark}".lstrip("-")


def skill_name(folder: str) -> str:
    """Return a Python name for a folder that says none: that of `folder_name` where the folder came from there."""
    name = _NOT_NAME.sub("_", unicodedata.normalize("NFKC", folder[:_READ_CHARS])).strip("_").lower()
    if not name or not name[0].isalpha():
        name = f"skill_{name}".rstrip("_")
    return f"{name}_skill" if keyword.iskeyword(name) else name
