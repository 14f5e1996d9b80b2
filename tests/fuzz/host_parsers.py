"""Every place in the server's process that reads what code, a model, an upstream server or a file supplies.

| place | reads | bounded by |
| --- | --- | --- |
| `sandbox/wire/frames.py`, `report_frame.py`, `bounded_json.py`, `output.py` | frames and what code printed | bytes, depth, values; steps |
| `sandbox/container/messages.py`, `host_link.py` | what a container says | 1 MB a message |
| `server/use_cases/host_functions/broker.py` | names and arguments of host calls | characters of a name or query |
| `workspace/names.py`, `archive.py`, session and skill names | names | 1,024 bytes, 64 characters |
| `tools_registry/search`, `catalog.py`, `server/use_cases/skills/search.py` | queries and misspelt names | characters, corrections |
| `server/base/arguments.py`, `server/use_cases/upstream_tools/tool_arguments.py`, `server/use_cases/skills/skill_arguments.py` | arguments, upstream schemas | seconds; no patterns are run |
| `tools_registry/definitions.py`, `describing/`, `upstream/injection.py` | upstream definitions | depth, parameters |
| `tools_registry/openapi/` | OpenAPI documents, arguments of their operations | bytes, values, operations; steps |
| `tools_registry/upstream/results.py`, `describing/learned.py` | upstream answers | bytes moved in a run |
| `tools_registry/configuration.py`, `clients/` | `mcp.json`, other clients' files | files of the user |
| `skills_db/skill_md.py`, `skill_folders.py` | SKILL.md, front matter, zip tables | bytes, files; no aliases |
| `sandbox/reading/` (in a worker), `server/use_cases/skills/` | docstrings, source of skills | 500,000 characters |
| `server/use_cases/runs/truncation.py`, `report.py` | results and output | bytes of a frame |
| `server/base/terminal_escaping.py`, `server/interfaces/protocol/answers.py` | texts that are shown | characters shown |
| `server/use_cases/upstream_tools/approval.py` | arguments that a user is asked about | characters shown |
| `server/privacy/gates/file_gate.py` | files in any encoding | bytes of one reading |
| `server/governance/access/signed_tokens.py`, `protocol/web/admission.py` | tokens and bodies of clients | characters; bytes of a body |
| `tools_registry/json_lines.py`, `openapi/answers.py`, `sign_in/token_endpoint.py` | lines and bodies of servers | bytes |
| `workspace/store.py` | contents | bytes of a file |
| `server/interfaces/guard/base64_texts.py`, `privacy/tokens` | bytes and texts in messages | bytes of a message |
| `server/privacy` | all of these | see `make fuzz-privacy` |

`outside_bytes.toml` has the other modules that read packed bytes, and why none of them is here.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx2

from sealab.sandbox.errors import HostCallError, SandboxError
from sealab.sandbox.skill_source import docstring_types, docstrings
from sealab.sandbox.wire import bounded_json, frames, reader_frames, report_frame
from sealab.sandbox.wire.output import OutputBuffer, create
from sealab.server.base.arguments import shown
from sealab.server.base.errors import ServerError
from sealab.server.base.host_call import HostCall
from sealab.server.base.terminal_escaping import visible
from sealab.server.governance.access import signed_tokens
from sealab.server.governance.questions import Question
from sealab.server.interfaces.guard import base64_texts
from sealab.server.interfaces.protocol.answers import answered, bounded, visibly
from sealab.server.interfaces.protocol.client_messages import as_message, with_id
from sealab.server.interfaces.protocol.web import admission
from sealab.server.privacy.packed import without_packed
from sealab.server.privacy.reading.encodings import text_of_any
from sealab.server.privacy.tokens.forms import escapes
from sealab.server.privacy.tokens.notations import Scanner
from sealab.server.privacy.tokens.parts import Text
from sealab.server.use_cases.host_functions.broker import Calls, handlers_of
from sealab.server.use_cases.host_functions.workspace_calls import WorkspaceCalls
from sealab.server.use_cases.runs.truncation import fit
from sealab.server.use_cases.skills.skill_arguments import judge_arguments, judge_name
from sealab.server.use_cases.skills.testing import line_of_skill
from sealab.server.use_cases.upstream_tools.approval import asked_call, title_of
from sealab.server.use_cases.upstream_tools.tool_arguments import checked
from sealab.skills_db.errors import SkillsDbError
from sealab.skills_db.skill_folders import found as skills_found
from sealab.skills_db.skill_md import PortableSkill, folder_name, skill_name, written
from sealab.skills_db.skill_md import read as read_skill
from sealab.tools_registry import json_lines, yaml_values
from sealab.tools_registry.catalog import Catalog
from sealab.tools_registry.clients import documents, insertion
from sealab.tools_registry.clients.entries import read_entry
from sealab.tools_registry.clients.secrets import Concealer
from sealab.tools_registry.configuration import read as read_mcp_json
from sealab.tools_registry.configuration import read_server
from sealab.tools_registry.definitions import read_folder, tools_of
from sealab.tools_registry.describing.details import Describer, DetailLevel, first_sentence
from sealab.tools_registry.describing.learned import observed
from sealab.tools_registry.errors import RegistryError
from sealab.tools_registry.names import aliases, fold, identifier
from sealab.tools_registry.openapi import answers
from sealab.tools_registry.openapi.call_requests import request_of
from sealab.tools_registry.openapi.document import Document, UnusablePart
from sealab.tools_registry.openapi.exchange import ServiceResponse
from sealab.tools_registry.openapi.operations import read_service
from sealab.tools_registry.search.ranking import Searchable, SearchIndex
from sealab.tools_registry.sign_in import token_endpoint
from sealab.tools_registry.upstream import lenient
from sealab.tools_registry.upstream.injection import flags
from sealab.tools_registry.upstream.results import parsed, value_of
from sealab.tools_registry.upstream.stderr_tail import KEPT_BYTES, StderrTail
from sealab.workspace import store
from sealab.workspace.archive import RunArchive
from sealab.workspace.errors import WorkspaceError
from sealab.workspace.names import Name, speakable

REFUSALS = (
    *(ValueError, TypeError, HostCallError, SandboxError),
    *(ServerError, SkillsDbError, RegistryError, WorkspaceError),
)
"""How a parser may end; anything else is a find."""

DATA = Path(__file__).parent.parent / "data" / "search"


@dataclass(frozen=True)
class Parser:
    """`read` is fed a text that was made by repeating; `pieces` are what this one stops at, beside the common ones.

    What is read `at_terminal` alone, by a command, is left out of the short tests.
    """

    name: str
    read: Callable[[str], object]
    pieces: tuple[tuple[str, str, str], ...] = ()
    common: bool = True
    at_terminal: bool = False


def json_pieces(before: str = "", after: str = "") -> tuple[tuple[str, str, str], ...]:
    """Return what hostile JSON is made of, as a start, a repeated piece and an end."""
    made = (
        ("[" * 101 + '"', '\\"', ""),
        ('"', '\\"', '"'),
        ('"', "\\u0000", '"'),
        ('"', "\\ud800", '"'),
        ("[", "[],", "1]"),
        ("[", '{"a":1},', "1]"),
        ("[", '"a",', "1]"),
        ("[", "1.5e300,", "1]"),
        ("[", "9" * 4000 + ",", "1]"),
        ("[", "[" * 60 + "1" + "]" * 60 + ",", "1]"),
        ("", "[", ""),
        ("", '{"a":', ""),
        ("{", '"a":1,', '"b":1}'),
        ("[1", " ", "]"),
        ('{"', "a", '":1}'),
        ("", "1", ""),
        ("0.", "1", ""),
    )
    return tuple((before + start, piece, end + after) for start, piece, end in made)


YAML = (
    ("a: &a [1]\n", "b: &b [*a,*a]\n", ""), ("", "- ", ""), ("", "[", ""), ("", "{a: ", ""), ("", "a:\n ", ""),
    ("", "? ", ""), ("", "&a ", ""), ("", "!a ", ""), ("a: '", "''", "'"), ('a: "', "\\n", '"'), ("a: |\n", " x\n", ""),
    ("a: >\n", " x\n\n", ""), ("", "a: 1\n", ""), ("", "# x\n", ""), ("", "1:", ""), ("", "1_", ""), ("a: ", "x ", ""),
)  # fmt: skip


def bomb(_text: str = "") -> str:
    """Return YAML whose aliases stand for 9 to the 12th values."""
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 13)]
    head = ["name: run", "description: it", "a0: &a0 [1,1,1,1,1,1,1,1,1]"]
    return "\n".join([*head, *levels, "input_schema: {type: object, properties: {x: {default: *a12}}}"]) + "\n"


@cache
def search_index() -> SearchIndex:
    return SearchIndex(
        [
            Searchable(
                f"{tool['server']}.{tool['name']}",
                tool["name"],
                tool["server"],
                tool["category"],
                tool["description"],
                tuple(tool["parameters"].items()),
            )
            for tool in json.loads((DATA / "tools.json").read_text())
        ]
    )


@cache
def index_of_words() -> SearchIndex:
    tools = json.loads((DATA / "tools.json").read_text())
    return SearchIndex(
        [Searchable(each["name"], each["name"], "", "", each["description"]) for each in tools], vectors=False
    )


@cache
def catalog() -> Catalog:
    folder = Path(tempfile.mkdtemp())
    (folder / "tools").mkdir()
    names = ["run", *(f"tool_{n}" for n in range(300))]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    (folder / "tools" / "up.json").write_text(json.dumps({"tools": tools}))
    return Catalog.load(folder / "tools", folder / "lists", {})


def tool(schema: object, description: str = "") -> object:
    made, _problems = tools_of([{"name": "run", "description": description, "inputSchema": schema}], "up", "1")
    return made[0] if made else None


def read_as_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None


FRAMES = (
    *json_pieces('{"x":', "}"),
    ('{"x":["', "\\", ""),
    ('{"x":[', '"', ""),
    ('{"x":[', '""', "]}"),
    ('{"x":["",', '"[",', "1]}"),
    ('{"x":[', "[" * 90 + "1," * 20_000 + "1" + "]" * 90 + ",", "1]}"),
    ('{"x":[', "1,[" + "1," * 20_000 + "1],", "1]}"),
    ('{"x":[', ",", "]}"),
    ('{"x":[1', " ,1 ", "]}"),
    ('{"x":["', "\\u12", '"]}'),
)


def frame_by(read: Callable[..., object], **bounds: int) -> Callable[[str], object]:
    return lambda text: read(text.encode("utf-8", "replace"), **bounds)


def frame_of_a_call(text: str) -> object:
    return frames.child_frame(b'{"t":"call","name":"f","args":{"x":' + text.encode("utf-8", "replace") + b"}}")


def report_of_a_run(text: str) -> object:
    return report_frame.outcome_of(
        {"status": "ok", "result": text, "error": None, "notes": {text[:9]: text}, "figures": [text]}
    )


def stream_of_frames(text: str) -> object:
    reader, body = frames.Frames(), text[:40].encode("utf-8", "replace") or b"x"
    whole = len(body).to_bytes(4, "big") + body
    reader.feed(whole * (len(text) // len(whole) + 1))
    while reader.next() is not None:
        pass
    return None


def printed(text: str) -> object:
    data = text.encode("utf-8", "replace") + text.encode("utf-16")[:-1]
    output = OutputBuffer(create(len(data)))
    output.fill(0, data)
    try:
        return output.read()
    finally:
        output.close()


def name_of_file(text: str) -> object:
    speakable(text)
    return Name.parse(text)


def name_of_skill(text: str) -> object:
    skill_name(text)
    folder_name(text)
    return judge_name(text)


def name_in_a_schema(text: str) -> object:
    """Names as Python writes them and as they compare, and a schema that has one."""
    aliases([text, f"{text}x", identifier(text)])
    fold(text)
    field = {"type": "string", "title": text, "enum": [text], "default": text}
    made = tool({"type": "object", "title": text, "properties": {text: field}, "required": [text]})
    if made is None:
        return None
    Describer(catalog()).describe(made, DetailLevel.FULL)
    return checked(made, {text: text})


def indexed(text: str) -> object:
    return SearchIndex([Searchable("up.run", "run", "up", "up", text, ((text[:50], text),))], vectors=False)


def misspelt(text: str) -> object:
    with suppress(RegistryError):
        catalog().get(f"up.{text}")
    return catalog().get(text)


def definition(text: str) -> object:
    """A description, a name of a parameter and an enum, and all that is told of them."""
    properties = {text[:60]: {"type": "string", "description": text, "enum": [text]}, "b": {"default": text}}
    made = tool({"type": "object", "properties": properties}, text)
    first_sentence(text)
    flags(text, properties)
    return None if made is None else Describer(catalog()).describe(made, DetailLevel.FULL)


def schema(text: str) -> object:
    """A schema, as an upstream server publishes it, and arguments that are judged by it."""
    made = tool(read_as_json(text))
    if made is None:
        return None
    Describer(catalog()).describe(made, DetailLevel.FULL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return checked(made, {"a": 1})


SCHEMAS = (
    ('{"type":"object","properties":{', '"a":{"$ref":"#/properties/a"},', '"b":{}}}'),
    ('{"type":"object","properties":{"a":', '{"anyOf":[{},', "{}" + "]}" * 0 + "}}"),
    ('{"type":"object","properties":{"a":{"enum":[', '"x",', '"y"]}}}'),
    ('{"type":"object","properties":{"a":{"anyOf":[', '{"type":"string"},', "{}]}}}"),
    ('{"type":"object","properties":{"a":{"oneOf":[', '{"type":"object","properties":{"x":{}}},', "{}]}}}"),
    ('{"type":"object","properties":{"a":{"allOf":[', '{"properties":{"x":{}}},', "{}]}}}"),
    ('{"type":"object","required":[', '"x",', '"y"]}'),
    ('{"type":"object","properties":{"a":{"pattern":"', "(a+)+", '$"}}}'),
    ('{"type":"object","properties":{"a":{"description":"e.g. ', "`a` ", '"}}}'),
)


def arguments(text: str) -> object:
    properties = {"rows": {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, "s": {"type": "string"}}
    return checked(tool({"type": "object", "properties": properties}), {"rows": read_as_json(text), "s": text})


def arguments_of_skill(text: str) -> object:
    properties = {"rows": {"type": "array", "items": {"type": "integer"}}, "day": {"type": "string", "format": "date"}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    with suppress(REFUSALS):
        judge_arguments("skill", schema, {"day": text})
    return judge_arguments("skill", schema, {"rows": read_as_json(text)})


def host_call(text: str) -> object:
    """The names and texts of a host call, as the broker judges them."""
    calls = Calls(handlers_of(WorkspaceCalls(None)), budget=10)
    for name, given in ((text, {}), ("read_file", {text: 1}), ("read_file", {"filename": text})):
        with suppress(HostCallError, AttributeError):  # there is no workspace behind them
            asyncio.run(calls.answer(HostCall(name, given)))
    return None


def answer(text: str) -> object:
    """A text that an upstream tool answered, and what is learned of it."""
    return observed(parsed(text))


def attachment(text: str) -> object:
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    image = {"type": "image", "data": data, "mimeType": f"image/{text}"}
    broken = {"type": "image", "data": text, "mimeType": text}
    return asyncio.run(value_of("up.run", {"content": [image, broken, {"type": text}, text]}, None, None))


def tool_as_listed(text: str) -> object:
    """A text in every place of a tool that a server lists."""
    schema = {"type": text, "description": [text], "$ref": f"#/{text}", "minimum": text, "properties": {text: {}}}
    return lenient.tool({"name": text, "inputSchema": text}), lenient.tool({"name": text, "inputSchema": schema})


def message_of_a_client(text: str) -> object:
    """A body, and a text in the places of a message."""
    with_id(text.encode("utf-8", "replace"))
    return as_message({"jsonrpc": "2.0", "id": text, "method": text, "params": text})


def front_matter(text: str) -> object:
    return read_skill(
        "skill", {"SKILL.md": f"---\n{text}\n---\nbody".encode("utf-8", "replace"), "scripts/skill.py": b"1"}
    )


def skill_md(text: str) -> object:
    encoded = text.encode("utf-8", "replace")
    return read_skill("skill", {"SKILL.md": encoded, "scripts/skill.py": encoded})


def skill_code(text: str) -> object:
    return read_skill("skill", written(PortableSkill(name="skill", code=text, description=text[:2000], tests=text)))


def archive(text: str) -> object:
    """A zip with as many entries as the text is long, by a twentieth."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for number in range(len(text) // 20):
            made.writestr(f"{number}/SKILL.md", "")
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(buffer.getvalue())
        file.flush()
        return skills_found(Path(file.name))


def docstring(text: str) -> object:
    for function in _functions_of_one_text(docstrings) + _functions_of_one_text(docstring_types):
        with suppress(*REFUSALS, LookupError):
            function(text)
    return None


def _functions_of_one_text(module: object) -> list[Callable[[str], object]]:
    found = []
    for name, function in vars(module).items():
        code = getattr(function, "__code__", None)
        annotations = getattr(function, "__annotations__", {})
        own = code is not None and function.__module__ == module.__name__ and not name.startswith("__")
        if own and code.co_argcount == 1 and next(iter(annotations.values()), None) in {"str", "str | None", str}:
            found.append(function)
    return found


def configuration(text: str) -> object:
    entry = {"command": text, "args": [text], "env": {"A": text, "B": f"${{{text}}}"}, "cwd": text}
    with suppress(REFUSALS):
        read_server("up", entry, {"A": "b"})
    with suppress(REFUSALS):
        read_server(text, {text: 1}, {})
    return read_server("up", {"url": f"https://example.org/{text}", "headers": {"A": text, text[:50]: "b"}}, {})


def mcp_json(text: str) -> object:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        return read_mcp_json(Path(file.name), {})


def client_files(text: str) -> object:
    for suffix in (".json", ".toml", ".yaml"):
        with tempfile.NamedTemporaryFile("w", suffix=suffix, encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            with suppress(REFUSALS):
                documents.read(Path(file.name))
    return None


def client_entry(text: str) -> object:
    raw = {"command": text, "args": [f"--key={text}", text], "env": {"API_KEY": text}, "url": text}
    read = read_entry("client", "up", raw, Path("/"), Path("/"))
    return Concealer({}).conceal("up", read.entry) if getattr(read, "entry", None) else read


@cache
def http_client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient()


def openapi_document(text: str) -> object:
    """Every name in an OpenAPI document, many names that clean to one identifier, and an argument of an operation."""
    alike = [{"name": f"{text[:8]}{chr(0x4E00 + at)}", "in": "query"} for at in range(len(text) // 40)]
    named = {"operationId": text, "summary": text, "parameters": [{"name": text, "in": "header"}]}
    paths = {
        f"/{text}": {"get": named, "post": {"servers": [{"url": text}]}},
        "/one/{of}": {"get": {"operationId": "one", "parameters": [{"name": "of", "in": "path"}, *alike]}},
        **{f"/{at}": {"get": {"operationId": text[:40]}} for at in range(len(text) // 40)},
    }
    document = Document({"paths": paths, "info": {"title": text}}, "3.1.0", "https://example.com/openapi.json")
    with suppress(UnusablePart):
        document.at(f"#/{text}")
    service = read_service(document, "https://example.com", frozenset(), lambda: None)
    return request_of(http_client(), service.operations["one"], {"of": text}, {})


def definitions_file(text: str) -> object:
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder) / "tools"
        inner.mkdir()
        for suffix in ("json", "yaml"):
            (inner / f"up.{suffix}").write_text(text, encoding="utf-8", errors="replace")
        return read_folder(inner)


def truncated(text: str) -> object:
    value = text
    with suppress(ValueError):
        value = read_as_json(text)
    nested: object = value
    for _ in range(50):
        nested = [text[:100], {"a": nested}]
    for result in (value, nested, [text] * 3, {text: text}, {"a": [value, text]}):
        fit(result, text, run_id="r", notes={text[:100]: text}, max_chars=2_000)
    return None


def stderr_of_upstream(text: str) -> object:
    tail = StderrTail()
    tail._kept += text.encode("utf-8", "replace")[-KEPT_BYTES:]
    tail.written = len(tail._kept)
    return tail.last_line_since(0), tail.text


def text_that_is_shown(text: str) -> object:
    visible(text)
    shown({text: [text]})
    return visibly(bounded(answered({"text": text}, text), 2_000, "the rest"))


def question_to_a_user(text: str) -> object:
    call = asked_call(tool({"type": "object"}), {text: text, **{f"{n}{text[:50]}": text for n in range(20)}})
    return Question(title=title_of(text), calls=(call,)).text, call.key


def bytes_of_a_file(text: str) -> object:
    return [text_of_any(b"\xff" + text.encode(each, "replace")) for each in ("utf-8", "utf-16-le", "utf-32-be")]


def line_of_a_server(text: str) -> object:
    """Lines of an upstream server, each no longer than a bound, and the edges of one that is."""
    data = text.encode("utf-8", "replace")
    for bytes_max in (1_000, len(data)):
        lines = json_lines.Lines(bytes_max)
        for line in (*lines.feed(data), lines.rest()):
            edges = line.edges if isinstance(line, json_lines.TooLong) else json_lines.Edges.of(line or b"")
            _ = edges.answers, edges.asks
    return None


def answer_of_a_service(text: str) -> object:
    """A body that an HTTP service answered, in the character set that it names."""
    data = text.encode("utf-8", "replace")
    for charset in ("utf-8", "punycode", "idna", "utf-7", "unicode_escape", text[:40]):
        headers = httpx2.Headers({"content-type": "text/plain; charset=" + charset.encode("ascii", "replace").decode()})
        answers._decoded(ServiceResponse(200, "", headers, data))
    refused = ServiceResponse(400, "", httpx2.Headers({"content-type": "application/json"}), data)
    return asyncio.run(answers._message(refused))


def token_of_a_client(text: str) -> object:
    encoded = base64.urlsafe_b64encode(text.encode("utf-8", "replace")).rstrip(b"=").decode()
    return signed_tokens.header_of(text), signed_tokens.header_of(f"{encoded}.a.b")


def bytes_in_a_message(text: str) -> object:
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    for kind in ("text/plain; charset=punycode", "text/plain", f"image/{text}", "application/octet-stream"):
        base64_texts.exchanged_base64(data, kind, lambda part: part.text if hasattr(part, "text") else part)
    return None


def text_with_values(text: str) -> object:
    """What the server itself looks through for known values: JSON, and what is escaped or encoded."""
    return Scanner().leaves(text), list(escapes.readings(text))


def configuration_of_a_client(text: str) -> object:
    for whole in (text, f'{{"a": {text}}}', f"{{/* {text}", f'{{"{text}'):
        with suppress(REFUSALS):
            insertion.into_json(whole, ("mcpServers",), "up", {})
    return insertion.into_yaml(text, ("mcpServers",), "up", {})


def content_of_a_file(text: str) -> object:
    with suppress(REFUSALS):
        store.encoded(text, "base64")
    return store.encoded(text, "utf-8")


def yaml(text: str) -> object:
    return yaml_values.read_yaml(text[: 4 << 20].encode("utf-8", "replace"))


_JSON = json_pieces()
_DEEP = (("", "[", ""), ("", '{"a":', ""))
MARKS = (("a", "\u0301\u0316", ""), ("a", "\u0650\u064b", ""))
"""Marks that normalizing sorts."""
PARSERS: tuple[Parser, ...] = (
    Parser("frame, at once", frame_by(bounded_json.read, values_max=frames.VALUES_MAX), FRAMES),
    Parser("frame, in steps", frame_by(bounded_json.read_in_steps, values_max=frames.VALUES_MAX), FRAMES),
    Parser("frame that is counted", frame_by(bounded_json.check, values_max=10**9, names_max=10**9), FRAMES),
    Parser("frame of a call", frame_of_a_call, _JSON),
    Parser("report of a run", report_of_a_run),
    Parser("stream of frames", stream_of_frames),
    Parser("what code printed", printed),
    Parser("name of a file", name_of_file),
    Parser("name of a run", lambda text: RunArchive.path_of(text, "code.py")),
    Parser("name of a skill", name_of_skill, MARKS),
    Parser("name in a schema", name_in_a_schema, MARKS),
    Parser("search query", lambda text: search_index().search(text, category=None, limit=10), MARKS),
    Parser("query of skills", lambda text: index_of_words().matches(text), MARKS),
    Parser("description in the index", indexed, MARKS),
    Parser("misspelt name of a tool", misspelt, MARKS),
    Parser("definition of a tool", definition, MARKS),
    Parser("schema of a tool", schema, (*SCHEMAS, *json_pieces('{"type":"object","properties":{"a":', "}}"))),
    Parser("arguments of a tool", arguments, _JSON),
    Parser("arguments of a skill", arguments_of_skill, _JSON),
    Parser("host call", host_call),
    Parser("answer of a tool", answer, _JSON),
    Parser("attachment of a tool", attachment),
    Parser("front matter", front_matter, YAML, at_terminal=True),
    Parser("SKILL.md", skill_md, tuple(("---\n" + start, piece, end) for start, piece, end in YAML)),
    Parser("code of a skill", skill_code),
    Parser("zip of skills", archive, (("", "a", ""),), common=False),
    Parser("docstring", docstring, (("", "    :param a: b\n", ""), ("Args:\n", "    a: b\n", ""), ("", ">>> a\n", ""))),
    Parser("entry of mcp.json", configuration),
    Parser("mcp.json", mcp_json, json_pieces('{"mcpServers":', "}")),
    Parser(
        "files of other clients",
        client_files,
        (*_JSON, *YAML, ("", "// x\n", "{}"), ("", "[a]\n", ""), ("", "a=1\n", "")),
        at_terminal=True,
    ),
    Parser("entry of another client", client_entry),
    Parser("definitions below tools/", definitions_file, (*_JSON, *YAML)),
    Parser("names in an OpenAPI document", openapi_document),
    Parser("result and output that are cut", truncated, _JSON),
    Parser("standard error of a server", stderr_of_upstream),
    Parser("traceback of a skill", lambda text: line_of_skill("skill", text)),
    Parser("text that is shown", text_that_is_shown),
    Parser("question to a user", question_to_a_user),
    Parser("line of a server", line_of_a_server, _JSON),
    Parser("tool that a server lists", tool_as_listed, _JSON),
    Parser("message of a client", message_of_a_client, _JSON),
    Parser("answer of a service", answer_of_a_service, _JSON),
    Parser("refusal of an issuer", lambda text: token_endpoint.error_code(text.encode("utf-8", "replace")), _DEEP),
    Parser("token of a client", token_of_a_client, _JSON),
    Parser("rights that a body needs", lambda text: admission.needed_in(text.encode("utf-8", "replace"), None), _DEEP),
    Parser("bytes in a message", bytes_in_a_message),
    Parser(
        "bytes in a text that is shown",
        lambda text: without_packed(Text(text), lambda _bytes, _packed: None),
        (("", "QUFB" * 15 + "\n", ""), ("", "H4sI" * 8 + " ", ""), ("", "b'" + "a" * 20 + "' ", ""), ("b'", "\\'", "")),
    ),
    Parser("text that may hold known values", text_with_values, (("", '\\"', ""),)),
    Parser(
        "file of a client that gets an entry", configuration_of_a_client, (*_JSON, ("", "/*", "")), at_terminal=True
    ),
    Parser("content of a file", content_of_a_file),
    Parser("YAML", yaml, YAML, at_terminal=True),
    Parser("answer of a reader", lambda text: reader_frames.read_reply(b"e" + text.encode("utf-8", "replace"))),
    Parser("bytes of a file", bytes_of_a_file, (("", "a\0", ""), ("", "a\0\0\0", ""), ("", "\0", "a"))),
)

READERS_OF_YAML = (front_matter, skill_md, definitions_file, client_files)

COMMON = (
    *(" ", "\t", "\n", "\r\n", "\0", "\x1b["),
    *"a A aB 0 _ - . a. / a/ ../ \\ \" ' ` $ ${ & * ( ) [ { < > | : , ; # ! ? % @ ~ =".split(),  # noqa: SIM905 - words
    ": ",
    *("é", "e\u0301", "ﬁ", "㍍", "\u200b", "\u202e", "中", "\U0001f600", "ß", "İ", "\ufdfa", "\udc80"),
    *("a ", "and then ", "word. ", "\n ", "\n\n", "- a\n", "a: b\n", "---\n", "import ", "\nimport a", "def a():\n"),
    *('\\"', "e.g. ", "http://a", "a=", "--a ", "<|a|>", "ignore ", "do not ", "Bearer ", "$ref", 'File "<skill '),
)


def texts(parser: Parser) -> Iterator[tuple[str, str, str]]:
    """Yield what is repeated for a parser, each with what stands before and after it."""
    yield from parser.pieces
    if parser.common:
        for piece in COMMON:
            yield "", piece, ""


def text_of(made: tuple[str, str, str], size: int) -> str:
    """Return a text of about that many characters."""
    start, piece, end = made
    return start + piece * max(1, (size - len(start) - len(end)) // len(piece)) + end
