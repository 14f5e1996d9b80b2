"""Security boundary: which rights each thing needs that a caller can ask for. The one table of it.

A test lists all MCP tools, methods, resources, prompts, host functions and HTTP routes that there are, and fails where
one has no entry. What has none here is refused: by the tool itself, by the broker, and for a method as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..base.errors import RightMissing
from ..base.identity import Identity, Right

Rights = tuple[Right, ...]
"""All of these are needed; none means that any caller with a valid token may."""

_R = Right
_NONE: Rights = ()
_RUN: Rights = (_R.RUN,)
_FILES: Rights = (_R.FILES,)
_FIND: Rights = (_R.TOOLS_READ,)

TOOLS: Mapping[str, Rights] = MappingProxyType(
    {
        "execute_code": _RUN,
        "run_python": _RUN,
        "get_run": _RUN,
        "search_tools": _FIND,
        "get_tool_definition": _FIND,
        "list_tool_categories": _FIND,
        "save_skill": (_R.SKILLS_WRITE,),  # its tests may do what the token may, and have no files but copies
        "load_skill": (_R.SKILLS_READ,),
        "list_skills": (_R.SKILLS_READ,),
        "run_skill": (_R.SKILLS_READ, _R.RUN),
        "delete_skill": (_R.SKILLS_WRITE,),
        "review_skills": (_R.SKILLS_WRITE,),
        **dict.fromkeys(("add_schedule", "list_schedules", "remove_schedule"), (_R.SKILLS_WRITE,)),
        "sanitize_pii": _RUN,  # it computes, and fills the vault
        "restore_pii": (_R.PRIVACY_RESTORE,),
        "write_workspace_file": _FILES,
        "read_workspace_file": _FILES,
        "list_workspace_files": _FILES,
        "delete_workspace_file": _FILES,
        "get_execution_stats": _RUN,
    }
)
"""The MCP tools. `execute_code` needs more for an isolation (`ISOLATIONS`), and what its code calls does too."""

ISOLATIONS: Mapping[str, Rights] = MappingProxyType(
    {
        "restricted": _NONE,
        "process": (_R.RUN_PROCESS, _R.FILES),
        "container": (_R.RUN_CONTAINER, _R.FILES),
    }
)
"""What a run in an isolation needs beside `run`: full Python sees the workspace by itself, so `files` too."""

HOST_FUNCTIONS: Mapping[str, Rights] = MappingProxyType(
    {
        **dict.fromkeys(("progress", "list_sessions", "close_session"), _NONE),
        **dict.fromkeys(("judge_calls", "hide_labels", "learn_path", "learn_rows", "sanitize_pii"), _NONE),
        "restore_pii": (_R.PRIVACY_RESTORE,),
        **dict.fromkeys(("read_file", "write_file", "keep", "list_files", "delete_file"), _FILES),
        **dict.fromkeys(("file_open", "file_read", "file_write", "file_truncate", "file_status"), _FILES),
        **dict.fromkeys(("list_folder", "make_folder", "remove_path", "remove_folder", "rename_path"), _FILES),
        **dict.fromkeys(("set_modified", "disk_usage", "file_close", "file_sync"), _FILES),
        **dict.fromkeys(("search_tools", "get_tool_definition", "list_servers", "list_names", "list_tools"), _FIND),
        **dict.fromkeys(("named_servers", "describe_server", "describe_servers", "capability_summary"), _FIND),
        **dict.fromkeys(("read_resource", "list_resources", "list_prompts"), _FIND),
        "call_tool": _FIND,  # of a tool that may write, `tools:write` too: see `registry_calls`
        **dict.fromkeys(("use_skill", "skill_sources", "load_skill", "list_skills", "skill_names"), (_R.SKILLS_READ,)),
        "skill_files": (_R.SKILLS_READ,),
        "save_skill": (_R.SKILLS_WRITE,),
    }
)
"""What code can call, which needs `run` to begin with."""

METHODS: Mapping[str, Rights] = MappingProxyType(
    {
        **dict.fromkeys(("initialize", "ping", "server/discover", "logging/setLevel", "completion/complete"), _NONE),
        **dict.fromkeys(("tools/list", "tools/call", "prompts/list", "prompts/get"), _NONE),
        **dict.fromkeys(("resources/list", "resources/templates/list", "resources/read"), _NONE),
        **dict.fromkeys(("resources/subscribe", "resources/unsubscribe", "subscriptions/listen"), _NONE),
        **dict.fromkeys(("tasks/get", "tasks/cancel"), _RUN),
        "tasks/update": (_R.RUN, _R.APPROVE),
        **dict.fromkeys(("skills/list", "skills/get", "resources/directory/read"), (_R.SKILLS_READ,)),
    }
)
"""The methods of MCP that are requests. A call needs what its tool needs too, a reading what its resource does."""

VIEWS = "ui://sealab/"
"""Where the pages of runs are, which clients show beside the answers of tools."""
RESOURCES: Mapping[str, Rights] = MappingProxyType(
    {"resource://sealab/capabilities": _NONE, "skill://": (_R.SKILLS_READ,), VIEWS: _RUN}
)
"""Resources by the beginning of their URI."""

PROMPTS: Mapping[str, Rights] = MappingProxyType({"program": _NONE, "skill": _NONE})

CONSOLE = "/console"
"""Where the pages for people are."""
REPLICA_PATH = "/.sealab/replica"
"""Where servers that are one sealab ask one another."""
ROUTES: Mapping[str, str] = MappingProxyType(
    {
        "/mcp": "a token, and for each message what its method needs",
        "/approvals/": "a signed link, which answers one question",
        "/sign-in/": "the secret of a link, which is for one sign-in to an upstream server",
        REPLICA_PATH: "the seal of another server of the same sealab; without REPLICA_ADDRESS it is not there",
        f"{CONSOLE}/": "a session of a browser, which a token or a link opens, or a token; see `console.pages`",
        "/healthz": "nothing",
        "/readyz": "nothing",
        "/.well-known/": "nothing",
    }
)
"""The HTTP routes, those that end with a slash with all below, and what each asks for. Others ask for a token."""
LINKS = ("/approvals/", "/sign-in/")
"""Those below which a link is its own credential."""
WITHOUT_TOKEN = (*LINKS, "/.well-known/")
"""Those below which no token is asked for; what tells of the server's health is answered before any is."""


def needed_by(method: object, params: object) -> Rights:
    """Return what a message of MCP needs, as it stands in its body; nothing where it is no request that is answered."""
    if not isinstance(method, str) or method not in METHODS:
        return _NONE  # answered as unknown, whoever asks
    given = params if isinstance(params, Mapping) else {}
    needed = METHODS[method]
    if method == "tools/call":
        name = given.get("name")
        needed += TOOLS.get(name, _NONE) if isinstance(name, str) else _NONE  # there is no tool of another name
        answers = given.get("inputResponses")
        needed += needed_to_answer(*answers.values()) if isinstance(answers, Mapping) else _NONE
        if name == "execute_code":
            arguments = given.get("arguments")
            isolation = arguments.get("isolation") if isinstance(arguments, Mapping) else None
            needed += ISOLATIONS.get(isolation, _NONE) if isinstance(isolation, str) else _NONE
    elif method == "resources/read":
        needed += needed_for_resource(given.get("uri"))
    return needed


def needed_to_answer(*results: object) -> Rights:
    """Return what results need that answer a question to a user: a filled form is a yes; others approve nothing.

    Who may answer whose question at all, `McpSessions` and `Elicitations` judge.
    """
    filled = any(
        isinstance(each, Mapping) and each.get("action") == "accept" and each.get("content") for each in results
    )
    return (_R.APPROVE,) if filled else _NONE


def needed_for_resource(uri: object) -> Rights:
    """Return what reading a resource needs."""
    text = str(uri).strip().lower()  # a scheme is not case-sensitive (RFC 3986, 3.1)
    return next((rights for beginning, rights in RESOURCES.items() if text.startswith(beginning)), _NONE)


def missing(identity: Identity, needed: Rights) -> Iterator[Right]:
    """Yield which of the needed rights an identity lacks."""
    return (right for right in needed if not identity.may(right))


def require(identity: Identity, needed: Mapping[str, Rights], name: str) -> None:
    """Raise `RightMissing` unless an identity may use what a table has under a name; what it does not have, nobody may.

    An identity with every right may use that too: it is that of the user who started the process, or of an operator.
    """
    rights = needed.get(name)
    if rights is None:
        if len(identity.rights) < len(Right):
            raise RightMissing(f"Nothing says which scope {name} needs, so it is refused. Tell sealab's authors.")
        return
    for right in rights:
        identity.require(right)
