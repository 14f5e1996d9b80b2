"""Finds secrets in a server's entry, and puts references to environment variables in their place.

A secret is recognized by the name beside it (`API_KEY`, `Authorization`), or by its own form (the prefixes that
issuers give their keys, a JSON Web Token, a password in a URL). It is better to take a harmless value for one than to
miss one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .entries import Entry

_NAME = re.compile(
    r"token|secret|passw|passphrase|api[-_]?key|access[-_]?key|private[-_]?key|credential|authorization|cookie|bearer"
    r"|connection[-_]?string|\bdsn\b|_dsn$|_pat$|^pat$|_pwd$|^pwd_|_auth$|^auth$|webhook|[-_]key$|^key$|database_url",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
    r"|\bxox[abeoprs]-[\w-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\bntn_\w{20,}|\bsecret_\w{20,}|\bnpm_\w{20,}|\bhf_\w{20,}|\bpypi-[\w-]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY"
)
_FORM_CHARS_MAX = 4096
"""A longer value counts as a secret."""
_LONG = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/_=-]{32,}|[0-9a-f]{32,}")
# One without its end is taken to the end of the text, or each that begins in it would be looked at anew.
_REFERENCE = re.compile(r"\$\{[^}]*\}?")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)
_OPTION = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)=(.+)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z][\w-]*)(:\s*+)(\S.*)")
_VAGUE = frozenset({"ARGUMENT", "AUTHORIZATION", "COOKIE", "KEY", "PASSWORD", "SECRET", "TOKEN", "API_KEY", "URL"})
"""Names that many servers have a secret of: the server's own name is put before them."""
_HARMLESS = re.compile(r"(?:true|false|yes|no|on|off|none|null|\d{1,5}|)", re.IGNORECASE)


Replace = Callable[[str, str, str], str]
"""Takes where a secret stands, the wanted name of a variable and the secret, and gives the reference."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in an entry: where it stands (`env.API_KEY`), and the variable that can hold it instead."""

    where: str
    variable: str
    value: str = field(repr=False)


class Concealer:
    """Puts `${VAR}` in the place of secrets; a variable holds one value, and belongs to one server of an import.

    Equal secrets of two servers are two variables: one of them may be changed without the other.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._taken: dict[str, tuple[str, str]] = {}

    def conceal(self, server: str, entry: Entry) -> tuple[Entry, list[Secret]]:
        """Return the entry without its secrets, and what they were."""
        found: list[Secret] = []

        def replace(where: str, wanted: str, value: str) -> str:
            variable = self._variable(server, wanted, value)
            found.append(Secret(where, variable, value))
            return f"${{{variable}}}"

        result = dict(entry)
        for group in ("env", "headers"):
            given = entry.get(group)
            if isinstance(given, Mapping):
                result[group] = {
                    name: _in_pair(f"{group}.{name}", str(name), str(value), replace) for name, value in given.items()
                }
        args = entry.get("args")
        if isinstance(args, list):
            result["args"] = _in_args([str(each) for each in args], replace)
        url = entry.get("url")
        if isinstance(url, str):
            result["url"] = _in_url("url", url, replace)
        return result, found

    def _variable(self, server: str, wanted: str, value: str) -> str:
        for known, held in self._taken.items():
            if held == (server, value):
                return known
        longer = _as_variable(f"{server}_{wanted}")
        for candidate in (_as_variable(wanted), longer, *(f"{longer}_{number}" for number in range(2, 99))):
            usual = candidate not in _VAGUE and candidate not in self._taken
            if usual and self._environment.get(candidate, value) == value:
                self._taken[candidate] = (server, value)
                return candidate
        return longer


def _in_pair(where: str, name: str, value: str, replace: Replace) -> str:
    """Conceal the value of an environment variable, a header or an option."""
    bare = _REFERENCE.sub(lambda found: "" if found[0].endswith("}") else found[0], _SCHEME.sub("", value)).strip()
    if _HARMLESS.fullmatch(bare) or bare != _SCHEME.sub("", value).strip():
        return value
    if urlsplit(value).scheme and not _NAME.search(name):
        return _in_url(where, value, replace)
    if not _NAME.search(name) and not _is_secret(value):
        return value
    scheme = _SCHEME.match(value)
    start = scheme.end() if scheme else 0
    return value[:start] + replace(where, name, value[start:].strip())


def _in_args(args: list[str], replace: Replace) -> list[str]:
    result: list[str] = []
    for index, arg in enumerate(args):
        where = f"args[{index}]"
        before = args[index - 1] if index else ""
        pair, header = _OPTION.fullmatch(arg), _HEADER.fullmatch(arg)
        if before.startswith("-") and "=" not in before and _NAME.search(before) and not arg.startswith("-"):
            result.append(_in_pair(where, before.lstrip("-"), arg, replace))
        elif pair is not None:
            name, value = pair.groups()
            result.append(f"{name}={_in_pair(where, name.lstrip('-'), value, replace)}")
        elif header is not None and _NAME.search(header[1]):
            result.append(header[1] + header[2] + _in_pair(where, header[1], header[3], replace))
        else:
            result.append(_in_pair(where, "argument", arg, replace))
    return result


def _in_url(where: str, url: str, replace: Replace) -> str:
    """Conceal the password, the parameters and the parts of the path of a URL that are secrets."""
    try:
        parts = urlsplit(url)
        secret = [("password", parts.password)] if parts.password else []
    except ValueError:
        return url
    # The values as they stand in the text: decoded ones would not be found in it.
    pairs = [each.partition("=") for each in parts.query.split("&")]
    secret += [(name, value) for name, _, value in pairs if value and (_NAME.search(name) or _is_secret(value))]
    secret += [("url", each) for each in parts.path.split("/") if _is_secret(each)]
    for name, value in secret:
        if not (_REFERENCE.fullmatch(value) and value.endswith("}")):
            url = url.replace(value, replace(where, name, value))
    return url


def _is_secret(value: str) -> bool:
    if value.startswith(("/", "~", ".", "@")):
        return False
    if len(value) > _FORM_CHARS_MAX:
        return True
    return _FORM.search(value) is not None or _LONG.fullmatch(value) is not None


def _as_variable(name: str) -> str:
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper() or "SECRET"
    return f"_{plain}" if plain[0].isdigit() else plain
