"""`sealab servers test`: connects to upstream servers, lets a user sign in, and shows what they offer and changed.

Of tools whose server does not say whether they only read, it proposes one or the other. This alone accepts proposals
and changed descriptions, and opens a sign-in: all are a user's decisions, never the model's.
"""

from __future__ import annotations

import asyncio
import glob
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from ....tools_registry.catalog import Catalog
from ....tools_registry.configuration import Configuration, ServerConfig, SignInOf, editing, servers_of
from ....tools_registry.describing.effects import Effect, proposed_effect
from ....tools_registry.errors import RegistryError, SignInNeeded
from ....tools_registry.names import test_of
from ....tools_registry.sign_in.owners import OPERATOR
from ....tools_registry.upstream.upstreams import Upstreams
from ...base.home import Home
from ...base.identity import LOCAL_IDENTITY
from ...base.terminal_escaping import one_line
from ...governance.questions import rule_text
from ...use_cases.upstream_tools.registry_state import RegistryState, opened_state
from .servers_sign_out import OwnedSignIns, home_of_owner, opened_sign_ins
from .terminal import Here, print_error

if TYPE_CHECKING:
    from ....tools_registry.models import Json
    from ....tools_registry.upstream.lenient import LeftOut
    from ....tools_registry.upstream.upstreams import Inspection, RawTool

_WIDTH = 24
_SIGN_IN_SECONDS = 300.0
_STDERR_LINES = 20


async def examined_servers(
    here: Here,
    configuration: Configuration,
    names: Sequence[str],
    *,
    who: str | None = None,
    tenant: str | None = None,
    accept: bool = False,
    ask_again: bool = False,
    sign_in: bool = False,
) -> list[dict[str, object]]:
    """Connect to servers, all at once, and return of each whether it works and what it offers; keep what they list.

    They are called with the sign-ins of a principal or a tenant, else of the operator. Raises `UsageError`.
    """
    home = home_of_owner(here, tenant)
    home.prepare()
    with opened_sign_ins(home, here.settings, who) as owned, opened_state(home, here.settings.database_url) as state:
        if who is not None or tenant is not None:
            owned.owner(configuration.server(names[0]))
        folder = home.operators_registry
        async with Upstreams(configuration, state=folder, pins=state.pins, sign_for=owned.sign_ins.signs) as upstreams:
            if ask_again:
                for name in names:
                    await upstreams.ask_again(name)
            examination = _Examination(configuration, home, state, owned, upstreams, accept, sign_in)
            return list(await asyncio.gather(*map(examination.of, names)))


def standing_servers(here: Here, configuration: Configuration) -> dict[str, dict[str, Json]]:
    """Return how each server stands as far as is known without connecting, see `UpstreamStatus.as_json`."""
    home = here.home
    with opened_state(home, here.settings.database_url) as state:
        catalog = Catalog.load(home.tools, state.lists, configuration.servers)
        upstreams = Upstreams(configuration, state=home.operators_registry, pins=state.pins)
        return {
            name: replace(
                status, reason=configuration.problems.get(name, status.reason), left_out=catalog.left_out(name)
            ).as_json(configured_at(home))
            for name, status in asyncio.run(upstreams.statuses()).items()
        }


def configured_at(home: Home) -> float | None:
    """Return when `mcp.json` was last written, in seconds since 1970."""
    try:
        return home.servers_file.stat().st_mtime
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Examination:
    """What servers are examined with."""

    configuration: Configuration
    home: Home
    state: RegistryState
    owned: OwnedSignIns
    upstreams: Upstreams
    accept: bool
    sign_in: bool

    async def of(self, name: str) -> dict[str, object]:
        """Return what is found of one server."""
        began = time.monotonic()
        inspection: Inspection | None = None
        error: str | None = None
        stderr = ""
        try:
            inspection = await self._inspected(self.configuration.server(name))
        except RegistryError as failure:
            error = failure.for_operator.removesuffix(f" See {test_of(name)}.")
            await asyncio.sleep(0)  # so that the last of the server's stderr is read
            stderr = "\n".join(self.upstreams.stderr_of(name).splitlines()[-_STDERR_LINES:])
        report: dict[str, object] = {}
        left_out: Sequence[LeftOut] = ()
        if inspection is not None:
            config = self.configuration.server(name)
            report = _inspection_report(inspection, config, accepted=self.accept)
            left_out = inspection.left_out
            if self.accept or not inspection.quarantined:
                left_out = await asyncio.to_thread(self._remember, config, inspection)
            else:
                error = (
                    f"The server {name!r} is quarantined: what it says about {', '.join(inspection.quarantined)} "
                    f"changed. Read it, and accept it with `sealab servers test {shlex.quote(name)} --accept`."
                )
        status = replace((await self.upstreams.statuses())[name], reason=error or "", left_out=tuple(left_out))
        return {
            "name": name,
            "ok": error is None,
            "error": error,
            **status.as_json(configured_at(self.home)),
            "milliseconds": round((time.monotonic() - began) * 1000, 1),
            "stderr": stderr or self.upstreams.stderr_of(name)[-4000:],
            "always_approved": [
                rule_text(tool, each.arguments, each.limits)
                for tool, rules in sorted((await self.upstreams.approved(name)).items())
                for each in rules
            ],
            **report,
        }

    async def _inspected(self, config: ServerConfig) -> Inspection:
        """Connect to a server, with a user who signs in where that is needed. Raises `RegistryError`."""
        from ...governance.sign_ins.signing_in import signed_in_here

        is_owned = config.sign_in is not SignInOf.OPERATOR and config.token_exchange is None
        owner = self.owned.owner(config) if is_owned else OPERATOR
        look = partial(self.upstreams.accept if self.accept else self.upstreams.inspect, config.name, owner)
        try:
            return await look()
        except SignInNeeded as needed:
            if not self.sign_in or (owner == OPERATOR and config.sign_in is not SignInOf.OPERATOR):
                raise
            show = partial(_show, config.name)
            principal = LOCAL_IDENTITY.principal if owner == OPERATOR else self.owned.principal
            await signed_in_here(self.owned.sign_ins, config, owner, show, principal=principal, scope=needed.scope)
            return await look()

    def _remember(self, config: ServerConfig, inspection: Inspection) -> tuple[LeftOut, ...]:
        """Keep what a server listed, so that its tools are found without asking it again; return what is left out."""
        permitted = [tool for tool in inspection.tools if config.permits(str(tool["name"]))]
        catalog = Catalog(self.home.tools, self.state.lists, {config.name: config})
        catalog.replace_server(config.name, permitted, inspection.info.version, inspection.left_out)
        return catalog.left_out(config.name)


async def _show(name: str, address: str) -> None:
    print_error(f"Open this address to sign in to {name}, within {_SIGN_IN_SECONDS / 60:g} minutes:\n\n{address}\n")


def _inspection_report(inspection: Inspection, config: ServerConfig, *, accepted: bool) -> dict[str, object]:
    info, seen = inspection.info, inspection.seen
    return {
        "server": {"name": info.name, "version": info.version},
        "protocol": info.protocol,
        "instructions": info.instructions,
        "tool_count": len(inspection.tools),
        "tools": [
            {
                "name": tool["name"],
                "description": tool["description"],
                "flags": list(inspection.flags.get(str(tool["name"]), ())),
                **_effect(tool, config, changed=tool["name"] in inspection.quarantined),
            }
            for tool in inspection.tools
        ],
        "new": list(seen.new),
        "changed": list(seen.changed),
        "removed": list(seen.removed),
        "quarantined": [] if accepted else list(inspection.quarantined),
        "accepted": list(inspection.quarantined) if accepted else [],
        "pinned": accepted,
    }


def _effect(tool: RawTool, config: ServerConfig, *, changed: bool) -> dict[str, object]:
    """Return what a tool does, `read` or `write`, and by whose word: that of the operator, the server or a proposal.

    Of a tool whose description changed, the operator's word that it only reads was given for another description.
    """
    name, annotations = str(tool["name"]), tool.get("annotations")
    said = config.says_reads(name)
    by = "operator"
    if said is None and isinstance(annotations, dict) and isinstance(annotations.get("readOnlyHint"), bool):
        said, by = annotations["readOnlyHint"], "server"
    if said is not None and not (said and by == "operator" and changed):
        return {"effect": (Effect.READ if said else Effect.WRITE).value, "said_by": by}
    schema = tool.get("input_schema")
    effect = proposed_effect(name, str(tool["description"]), schema if isinstance(schema, dict) else {})
    return {"effect": effect.value, "said_by": "proposal"}


def classify(home: Home, server: str, tested: dict[str, object]) -> None:
    """Write what was proposed of a server's tools into its entry in `mcp.json`, as the operator's word."""
    with editing(home.servers_file) as document:
        entry = servers_of(document, home.servers_file).get(server)
        proposed = proposed_effects(tested)
        if not isinstance(entry, dict) or not proposed:
            return
        for key, effect in (("reads", "read"), ("writes", "write")):
            written = [each for each in entry.get(key) or () if each not in proposed]
            written += [name for name, each in proposed.items() if each == effect]
            if written or key in entry:
                entry[key] = written


def proposed_effects(tested: dict[str, object]) -> dict[str, str]:
    """Return what is proposed of tools, by their names as patterns that fit these alone."""
    tools = tested.get("tools")
    return {
        glob.escape(tool["name"]): tool["effect"]
        for tool in (tools if isinstance(tools, list) else ())
        if tool["said_by"] == "proposal"
    }


def print_left_out(tested: Mapping[str, object]) -> None:
    """Print which tools of a server cannot be offered, and why."""
    for each in cast("list[dict[str, str]]", tested["left_out"]):
        print(f"{'':<{_WIDTH}} left out: {one_line(each['tool'])}: {one_line(each['reason'])}")


def print_tested(tested: dict[str, object]) -> None:
    """Print what was found of one server."""
    name = tested["name"]
    if tested["ok"]:
        server = tested["server"]
        assert isinstance(server, dict)
        print(
            f"{name:<{_WIDTH}} ok: {server['name']} {server['version']}, protocol {tested['protocol']}, "
            f"{tested['tool_count']} tools, {tested['milliseconds']} ms"
        )
    else:
        print(f"{name:<{_WIDTH}} {tested['error']}")
        if tested["stderr"]:
            print("\n".join(f"{'':<{_WIDTH}} stderr: {line}" for line in str(tested["stderr"]).splitlines()))
    if tested.get("protocol") == "OpenAPI" and tested["instructions"]:
        print(f"{'':<{_WIDTH}} {tested['instructions']}")
    print_left_out(tested)
    for what in ("new", "changed", "removed", "accepted", "always_approved"):
        names = tested.get(what)
        if isinstance(names, list) and names:
            print(f"{'':<{_WIDTH}} {what.replace('_', ' ')}: {', '.join(names)}")
    proposed = proposed_effects(tested)
    for effect in ("read", "write"):
        names = [each for each, proposal in proposed.items() if proposal == effect]
        if names:
            print(f"{'':<{_WIDTH}} {'taken' if tested.get('pinned') else 'proposed'} as {effect}: {', '.join(names)}")
    if proposed and tested["ok"] and not tested.get("pinned"):
        print(
            f"{'':<{_WIDTH}} Its server does not say what these do. "
            f'`sealab servers test {shlex.quote(str(name))} --accept` takes the proposals; "reads" and "writes" in '
            "mcp.json say otherwise."
        )
    tools, quarantined = tested.get("tools"), tested.get("quarantined")
    for tool in tools if isinstance(tools, list) else ():
        for flag in tool["flags"]:
            print(f"{'':<{_WIDTH}} {tool['name']} {flag}")
        if isinstance(quarantined, list) and tool["name"] in quarantined:
            print(f"{'':<{_WIDTH}} {tool['name']} now says: {tool['description']}")
