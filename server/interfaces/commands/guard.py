"""`sealab guard`: puts the privacy filter before any MCP server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....tools_registry.configuration import ServerConfig, Transport, read_server
from ...base.errors import UsageError
from ...base.settings import PrivacyMode
from ..guard.guarding import guard as guarding
from .command import Command
from .terminal import Here


async def _guard(
    here: Here,
    *words: str,
    url: str | None = None,
    header: Sequence[str] = (),
    env: Sequence[str] = (),
    restore: str | None = None,
    allow_tokens: str = "",
    mode: PrivacyMode | None = None,
    allow: Sequence[str] = (),
    name: str = "guarded",
) -> int:
    """Put the privacy filter before any MCP server.

    url: the address of the server, instead of a command
    header NAME:VALUE: a header for the URL; ${NAME} in it is a variable of the environment
    env NAME[=VALUE]: a variable for the command, as it is here or with this value; it gets few others, such as PATH
    restore RULE: which tokens become values for the server, as `restore` in mcp.json: JSON, or names of tools with
        commas
    allow_tokens TOOLS: names of tools, with commas, that are given tokens as they are; other calls with such are
        refused
    mode: how much is spent on looking
    allow VALUE: a value, or /expression/, that is never personal
    name: what the audit calls the server
    """
    policy = {"restore": _rule(restore), "allow_tokens": _names(allow_tokens)}
    config = _server(name, words, url, policy, header=header, env=env)
    settings = here.settings
    if mode is not None:
        settings = replace(settings, privacy_mode=PrivacyMode(mode))
    settings = replace(settings, privacy_allow=(*settings.privacy_allow, *allow))
    return await guarding(config, here.home, settings)


guard = Command(_guard, has_json=False, usage="sealab guard [options] (-- COMMAND [ARGUMENT ...] | --url URL)")


def _server(
    name: str,
    words: Sequence[str],
    url: str | None,
    policy: Mapping[str, object],
    *,
    header: Sequence[str],
    env: Sequence[str],
) -> ServerConfig:
    """Return the server that is named. Raises `UsageError` and `ConfigurationRefused`."""
    if (url is None) is (not words):
        raise UsageError("It is not clear which server to guard. Give either `-- COMMAND ARGUMENT ...` or --url URL.")
    if url is None:
        if header:
            raise UsageError("Headers are sent to a --url. Give --env NAME for a command.")
        checked = read_server(name, {"command": words[0], **policy, "allow_self": True}, {})
        return replace(checked, type=Transport.STDIO, command=words[0], args=(*words[1:],), env=_variables(env))
    if env:
        raise UsageError("Variables are given to a command. Give --header NAME:VALUE for a --url.")
    return read_server(name, {"url": url, "headers": _headers(header), **policy}, os.environ)


def _rule(given: str | None) -> object:
    """Return a rule as `mcp.json` has it."""
    if given is None:
        return None
    try:
        return json.loads(given)
    except ValueError:
        if given.lstrip()[:1] in {"{", "["}:
            raise UsageError(
                'The rule of --restore is not JSON. Give true, false, names of tools, or {"EMAIL": ["send_mail.to"]}.'
            ) from None
        return _names(given)


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _variables(given: Sequence[str]) -> Mapping[str, str]:
    made: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name:
            raise UsageError(f"--env {each} names no variable. Give NAME or NAME=VALUE.")
        if not equals and name not in os.environ:
            raise UsageError(f"The variable {name} is not set here. Set it, or give --env {name}=VALUE.")
        made[name] = value if equals else os.environ[name]
    return made


def _headers(given: Sequence[str]) -> Mapping[str, str]:
    made: dict[str, str] = {}
    for each in given:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise UsageError("A --header names no value. Give it as --header 'NAME: VALUE'.")
        made[name.strip()] = value.strip()
    return made
