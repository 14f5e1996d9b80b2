"""sealab's own entry in the files of other clients: added, and nothing else of the file changed."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import json5
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sealab.tools_registry.clients import documents, own_entry
from sealab.tools_registry.clients.insertion import into_json, into_toml, into_yaml
from sealab.tools_registry.clients.own_entry import (
    ClientFile,
    EntryChange,
    client_files,
    plan_entry,
    plan_removal,
    undo,
    write,
)
from sealab.tools_registry.errors import ConfigurationRefused

COMMAND = ["/opt/bin/sealab", "--home", "/srv/a b"]
PLAIN = {"command": "/opt/bin/sealab", "args": ["--home", "/srv/a b"]}


def planned(path: Path, client: str = "cursor", keys: tuple[str, ...] = ("mcpServers",)) -> EntryChange:
    change = plan_entry(ClientFile(client, path, keys), COMMAND, path.parent)
    assert change is not None
    return change


def file(folder: Path, text: str | bytes, name: str = "mcp.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{}",
        "{ }\n",
        '{"mcpServers": {}}',
        '{"mcpServers": {\n}}',
        '{\n\t"mcpServers": {\n\t\t"a": {"command": "x"}\n\t}\n}\n',
        '{"mcpServers":{"a":{"command":"}{"}},"other":[1,2,{"mcpServers":3}]}',
        '// all mine\n{ // here\n  /* { */ "theme": "dark", // }\n  "mcpServers": { // none\n  },\n}\n',
        '{"mcpServers": { /* nothing */ }}',
        '{\r\n  "mcpServers": {\r\n    "a": {"command": "\\"x"}\r\n  }\r\n}\r\n',
        '\ufeff{"mcpServers": {"a": {"command": "x"}}}',
        '{"a": {"mcpServers": {}}, "b": 1.5e3, "c": null}',
        '{"mcp\\u0053ervers": {"a": {"command": "x"}}}',
    ],
)
def test_an_entry_is_added_and_every_other_character_stays(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, text)
    change = planned(path)
    write(change, tmp_path / "kept")
    after = path.read_bytes().decode()
    assert change.added in after
    squeezed, rest = iter("".join(after.split())), "".join(text.split())
    assert all(each in squeezed for each in rest), "what stood there stands there in its order"
    before = json5.loads(text.lstrip("\ufeff")) if text.strip() else {}
    now = documents.parsed(after.encode(), ".json")
    assert isinstance(now, dict)
    assert now["mcpServers"].pop("sealab") == PLAIN
    assert now == {"mcpServers": {}, **before}
    assert ("\r\n" in text) == ("\r\n" in after)
    assert plan_entry(change.file, COMMAND, tmp_path) is None, "it is there now"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    ),
    st.sampled_from([None, 1, "\t"]),
)
def test_whatever_else_a_file_holds_is_still_there(value: object, indent: int | str | None) -> None:
    document = {"before": value, "mcpServers": {"a": {"command": "x", "more": value}}, "after": value}
    text = "".join(into_json(json.dumps(document, indent=indent), ("mcpServers",), "sealab", PLAIN))
    assert json.loads(text) == {**document, "mcpServers": {"sealab": PLAIN, **document["mcpServers"]}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "text", ["", 'model = "o3"', 'model = "o3"\r\n[mcp_servers.docs]\r\nurl = "x" # mine\r\n', "# nothing\n"]
)
def test_codex_gets_a_table_at_the_end(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, text, "config.toml")
    write(planned(path, "codex", ("mcp_servers",)), tmp_path / "kept")
    after = path.read_bytes().decode()
    assert after.startswith(text)
    assert tomllib.loads(after)["mcp_servers"]["sealab"] == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "model: x",
        "# mine\nextensions:\n    dev: # here\n        enabled: true\nmodel: x\n",
        "extensions:\n\n  # mine\n  dev: {enabled: true}\n",
        "extensions:",
    ],
)
def test_goose_gets_an_extension(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, text, "config.yaml")
    if text == "extensions:":
        with pytest.raises(ConfigurationRefused):
            planned(path, "goose", ("extensions",))
        return
    write(planned(path, "goose", ("extensions",)), tmp_path / "kept")
    now = yaml.safe_load(path.read_text())
    assert now["extensions"].pop("sealab")["cmd"] == COMMAND[0]
    before = yaml.safe_load(text) or {}
    assert now == {"extensions": {}, **before}
    assert all(line in path.read_text().splitlines() for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mcp.json", "{broken", "cannot be parsed"),
        ("mcp.json", "[]", "not an object"),
        ("mcp.json", '{"mcpServers": []}', "mcpServers is not an object"),
        ("mcp.json", '{"mcpServers": null}', "mcpServers is not an object"),
        ("mcp.json", '{"mcpServers": {"sealab": {"command": "other"}}}', "another server of the name"),
        ("mcp.json", '{"mcpServers": {}, "mcpServers": {"a": {"command": "x"}}}', "Add the entry by hand"),
        ("mcp.json", "{mcpServers: {}}", "Add the entry by hand"),
        ("mcp.json", b'{"mcpServers": {"\xff": {}}}', "not UTF-8"),
        ("mcp.json", "\ufeff\ufeff{}", "Add the entry by hand"),
        ("config.toml", "mcpServers = {}", "Add the entry by hand"),
        ("config.toml", "a = [", "cannot be parsed"),
        ("config.yaml", "mcpServers: {a: 1}\n", "Add the entry by hand"),
        ("config.yaml", "a: b: c", "cannot be parsed"),
    ],
)
def test_a_file_that_cannot_be_changed_without_doubt_stays_as_it_is(
    tmp_path: Path, name: str, content: str | bytes, said: str
) -> None:
    path = file(tmp_path, content, name)
    before = path.read_bytes()
    with pytest.raises(ConfigurationRefused, match=said):
        planned(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [name]


def test_what_a_user_keeps_read_only_stays_so(tmp_path: Path) -> None:
    path = file(tmp_path, "{}")
    path.chmod(0o444)
    with pytest.raises(ConfigurationRefused, match="read-only"):
        planned(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigurationRefused, match="not a file"):
        planned(path)
    path.rmdir()
    path.symlink_to("nowhere")
    with pytest.raises(ConfigurationRefused, match="link to a file that is not there"):
        planned(path)


def test_a_file_that_changed_meanwhile_or_cannot_be_written_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file(tmp_path, "{}")
    change = planned(path)
    path.write_text('{"new": 1}')
    with pytest.raises(ConfigurationRefused, match="changed meanwhile"):
        write(change, tmp_path / "kept")
    assert path.read_text() == '{"new": 1}'

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(own_entry, "write_whole", full)
    with pytest.raises(ConfigurationRefused, match="No space left"):
        write(planned(path), tmp_path / "kept")
    assert path.read_text() == '{"new": 1}'


def test_the_old_file_is_kept_and_links_and_permissions_stay(tmp_path: Path) -> None:
    real = file(tmp_path, '{"token": "hunter2"}', "dotfiles.json")
    real.chmod(0o640)
    link = tmp_path / "mcp.json"
    link.symlink_to(real)
    kept = write(planned(link), tmp_path / "kept")
    assert kept is not None
    assert kept.read_text() == '{"token": "hunter2"}'
    assert (kept.stat().st_mode & 0o777, real.stat().st_mode & 0o777) == (0o600, 0o640)
    assert link.is_symlink()
    real.write_text("{}")
    second = write(planned(link), tmp_path / "kept")
    assert second != kept
    assert kept.read_text() == '{"token": "hunter2"}'
    new = tmp_path / "new.json"
    assert write(planned(new), tmp_path / "kept") is None
    assert new.stat().st_mode & 0o777 == 0o600


def test_clients_are_found_by_their_files_or_their_folders(tmp_path: Path) -> None:
    for folder in (".cursor", ".codex", ".claude", ".config/Code/User", ".config/opencode", ".gemini"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".config/opencode/opencode.jsonc").write_text("{}")
    found = {each.client: (str(each.path.relative_to(tmp_path)), each.keys) for each in client_files(tmp_path, {})}
    assert found == {
        "claude-code": (".claude.json", ("mcpServers",)), "cursor": (".cursor/mcp.json", ("mcpServers",)),
        "vscode": (".config/Code/User/mcp.json", ("servers",)), "gemini": (".gemini/settings.json", ("mcpServers",)),
        "codex": (".codex/config.toml", ("mcp_servers",)), "opencode": (".config/opencode/opencode.jsonc", ("mcp",)),
    }  # fmt: skip
    assert client_files(tmp_path / "nobody", {}) == []


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode", "copilot", "opencode", "zed", "codex", "goose"])
def test_an_entry_of_each_client_is_read_back_as_sealab(tmp_path: Path, client: str) -> None:
    name = {"codex": "c.toml", "goose": "c.yaml"}.get(client, "c.json")
    where = ClientFile(client, tmp_path / name, ("servers",))
    change = plan_entry(where, COMMAND, tmp_path, {"HTTPS_PROXY": "http://proxy.example:3128"})
    assert change is not None
    assert "http://proxy.example:3128" in change.added
    write(change, tmp_path / "kept")
    assert plan_entry(where, COMMAND, tmp_path) is None
    gone = plan_removal(where, ["sealab"], tmp_path)
    assert gone is not None
    assert "sealab" not in gone.after
    assert [why for _, why in undo(tmp_path / "kept")] == [None]
    assert not where.path.exists()


def test_the_parts_of_an_insertion_are_the_text() -> None:
    for into in (into_json, into_toml, into_yaml):
        text = "{}" if into is into_json else ""
        parts = into(text, ("x",), "sealab", PLAIN)
        assert "sealab" in parts.added
        assert f"{parts.before}{parts.after}".replace(" ", "") == text
