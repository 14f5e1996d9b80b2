"""Stored skills over MCP: the Skills extension (SEP-2640) for clients that know it, `skill://` resources for all.

Each skill is served as the Agent Skills folder that `sealab skills export` would write: `skill://csv-profile/SKILL.md`,
`skill://csv-profile/scripts/csv_profile.py`. A URI is looked up among these exactly as it stands and never becomes a
path, so nothing in it can lead elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp.server import MCPServer
from mcp.server.extension import Extension, MethodBinding
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    InputRequiredResult,
    PaginatedRequestParams,
    RequestParams,
    Resource,
)
from pydantic import AnyUrl

from .....skills_db.errors import SkillNotFound, SkillsDbError
from .....skills_db.skill_md import folder_name, skill_name, split
from ....base.arguments import shown
from ....base.errors import HostWorkBusy
from ....base.host_work import Kind, in_thread
from ....base.terminal_escaping import visible
from ....use_cases.skills.files import files_of
from ....use_cases.skills.search import about_of

if TYPE_CHECKING:
    from .....skills_db.skills import SkillStore, StoredSkill
    from ....use_cases.skills.service import SkillService

_T = TypeVar("_T")
SCHEME = "skill://"
PAGE = 50
LISTED_MAX = 200
"""Skills in `resources/list`, which clients without the extension read whole."""

_TTL_MS = 60_000
_FOLDER = "inode/directory"
_MIME_TYPES = {".md": "text/markdown", ".py": "text/x-python", ".json": "application/json"}


class UriParams(RequestParams):
    """A request that names one resource."""

    uri: str


class DirectoryParams(PaginatedRequestParams):
    """A request that names a directory, read in pages."""

    uri: str


@dataclass(frozen=True, slots=True)
class Served:
    """One skill as it is served: its folder's name, and its files by their paths in it."""

    name: str
    description: str
    folder: str
    files: Mapping[str, bytes]
    assets: frozenset[str] = frozenset()
    """The paths of those that are no text."""

    @property
    def manifest_uri(self) -> str:
        """The URI of its SKILL.md."""
        return f"{SCHEME}{self.folder}/SKILL.md"

    def entry(self) -> dict[str, object]:
        """Return it as `skills/list` shows it."""
        resources = [
            {
                "uri": f"{SCHEME}{self.folder}/{path}",
                "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                "size": len(data),
            }
            for path, data in sorted(self.files.items())
        ]
        return {
            "uri": self.manifest_uri,
            "frontmatter": _frontmatter(self.folder, self.files["SKILL.md"]),
            "resources": resources,
        }


class SkillsExtension(Extension):
    """`skills/list`, `skills/get` and `resources/directory/read`."""

    identifier = "io.modelcontextprotocol/skills"

    def __init__(self, service: SkillService) -> None:
        self._service = service

    def settings(self) -> dict[str, Any]:
        """Announce that directories can be read."""
        return {"directoryRead": True}

    def methods(self) -> Sequence[MethodBinding]:
        """Give the methods, in both protocol eras."""
        return [
            MethodBinding("skills/list", PaginatedRequestParams, self._list),
            MethodBinding("skills/get", UriParams, self._get),
            MethodBinding("resources/directory/read", DirectoryParams, self._read_directory),
        ]

    async def _list(self, _ctx: object, params: PaginatedRequestParams) -> dict[str, Any]:
        page, more = await _asked(self._service, lambda store: _page(store, params.cursor or "", PAGE))
        entries = await in_thread(Kind.SEARCH, lambda: [served.entry() for served in page])
        answer = {"resultType": "complete", "skills": entries, "ttlMs": _TTL_MS, "cacheScope": "private"}
        return {**answer, "nextCursor": page[-1].name} if more else answer

    async def _get(self, _ctx: object, params: UriParams) -> dict[str, Any]:
        served, path = await found(self._service, params.uri)
        if served is None or path != "SKILL.md":
            raise MCPError(INVALID_PARAMS, f"No skill is served at {params.uri}.", data={"uri": params.uri})
        entry = await in_thread(Kind.SEARCH, served.entry)
        return {"resultType": "complete", "skill": entry, "ttlMs": _TTL_MS, "cacheScope": "private"}

    async def _read_directory(self, _ctx: object, params: DirectoryParams) -> dict[str, Any]:
        served, path = await found(self._service, params.uri)
        children = {} if served is None else _children(served, path)
        if not children:
            raise MCPError(INVALID_PARAMS, f"{params.uri} is not a directory that is served.", data={"uri": params.uri})
        resources = [
            {"uri": uri, "name": uri.rpartition("/")[2], "mimeType": kind} for uri, kind in sorted(children.items())
        ]
        return {"resultType": "complete", "resources": resources}


class ServerWithSkills(MCPServer[None]):
    """An MCP server whose resources are those that it was given, and the files of the stored skills."""

    def __init__(
        self, service: SkillService, *arguments: Any, extensions: Sequence[Extension] = (), **options: Any
    ) -> None:
        self._service = service
        super().__init__(*arguments, extensions=[SkillsExtension(service), *extensions], **options)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises `ToolError` for one that there is not, with the names of those that there are."""
        known = [tool.name for tool in self._tool_manager.list_tools()]
        if name not in known:
            raise ToolError(f"There is no tool {shown(name)}. Those that there are: {', '.join(known)}.")
        return await super().call_tool(name, arguments, context)

    async def list_resources(self) -> list[Resource]:
        """Name the SKILL.md of each skill beside the fixed resources."""
        page, _more = await _asked(self._service, lambda store: _page(store, "", LISTED_MAX))
        return [
            *await super().list_resources(),
            *(
                Resource(
                    uri=served.manifest_uri,
                    name=served.folder,
                    description=about_of(served.description) or None,
                    mime_type="text/markdown",
                    size=len(served.files["SKILL.md"]),
                )
                for served in page
            ),
        ]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a file of a skill, or a fixed resource."""
        if not str(uri).startswith(SCHEME):
            return await super().read_resource(uri, context)
        served, path = await found(self._service, str(uri))
        data = None if served is None else served.files.get(path)
        if served is None or data is None:
            raise ResourceNotFoundError(f"There is no resource {uri}. `skills/list` names those that there are.")
        text = None if path in served.assets else data.decode()
        return [ReadResourceContents(content=data if text is None else text, mime_type=_mime_type(path))]


async def found(service: SkillService, uri: str) -> tuple[Served | None, str]:
    """Return the skill that a URI is in, if there is one, and the path in its folder."""
    folder, _, path = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not folder:
        return None, ""
    return await _asked(service, lambda store: _in_folder(store, folder)), path


async def _asked(service: SkillService, question: Callable[[SkillStore], _T]) -> _T:
    """Ask the store; where it cannot be used, the client gets the reason, as a tool's caller does."""
    try:
        return await service.ask(question)
    except SkillNotFound:
        raise
    except (SkillsDbError, HostWorkBusy) as error:
        raise MCPError(INTERNAL_ERROR, visible(str(error))) from error


def _page(store: SkillStore, after: str, size: int) -> tuple[list[Served], bool]:
    names = [name for name in store.names() if name > after]
    page: list[Served] = []
    for name in names[:size]:
        try:
            page.append(_served(store.load(name)))
        except SkillNotFound:
            continue  # deleted meanwhile
    return page, len(names) > size


def _in_folder(store: SkillStore, folder: str) -> Served | None:
    likely = skill_name(folder)
    name = likely if folder_name(likely) == folder else None
    if name is None:
        name = next((each for each in store.names() if folder_name(each) == folder), None)
    if name is None:
        return None
    try:
        return _served(store.load(name))
    except SkillNotFound:
        return None


def _served(skill: StoredSkill) -> Served:
    folder, files = files_of(skill)
    assets = frozenset(cast("Mapping[str, str]", skill.draft.extra.get("assets", {})))
    return Served(skill.name, skill.draft.description, folder, files, assets)


def _children(served: Served, directory: str) -> dict[str, str]:
    """Return the direct children of a directory of a skill, by URI, with their kinds; none where there is none."""
    prefix = f"{directory}/" if directory else ""
    children: dict[str, str] = {}
    for path in served.files:
        if path.startswith(prefix):
            first, _, rest = path.removeprefix(prefix).partition("/")
            children[f"{SCHEME}{served.folder}/{prefix}{first}"] = _FOLDER if rest else _mime_type(path)
    return children


def _mime_type(path: str) -> str:
    known = next((kind for ending, kind in _MIME_TYPES.items() if path.endswith(ending)), None)
    return known or mimetypes.guess_type(path)[0] or "text/plain"


def _frontmatter(folder: str, manifest: bytes) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(json.dumps(split(folder, manifest.decode())[0], default=str)))
