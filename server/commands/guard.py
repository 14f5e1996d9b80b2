"""`sealab guard`: puts the privacy filter before any MCP server."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...tools_registry.configuration import ServerConfig, Transport, read_server
from ..errors import UsageError
from ..settings import PrivacyMode

if TYPE_CHECKING:
    from ..home import Home
    from ..settings import Settings
    from .group import Parser

_HTTP_ONLY = "Headers are sent to a --url. Give --env NAME for a command."


def add_options(parser: Parser) -> None:
    """Add the command's own options."""
    parser.takes_words = True
    parser.usage = "sealab guard [options] (-- COMMAND [ARGUMENT ...] | --url URL)"
    parser.add_argument("--url", metavar="URL", help="the address of the server, instead of a command")
    parser.add_argument(
        "--header",
        metavar="NAME:VALUE",
        action="append",
        default=[],
        help="a header for the URL; ${NAME} in it is a variable of the environment",
    )
    parser.add_argument(
        "--env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="a variable for the command, as it is here or with this value; it gets few others, such as PATH",
    )
    parser.add_argument(
        "--restore",
        metavar="RULE",
        help="which tokens become values for the server, as `restore` in mcp.json: JSON, or names of tools with commas",
    )
    parser.add_argument(
        "--allow-tokens",
        metavar="TOOLS",
        default="",
        help="names of tools, with commas, that are given tokens as they are; other calls with such are refused",
    )
    parser.add_argument("--mode", choices=[mode.value for mode in PrivacyMode], help="how much is spent on looking")
    parser.add_argument(
        "--allow", metavar="VALUE", action="append", default=[], help="a value, or /expression/, that is never personal"
    )
    parser.add_argument("--name", metavar="NAME", default="guarded", help="what the audit calls the server")


def run(chosen: argparse.Namespace, home: Home, settings: Settings) -> int:
    """Guard the server until it or the client ends."""
    config = _server(chosen)
    if chosen.mode is not None:
        settings = replace(settings, privacy_mode=PrivacyMode(chosen.mode))
    if chosen.allow:
        settings = replace(settings, privacy_allow=(*settings.privacy_allow, *chosen.allow))
    from ..guard.guarding import guard

    return asyncio.run(guard(config, home, settings))


def _server(chosen: argparse.Namespace) -> ServerConfig:
    """Return the server that is named. Raises `UsageError` and `ConfigurationRefused`."""
    words: Sequence[str] = chosen.words
    if (chosen.url is None) is (not words):
        raise UsageError("It is not clear which server to guard. Give either `-- COMMAND ARGUMENT ...` or --url URL.")
    policy = {"restore": _rule(chosen.restore), "allow_tokens": _names(chosen.allow_tokens)}
    if chosen.url is None:
        if chosen.header:
            raise UsageError(_HTTP_ONLY)
        entry = {"command": words[0], **policy, "allow_self": True}
        checked = read_server(chosen.name, entry, {})
        return replace(checked, type=Transport.STDIO, command=words[0], args=(*words[1:],), env=_variables(chosen.env))
    if chosen.env:
        raise UsageError("Variables are given to a command. Give --header NAME:VALUE for a --url.")
    entry = {"url": chosen.url, "headers": _headers(chosen.header), **policy}
    return read_server(chosen.name, entry, os.environ)


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
