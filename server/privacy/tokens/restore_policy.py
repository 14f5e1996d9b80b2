"""Which values may be put in for tokens on their way to an upstream tool: the `restore` of a server in `mcp.json`.

A security boundary. It may be left out, or be:

    false                        nothing
    true                         as when it is left out: every type but secrets, in every tool
    ["send_*", "crm_update"]     every type but secrets, in the tools of these names
    {"EMAIL": ["send_mail.to"],  by type (patterns): tools, or tools and the argument; a secret goes to nothing but an
     "SECRET": ["login.token"]}  argument that is named so without a pattern; types that are not listed stay tokens

Names of tools are those of the server itself. An argument's name is that of the outermost key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

SECRETS = frozenset({"SECRET"})
"""Types that go nowhere unless the argument is named."""


@dataclass(frozen=True, slots=True)
class RestorePolicy:
    """What one server may be given."""

    rule: object = None

    def allows(self, tool: str, path: Sequence[str], kind: str) -> bool:
        """Return whether a value of that type may go to a tool at that path of its arguments."""
        argument = path[0] if path else ""
        rule = self.rule
        if kind in SECRETS:
            return isinstance(rule, Mapping) and f"{tool}.{argument}" in _places(rule.get(kind))
        if rule is None or isinstance(rule, bool):
            return rule is not False
        if isinstance(rule, str | list):
            return any(_fits(place, tool, argument) for place in _places(rule))
        if isinstance(rule, Mapping):
            return any(
                fnmatchcase(kind, str(kinds).upper()) and any(_fits(place, tool, argument) for place in _places(places))
                for kinds, places in rule.items()
            )
        return False


def _places(places: object) -> list[str]:
    if isinstance(places, bool):
        return ["*"] if places else []
    if isinstance(places, str):
        return [places]
    return [str(place) for place in places] if isinstance(places, list) else []


def _fits(place: str, tool: str, argument: str) -> bool:
    return fnmatchcase(tool, place) or fnmatchcase(f"{tool}.{argument}", place)
