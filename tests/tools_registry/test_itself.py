"""An entry that starts sealab is told from one that only mentions it, and is refused."""

from __future__ import annotations

import pytest

from sealab.tools_registry.configuration import read_server
from sealab.tools_registry.errors import ConfigurationRefused
from sealab.tools_registry.itself import starts_sealab


@pytest.mark.parametrize(
    ("entry", "itself"),
    [
        ({"command": "sealab"}, True),
        ({"command": "/opt/bin/sealab", "args": ["serve"]}, True),
        ({"command": "C:\\Tools\\sealab.exe"}, True),
        ({"command": "uvx", "args": ["sealab@latest"]}, True),
        ({"command": "uvx", "args": ["--from", "sealab[store]==1.0", "sealab"]}, True),
        ({"command": "python3", "args": ["-m", "sealab.server"]}, True),
        ({"command": "python3", "args": ["-m", "sealab.server.cli"]}, True),
        ({"command": "python3", "args": ["-m", "sealab.server.interfaces.commands.demo_upstream"]}, False),
        ({"command": "docker", "args": ["run", "-i", "--rm", "sealab:latest"]}, True),
        ({"command": "npx", "args": ["server-filesystem", "/home/me/sealab"]}, False),
        ({"command": "uvx", "args": ["mcp-server-git", "--repository", "sealab"]}, False),
        ({"command": "mcp-server-git", "args": ["sealab"]}, False),
        ({"command": "uvx", "args": ["sealab-docs"]}, False),
        ({"url": "http://127.0.0.1:1/mcp"}, False),
        ({"command": "uvx", "args": "sealab"}, False),
        ({"command": 7}, False),
        ({"command": "sealab", "args": ["guard", "--", "npx", "crm-server"]}, False),
        ({"command": "uvx", "args": ["sealab", "--home", "guard"]}, True),
        (
            {
                "command": "uvx",
                "args": ["--from", "sealab[store]", "sealab", "guard", "--url", "https://a.example/mcp"],
            },
            False,
        ),
        ({"command": "python3", "args": ["-m", "sealab.server", "guard", "--", "uvx", "sealab"]}, True),
    ],
)
def test_sealab_is_told_from_what_only_mentions_it(entry: dict[str, object], itself: bool) -> None:
    assert starts_sealab(entry) is itself


def test_an_entry_that_starts_sealab_is_refused_unless_it_says_that_it_may() -> None:
    entry = {"command": "sealab", "env": {"SEALAB_HOME": "/srv/other"}}
    with pytest.raises(ConfigurationRefused, match="would start itself without an end"):
        read_server("me", entry, {})
    assert read_server("me", {**entry, "allow_self": True}, {}).command == "sealab"


def test_a_disabled_server_needs_no_variables() -> None:
    entry = {"command": "x", "env": {"KEY": "${NOT_SET}"}}
    with pytest.raises(ConfigurationRefused, match="NOT_SET"):
        read_server("a", entry, {})
    assert read_server("a", {**entry, "disabled": True}, {}).disabled
