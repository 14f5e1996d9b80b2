"""Where other MCP clients keep their servers, and under which keys. One row a file, as their documentation says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Keys = tuple[str, ...]

MCP_SERVERS: Keys = ("mcpServers",)


@dataclass(frozen=True, slots=True)
class CandidateFile:
    """A file that may hold servers; `keys` leads to the object of them, `*` standing for every key of an object.

    `project` says that the file belongs to a project and not to the user.
    """

    client: str
    path: Path
    keys: tuple[Keys, ...] = (MCP_SERVERS,)
    project: bool = False


def places(user: Path, project: Path, environment: Mapping[str, str]) -> list[CandidateFile]:
    """Return every place, of the user and of one project, in the order in which they are read; most do not exist."""
    config = Path(environment.get("XDG_CONFIG_HOME") or user / ".config")
    roaming = Path(environment["APPDATA"]) if environment.get("APPDATA") else user / "AppData" / "Roaming"
    support = user / "Library" / "Application Support"
    codex = Path(environment.get("CODEX_HOME") or user / ".codex")
    found: list[CandidateFile] = []

    def of_user(client: str, *paths: Path, keys: tuple[Keys, ...] = (MCP_SERVERS,)) -> None:
        found.extend(CandidateFile(client, path, keys) for path in dict.fromkeys(paths))

    def of_project(client: str, *paths: str, keys: tuple[Keys, ...] = (MCP_SERVERS,)) -> None:
        found.extend(CandidateFile(client, project / path, keys, project=True) for path in paths)

    everywhere = (support, roaming, config)
    of_user("claude-desktop", *(base / "Claude" / "claude_desktop_config.json" for base in everywhere))
    of_project("claude-code", ".mcp.json")
    of_user("claude-code", user / ".claude.json", keys=(MCP_SERVERS, ("projects", "*", "mcpServers")))
    of_user("cursor", user / ".cursor" / "mcp.json")
    of_project("cursor", ".cursor/mcp.json")
    of_project("vscode", ".vscode/mcp.json", keys=(("servers",), MCP_SERVERS))
    of_project("vscode", ".vscode/settings.json", keys=(("mcp", "servers"),))
    for edition in ("Code", "Code - Insiders", "VSCodium"):
        profiles = [base / edition / "User" for base in everywhere]
        of_user("vscode", *(each / "mcp.json" for each in profiles), keys=(("servers",), MCP_SERVERS))
        of_user("vscode", *(each / "settings.json" for each in profiles), keys=(("mcp", "servers"),))
    of_user("copilot", user / ".copilot" / "mcp-config.json", keys=(MCP_SERVERS, ("servers",)))
    of_user("windsurf", user / ".codeium" / "windsurf" / "mcp_config.json", user / ".codeium" / "mcp_config.json")
    of_user("devin", config / "devin" / "mcp_config.json", user / ".config" / "devin" / "mcp_config.json")
    zed = (("context_servers",),)
    of_user("zed", *(base / "zed" / "settings.json" for base in (config, user / ".config")), keys=zed)
    of_user("zed", *(base / "Zed" / "settings.json" for base in (support, roaming)), keys=zed)
    of_user("gemini", user / ".gemini" / "settings.json")
    of_project("gemini", ".gemini/settings.json")
    of_user("codex", codex / "config.toml", keys=(("mcp_servers",),))
    of_project("codex", ".codex/config.toml", keys=(("mcp_servers",),))
    opencode = (("mcp", "servers"), ("mcp",))
    for name in ("opencode.json", "opencode.jsonc"):
        of_user("opencode", config / "opencode" / name, keys=opencode)
        of_project("opencode", name, f".opencode/{name}", keys=opencode)
    of_user("kiro", user / ".kiro" / "settings" / "mcp.json")
    of_project("kiro", ".kiro/settings/mcp.json")
    goose = (("extensions",),)
    of_user("goose", config / "goose" / "config.yaml", keys=goose)
    of_user("goose", roaming / "Block" / "goose" / "config" / "config.yaml", keys=goose)
    of_user("claude-code", *(support / name / "claude_code_config.json" for name in ("Claude Code", "Claude")))
    of_user("mcp", *_below(config / "mcp" / "servers"), *_below(user / "MCPs"))
    of_project("mcp", *(str(path) for path in _below(project / "mcp-servers")), "mcp_config.json")
    of_project("mcp", "claude_code_config.json", "claude_desktop_config.json")
    return list({(place.client, place.path): place for place in found}.values())


def clients() -> list[str]:
    """Return the names of the clients whose files are known."""
    nowhere = Path("/nonexistent")
    return list(dict.fromkeys(place.client for place in places(nowhere, nowhere, {})))


def _below(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return
