"""`sealab doctor`: says which isolation layers this machine offers, and which a real worker had switched on."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, NotRequired

from typing_extensions import TypedDict

from ....sandbox import confine
from ....sandbox.errors import LevelMissing, SandboxError
from ....sandbox.job import Isolation, Job, Limits
from ....sandbox.python_versions import require_walked
from ....skills_db.engine import place_of
from ....skills_db.errors import SkillsDbError
from ....skills_db.file_check import damage_of, damaged
from ....skills_db.replicas import ReplicaStore
from ....workspace.errors import WorkspaceError
from ...base.database import HomeDatabase, database_of
from ...base.errors import Exit, ServerError, SettingsError
from ...base.home import Home
from ...base.notices.readiness import describe_servers
from ...base.settings import Settings
from ...base.storage.opening import bucket_of, shown_folder
from ...governance.policy.policy_file import PolicyFile, path_of
from ...privacy.of_home import operators_key
from ...use_cases.managed_python.environment import current
from ...use_cases.managed_python.full_python import BELOW_KERNEL, READ_ONLY
from ...use_cases.replicas.replica_keys import ReplicaKeys
from ...use_cases.runs.placement.routing import writes_workspace
from .command import Command
from .data import DataStatus, status_of
from .opened import running_with
from .terminal import Here, Output

if TYPE_CHECKING:
    from ...app import App

_LANGUAGE = "language"
_NO_FOLDERS = (
    "The workspace is read-only for full Python: {why}. Have {folder} be a folder that the user who runs sealab can "
    "write to, on a disk with room. A server that runs tries again with its later runs."
)
_OVERLAY = (
    "The workspace is read-only for full Python. Use Linux 5.11 or newer, and a home on ext4, xfs, btrfs or tmpfs, so "
    "that the workspace can be overlaid."
)


class LayerState(TypedDict):
    """One layer: whether the machine offers it, whether a worker has it on, what was seen, and what to do."""

    layer: str
    available: bool
    active: bool
    why: str
    do: str


class IsolationFinding(TypedDict):
    """One isolation that the operator allows: the layers that a worker had on, or why code cannot run in it.

    What cannot run is not `offered`.
    """

    isolation: str
    offered: bool
    layers: list[str]
    problem: str | None
    workspace: NotRequired[str]
    """Of `process`, whether code finds the workspace `writable` or `read-only`."""
    do: NotRequired[str]
    """What makes a workspace writable that is read-only."""


class PrivacyFinding(TypedDict):
    """What is done about personal data, and how it is looked for."""

    privacy: str
    mode: str


class PlaceFinding(TypedDict):
    """Where skills and the vault are kept, or the files, whether that can be used, and what was seen of it."""

    place: str
    ok: bool
    note: str


class PolicyFinding(TypedDict):
    """The policy that POLICY names, if any: how many rules it has, and what keeps it from being used."""

    policy: str | None
    rules: int
    problem: str | None


class Findings(TypedDict):
    """Every layer and every isolation allowed; `reached` says that the required level is, and that code ran under it.

    `ok` says besides that every isolation that is set up runs, and that the database is whole and can be reached.

    `layers` speak of the isolation that `auto` begins with. One that is allowed but not set up is not a problem.
    """

    ok: bool
    reached: bool
    level: str
    required_level: str
    layers: list[LayerState]
    isolations: list[IsolationFinding]
    privacy: PrivacyFinding
    database: PlaceFinding
    files: PlaceFinding
    policy: PolicyFinding
    python: DataStatus
    problem: str | None


def _doctor(here: Here) -> Output:
    """Check which isolation layers work on this machine."""
    findings = examined(here.settings, here.home)
    code = Exit.FAILED if not findings["reached"] else Exit.OK if findings["ok"] else Exit.REFUSED
    return Output(findings, as_lines(findings), code)


doctor = Command(
    _doctor,
    epilog="Exit codes: 0 the required level is reached and all works, 1 it is not reached, 2 wrong usage, 3 it is "
    "reached, but something else does not work.",
)


def examined(settings: Settings, home: Home) -> Findings:
    """Try every layer, then run one line of code in a real worker and see what it has on.

    Call it from a process with one thread and no event loop: trying a layer forks.
    """
    probe = confine.probe()
    isolations, problem = asyncio.run(_try_isolations(settings, home, kernel=probe.reaches(confine.Level.KERNEL)))
    reached = probe.reaches(settings.required_level) and bool(isolations) and isolations[0]["offered"]
    database = _database(settings, home)
    files = _files(settings, home)
    policy = _policy(settings, home)
    problem = policy["problem"] or problem or (None if database["ok"] else database["note"])
    problem = problem or (None if files["ok"] else files["note"])
    active = isolations[0]["layers"] if isolations else []
    found = [
        LayerState(
            layer=finding.layer,
            available=finding.available,
            active=finding.layer in active,
            why=finding.detail,
            do=finding.remedy,
        )
        for finding in probe.findings
    ]
    known = {finding["layer"] for finding in found}
    own = [_language(active=_LANGUAGE in active)]
    own += [
        LayerState(layer=layer, available=True, active=True, why="a worker of this server has it on", do="")
        for layer in active
        if layer not in {*known, _LANGUAGE}
    ]
    return Findings(
        ok=problem is None,
        reached=reached,
        level=probe.level.value,
        required_level=settings.required_level.value,
        layers=own + found,
        isolations=isolations,
        privacy=PrivacyFinding(privacy=settings.privacy.value, mode=settings.privacy_mode.value),
        database=database,
        files=files,
        policy=policy,
        python=status_of(current(home.python), home, settings),
        problem=problem,
    )


def _language(*, active: bool) -> LayerState:
    version = platform.python_version()
    try:
        require_walked()
    except LevelMissing as missing:
        why, do = str(missing).split(". ", 1)
        return LayerState(layer=_LANGUAGE, available=False, active=active, why=why, do=do)
    why = f"the dialect was examined on this version of Python ({version})"
    return LayerState(layer=_LANGUAGE, available=True, active=active, why=why, do="")


def _policy(settings: Settings, home: Home) -> PolicyFinding:
    path = path_of(settings, home)
    if path is None:
        return PolicyFinding(policy=None, rules=0, problem=None)
    try:
        rulebook = PolicyFile(path).rulebook
    except SettingsError as error:
        return PolicyFinding(policy=str(path), rules=0, problem=str(error))
    return PolicyFinding(policy=str(path), rules=0 if rulebook is None else len(rulebook.rules), problem=None)


def _files(settings: Settings, home: Home) -> PlaceFinding:
    """Ask the object store for a page; of a folder ask nothing."""
    try:
        bucket = bucket_of(settings, home)
        if bucket is None:
            return PlaceFinding(place=str(shown_folder(settings, home)), ok=True, note="a folder")
        bucket.top()
    except (SettingsError, WorkspaceError) as error:
        return PlaceFinding(place=settings.workspace_url or "", ok=False, note=str(error))
    return PlaceFinding(place=str(bucket.url), ok=True, note="it answers")


def _database(settings: Settings, home: Home) -> PlaceFinding:
    """Look through the whole of a file, however long that takes, or ask the server."""
    place = "The database"
    try:
        place, file = place_of(settings.database_url, home.root)
        if file is not None:
            if not file.exists():
                return PlaceFinding(place=place, ok=True, note="there is none yet; it is made when it is needed")
            if found := damage_of(file):
                return PlaceFinding(place=place, ok=False, note=str(damaged(place, found)))
        database = database_of(settings.database_url, home)
        note = "it is whole"
        try:
            database()
            if file is None:
                note = ". ".join(("it answers", *describe_servers(database)))
                if _has_another_key(settings, home, database):
                    problem = "Its servers have another VAULT_KEY than this program. Give all the same."
                    return PlaceFinding(place=place, ok=False, note=problem)
        finally:
            database.close()
    except SkillsDbError as error:
        return PlaceFinding(place=place, ok=False, note=str(error))
    return PlaceFinding(place=place, ok=True, note=note)


def _has_another_key(settings: Settings, home: Home, database: HomeDatabase) -> bool:
    """Return whether a server that uses the database now has another master key than this program was given."""
    alive = [each for each in ReplicaStore(database()).all() if each.is_alive]
    if not alive or settings.vault_key is None:
        return False
    keys = ReplicaKeys(operators_key(settings, home.root, database)())
    return not all(keys.marked(each) for each in alive)


async def _try_isolations(settings: Settings, home: Home, *, kernel: bool) -> tuple[list[IsolationFinding], str | None]:
    """Run one line of code at every isolation offered, the default first; say too what keeps code from running."""
    found: list[IsolationFinding] = []
    failed: str | None = None
    try:
        async with running_with(settings, home) as app:
            full_python = app.executor.offer.full_python
            if not kernel:
                full_python.cannot(BELOW_KERNEL)
            for isolation in app.pools.offered:
                layers, problem = await _try(app, isolation)
                failed = failed or problem
                finding = IsolationFinding(
                    isolation=isolation.value, offered=problem is None, layers=list(layers), problem=problem
                )
                if isolation is Isolation.PROCESS and problem is None:
                    is_writable = await writes_workspace(app.pools, app.settings)
                    finding["workspace"] = "writable" if is_writable else "read-only"
                    if not is_writable:
                        why = app.pools.stats()[isolation].read_only
                        finding["do"] = _OVERLAY if why is None else _NO_FOLDERS.format(why=why, folder=home.scratch)
                        if full_python.is_default:
                            full_python.cannot(READ_ONLY)
                            finding["offered"], finding["problem"] = False, READ_ONLY if why is None else finding["do"]
                found.append(finding)
            missing = dict(app.executor.offer.missing)
            if full_python.why_not() == BELOW_KERNEL:
                missing[Isolation.PROCESS] = BELOW_KERNEL
            for isolation, reason in missing.items():
                found.append(IsolationFinding(isolation=isolation.value, offered=False, layers=[], problem=reason))
    except (SandboxError, ServerError) as error:
        return found, str(error)
    return found, failed


async def _try(app: App, isolation: Isolation) -> tuple[tuple[str, ...], str | None]:
    """Return the layers that a worker had on, and what kept it from running, or None."""
    limits = Limits(app.settings.timeout_seconds, app.settings.memory_mb, app.settings.pids_max)
    try:
        outcome = await app.pools.run(Job("6 * 7", limits=limits, isolation=isolation), _no_calls)
    except SandboxError as error:
        return (), str(error)
    if outcome.result != 42:  # noqa: PLR2004 - 6 * 7
        reason = outcome.error.message if outcome.error else outcome.status.value
        return outcome.layers, f"A worker could not run 6 * 7: {reason}"
    return outcome.layers, None


async def _no_calls(name: str, _arguments: object) -> None:
    raise SandboxError(f"{name} was called by code that calls nothing.")


def as_lines(findings: Findings) -> Iterator[str]:
    """Format the findings for a terminal."""

    def line(what: str, state: str, note: str = "") -> str:
        return f"{what:<14}{state:<24}{note}" if note else f"{what:<14}{state}"

    def remedy(action: str) -> str:
        return f"{'':<14}to do: {action}"

    for layer in findings["layers"]:
        state = "active" if layer["active"] else "available, not active" if layer["available"] else "not available"
        yield line(layer["layer"], state, layer["why"])
        if layer["do"] and not layer["active"]:
            yield remedy(layer["do"])
    for isolation in findings["isolations"]:
        state = "offered" if isolation["offered"] else "not offered"
        yield line(isolation["isolation"], state, isolation["problem"] or " ".join(isolation["layers"]))
        if "do" in isolation:
            yield remedy(isolation["do"])
    privacy = findings["privacy"]
    yield line("privacy", "off" if privacy["privacy"] == "off" else f"{privacy['privacy']}, {privacy['mode']}")
    for what, place in (("files", findings["files"]), ("database", findings["database"])):
        yield line(what, "usable" if place["ok"] else "not usable", place["note"])
    policy = findings["policy"]
    if policy["policy"] is not None:
        rules = f"{policy['rules']} rules of {policy['policy']}"
        yield line("policy", "in force" if policy["problem"] is None else "not usable", policy["problem"] or rules)
    python = findings["python"]
    if python["there"]:
        held = ", ".join(f"{name} {version}" for name, version in python["packages"].items())
        state = "offered" if python["offered"] else "not offered"
        yield line("full python", state, f"Python {python['python']}, {python['megabytes']} MB: {held}")
        if python["outdated"] or not python["offered"] or python["problem"]:
            yield remedy(python["note"])
    elif python["problem"]:
        yield line("full python", "not set up", python["problem"])
    yield f"level: {findings['level']} (required: {findings['required_level']})"
    yield findings["problem"] or "ok"
