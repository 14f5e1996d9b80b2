"""Judges what was observed of one case by the oracle of its record, and by what must hold after every case."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from cases import Case, Mode
from kinds import kinds_of

MARKER = "PWNED:"
OUTPUT_CAP_MB = 16
"""What a run may print, `Limits.output_bytes_max`; a corpus says "4x cap" of it."""
_CONTRACT_KEYS = {
    *("run_id", "success", "status", "result", "output", "error", "execution_time_ms", "tool_calls", "truncated"),
    *("isolation", "layers", "files", "images", "session_ended"),
}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ENVIRONMENT_ALLOWED = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONHASHSEED"}
_ENVIRONMENT_PATTERN = re.compile(
    r"(OPENBLAS|OMP|MKL|BLIS|NUMEXPR|VECLIB|RAYON)_\w*NUM\w*|MPL\w+|POLARS_(SKIP_CPU_CHECK|TEMP_DIR|OOC_SPILL_DIR|MAX_THREADS|OVERRIDE_TOTAL_MEMORY_MB)"
    r"|LOKY_MAX_CPU_COUNT|SLURM_(CPUS_ON|MEM_PER)_NODE|(JE_ARROW|_RJEM|DUCKDB_JE)_MALLOC_CONF"
)
"""What tells libraries of native code how many threads to make, how much to hold, and where to write."""
_LISTING_SECONDS = 2.0


class Held(StrEnum):
    """How a case came out. SETTLED: it contradicts what SECURITY.md says, which is kept."""

    HELD = "held"
    UNRELATED = "held, unrelated"
    SETTLED = "settled"
    BROKE = "broke"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Verdict:
    """One case in one mode: how it came out, and why; `evidence` for what broke."""

    case: Case
    mode: Mode
    held: Held
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Seen:
    """What one case did, as far as it can be seen from outside.

    `report` is the run report, `tool_error` the text of a refused call. Sizes are in MB, times in seconds. `failures`
    are breaches that need no oracle: a dead server, a process or file left behind, a canary changed.
    """

    report: Mapping[str, Any] | None = None
    tool_error: str | None = None
    line: bytes = b""
    seconds: float = 0.0
    timeout_seconds: float = 5.0
    memory_mb: float = 256.0
    log: str = ""
    stray: Sequence[bytes] = ()
    failures: tuple[str, ...] = ()
    marker_file: bool = False
    marker_file_grows: bool = False
    server_growth_mb: float = 0.0
    worker_peak_mb: float = 0.0
    descriptors_more: int = 0
    workspace_bytes: int = 0
    listing_seconds: float = 0.0
    slowness: float = 1.0
    ipc_changed: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    then: Seen | None = None

    @property
    def kinds(self) -> frozenset[str]:
        return kinds_of(self.report, self.tool_error)

    @property
    def error(self) -> Mapping[str, Any]:
        return (self.report or {}).get("error") or {}

    @property
    def value(self) -> Any:
        return (self.report or {}).get("result")

    def all_text(self) -> str:
        """Everything that came out anywhere."""
        own = self.line.decode("utf-8", "replace") + self.log + b"".join(self.stray).decode("utf-8", "replace")
        own += json.dumps(self.facts, default=str)
        return own + (self.then.all_text() if self.then else "")

    def told(self) -> str:
        """Return the outcome in a few words."""
        if self.report is None:
            return f"no report: {self.tool_error}" if self.tool_error else "no report at all"
        error = f" {self.error.get('type')}: {self.error.get('message')}" if self.error else ""
        return f"{self.report['status']}{error} result={json.dumps(self.value, default=str)[:160]}"


@dataclass(frozen=True)
class Context:
    """What a judgement needs beside what was seen: the secrets, and what is documented."""

    case: Case
    mode: Mode
    oracle: Mapping[str, Any]
    tokens: tuple[str, ...]
    allowed_calls: frozenset[int]
    offered_modules: frozenset[str]


Judge = Callable[[Seen, Context], "str | None"]
"""Says what broke, or None."""


def judge(seen: Seen, context: Context) -> Verdict:
    """Apply the oracle and what always holds."""
    case, mode = context.case, context.mode
    layer_off = mode is Mode.RAW and case.layer == "language"
    reasons = list(seen.failures)
    reasons += seen.then.failures if seen.then else ()
    if any(token in seen.all_text() for token in context.tokens):
        reasons.append("the canary token came out")
    kind = context.oracle["type"]
    if seen.marker_file and kind != "no_leftover_processes":
        reasons.append("the marker file came into being")
    if "Traceback (most recent call last)" in seen.log:
        reasons.append(f"the server logged a traceback: {seen.log.strip()[-300:]}")
    if "kinds" in context.oracle or not (layer_off and kind in _MARKER_ONLY):
        oracle = ORACLES.get(kind)
        found = f"the runner knows no oracle {kind!r}" if oracle is None else oracle(seen, context)
        reasons += [found] if found else []
    reasons += _always_of_oracle(seen, context)
    if len(reasons) == 1 and case.id in SETTLED:
        promise, shown = SETTLED[case.id]
        if seen.value == shown:
            return Verdict(case, mode, Held.SETTLED, promise, seen.seconds)
    if reasons:
        return Verdict(case, mode, Held.BROKE, f"{'; '.join(dict.fromkeys(reasons))} [{seen.told()}]", seen.seconds)
    unrelated = _unrelated(seen, context)
    if unrelated:
        return Verdict(case, mode, Held.UNRELATED, unrelated, seen.seconds)
    return Verdict(case, mode, Held.HELD, seen.told(), seen.seconds)


def _no_marker(seen: Seen, _context: Context) -> str | None:
    return f"the marker came out: {_around(MARKER, seen.all_text())}" if MARKER in seen.all_text() else None


def _nothing(_seen: Seen, _context: Context) -> str | None:
    """What the checks after every case judge already."""
    return None


def _kinds(seen: Seen, context: Context) -> str | None:
    wanted = set(context.oracle.get("kinds", ())) | ({"ok"} if context.case.may_complete else set())
    if wanted and not wanted & seen.kinds:
        return f"the kind is one of {sorted(seen.kinds)}, wanted {sorted(wanted)}"
    unwanted = set(context.oracle.get("not_kinds", ())) & seen.kinds
    return f"the kind is {sorted(unwanted)}" if unwanted else None


def _rejected(seen: Seen, context: Context) -> str | None:
    if context.oracle.get("no_signal_death") and "crash" in seen.kinds:
        return "the child died by a signal"
    return _kinds(seen, context) or _no_marker(seen, context)


def _result_equals(seen: Seen, context: Context) -> str | None:
    if seen.value != context.oracle["value"] or type(seen.value) is not type(context.oracle["value"]):
        return f"the result is {json.dumps(seen.value)[:200]}, wanted {json.dumps(context.oracle['value'])[:200]}"
    stdout = context.oracle.get("stdout_equals")
    output = (seen.report or {}).get("output")
    return f"the output is {output!r}" if stdout is not None and output != stdout else None


def _then_equals(seen: Seen, context: Context) -> str | None:
    assert seen.then is not None
    return _result_equals(seen.then, context)


def _not_success_with(seen: Seen, context: Context) -> str | None:
    report = seen.report or {}
    stale = report.get("success") and report.get("result") == context.oracle["value"]
    return "it looks like a success with a stale result" if stale else None


def _lacks(text: str, context: Context) -> str | None:
    found = [pattern for pattern in context.oracle["patterns"] if pattern in text]
    return f"the text holds {found}: {_around(found[0], text)}" if found else None


def _output_lacks(seen: Seen, context: Context) -> str | None:
    return _lacks(seen.line.decode(errors="replace"), context)


def _error_lacks(seen: Seen, context: Context) -> str | None:
    return _lacks(json.dumps(seen.error) + (seen.tool_error or ""), context)


def _error_max_bytes(seen: Seen, context: Context) -> str | None:
    size = len(json.dumps(seen.error)) + len(seen.tool_error or "")
    most = context.oracle.get("max") or context.oracle.get("max_bytes")
    return f"the error has {size} bytes" if size > most else None


def _strict_json(seen: Seen, context: Context) -> str | None:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        reply = json.loads(seen.line.decode("utf-8", "strict"), parse_constant=refuse)
        json.dumps(reply, ensure_ascii=False).encode("utf-8", "strict")
    except ValueError as error:
        return f"the reply is no strict JSON: {error}"
    if seen.report is None:
        return "there is no report"
    if context.oracle.get("envelope_unchanged") and (
        not seen.report.keys() <= _CONTRACT_KEYS or seen.report["status"] not in ("ok", "refused", "error")
    ):
        return f"the report is not as the contract says: {sorted(seen.report)}"
    return None


def _valid_reply(seen: Seen, context: Context) -> str | None:
    most = context.oracle.get("max_bytes", 2_000_000)
    if len(seen.line) > most:
        return f"the reply has {len(seen.line)} bytes"
    return _strict_json(seen, context)


def _stream_clean(seen: Seen, _context: Context) -> str | None:
    return f"lines on stdout that are no messages: {seen.stray[:2]}" if seen.stray else None


def _log_clean(seen: Seen, _context: Context) -> str | None:
    found = _CONTROL.search(seen.log)
    return f"the log holds control characters: {_around(found[0], seen.log)}" if found else None


def _fd_allowlist(seen: Seen, context: Context) -> str | None:
    if not isinstance(seen.value, list):
        return None if "crash" in seen.kinds or seen.error else "no list of descriptors came"
    beyond = [entry for entry in seen.value if entry[0] > 2]
    sockets = [entry for entry in beyond if int(entry[1], 8) & 0o170000 == 0o140000]
    others = [entry for entry in beyond if entry not in sockets]
    most = context.oracle.get("max_control", 1)
    return f"descriptors beyond the channel: {beyond}" if others or len(sockets) > most else None


def _fd_stable(seen: Seen, context: Context) -> str | None:
    more = abs(seen.descriptors_more)
    return f"the server has {seen.descriptors_more:+d} descriptors" if more > 2 else _no_marker(seen, context)


def _env_allowlist(seen: Seen, _context: Context) -> str | None:
    if not isinstance(seen.value, dict):
        return None if seen.error else "no environment came"
    odd = [name for name in seen.value if name not in _ENVIRONMENT_ALLOWED and not _ENVIRONMENT_PATTERN.fullmatch(name)]
    return f"the environment holds {odd}" if odd else None


def _confinement(seen: Seen, context: Context) -> str | None:
    if not isinstance(seen.value, list):
        return f"no self-report came: {seen.told()}"
    status, no_new_privileges, seccomp, dumpable = seen.value
    wanted = context.oracle
    odd = [
        f"no_new_privs {no_new_privileges}" if no_new_privileges != wanted.get("no_new_privs", 1) else "",
        f"seccomp {seccomp}" if seccomp != wanted.get("seccomp", 2) else "",
        f"dumpable {dumpable}" if dumpable != wanted.get("dumpable", 0) else "",
        *(f"{key} {value}" for key, value in status.items() if key.startswith("Cap") and int(value, 16)),
    ]
    return ", ".join(filter(None, odd)) or None


def _syscall_subset(seen: Seen, context: Context) -> str | None:
    beyond = sorted(set(seen.facts.get("system_calls", ())) - context.allowed_calls)
    return f"system calls beyond the allow list got through: {beyond}" if beyond else None


def _quota(seen: Seen, context: Context) -> str | None:
    most = context.oracle.get("max_bytes")
    if most is not None and seen.workspace_bytes > most:
        return f"the workspace grew to {seen.workspace_bytes} bytes"
    if seen.listing_seconds > _LISTING_SECONDS:
        return f"listing the workspace took the server {seen.listing_seconds:.1f} s of work"
    return _no_marker(seen, context)


def _output_cap(seen: Seen, context: Context) -> str | None:
    most = 4 * OUTPUT_CAP_MB
    if seen.server_growth_mb > most:
        return f"the server grew by {seen.server_growth_mb:.0f} MB, 4 x the cap is {most}"
    return _kinds(seen, context)


def _quiet(seen: Seen, _context: Context) -> str | None:
    return "the marker file still grows after the reply" if seen.marker_file_grows else None


def _second_run(seen: Seen, _context: Context) -> str | None:
    text = seen.then.all_text() if seen.then else seen.all_text()
    return f"the second run saw the first: {_around(MARKER, text)}" if MARKER in text else None


def _rpc(seen: Seen, context: Context) -> str | None:
    facts, oracle = seen.facts, context.oracle
    effects = facts.get("effects", {})
    if facts.get("ungranted"):
        return f"ungranted effects: {facts['ungranted']}"
    if sum(effects.values()) > oracle.get("max_effects", float("inf")):
        return f"{sum(effects.values())} effects, {oracle['max_effects']} are the budget"
    if facts.get("concurrency", 0) > oracle.get("max_concurrency", float("inf")):
        return f"{facts['concurrency']} calls at once"
    growth = oracle.get("server_rss_growth_max_mb", float("inf"))
    if seen.server_growth_mb > growth:
        return f"the host grew by {seen.server_growth_mb:.0f} MB"
    if "single_result" in oracle and "crash" not in seen.kinds and seen.value != oracle["single_result"]:
        return f"the result is {seen.value!r}"
    return None


def _steps(seen: Seen, _context: Context) -> str | None:
    wrong = seen.facts.get("wrong", ())
    return "; ".join(wrong) if wrong else None


SETTLED: Mapping[str, tuple[str, object]] = {
    "L-AW-18": ("the dialect has descriptors, so that __get__ runs; that is no attack", f"{MARKER}descriptor ran"),
    "L-ML-20": (
        "code may write files of its workspace, SQLite's among them, which its host writes and counts",
        f"{MARKER}sqlite file created",
    ),
    "K-FS-12": ("full Python has a scratch /tmp of its own, limited in size", f"{MARKER}['/tmp']"),
}
"""Cases, by their `id` in CORPORA, that contradict what SECURITY.md says: that, and the one result that it explains."""

ORACLES: Mapping[str, Judge] = {
    "no_marker": _no_marker,
    "no_canary": _nothing,
    "no_marker_no_canary": _no_marker,
    "validate_only_no_marker": _no_marker,
    "marker_file_absent": _nothing,
    "canary_unchanged": _nothing,
    "nothing_outside": _nothing,
    "limit": _kinds,
    "kind_in": _kinds,
    "rejected": _rejected,
    "result_equals": _result_equals,
    "then_equals": _then_equals,
    "not_success_with": _not_success_with,
    "output_lacks": _output_lacks,
    "error_lacks": _error_lacks,
    "error_max_bytes": _error_max_bytes,
    "strict_json": _strict_json,
    "valid_reply": _valid_reply,
    "protocol_stream_clean": _stream_clean,
    "log_clean": _log_clean,
    "fd_allowlist": _fd_allowlist,
    "fd_stable": _fd_stable,
    "env_allowlist": _env_allowlist,
    "confinement": _confinement,
    "syscall_subset": _syscall_subset,
    "disk_quota": _quota,
    "inode_quota": _quota,
    "depth_limit": _quota,
    "output_cap": _output_cap,
    "no_leftover_processes": _quiet,
    "no_marker_on_second_run": _second_run,
    "rpc": _rpc,
    "steps": _steps,
    "fail_closed": _steps,
    "report_only": _nothing,
}
_MARKER_ONLY = {"no_marker", "no_marker_no_canary", "rejected", "result_equals", "validate_only_no_marker"}
"""Oracles by which a language case is not judged once the language layer is off."""


def _always_of_oracle(seen: Seen, context: Context) -> list[str]:
    """Judge what any oracle may ask for beside its type."""
    oracle = context.oracle
    found = []
    slack = oracle.get("wall_slack_s")
    if slack is not None and seen.seconds > seen.timeout_seconds + slack * seen.slowness:
        limit = f"{seen.timeout_seconds:g} s + {slack:g} s, on a machine that is {seen.slowness:.1f} times as slow"
        found.append(f"it took {seen.seconds:.1f} s, the limit is {limit}")
    rss_slack = oracle.get("rss_slack")
    if rss_slack is not None and seen.worker_peak_mb > seen.memory_mb * (1 + rss_slack):
        found.append(f"the child held {seen.worker_peak_mb:.0f} MB, the limit is {seen.memory_mb:g} MB")
    if oracle.get("ipcs_unchanged") and seen.ipc_changed:
        found.append(f"IPC objects came or went: {seen.ipc_changed}")
    return found


def _unrelated(seen: Seen, context: Context) -> str | None:
    """Return why a case held for a reason that is not its own: a name that is missing, a module that is not offered."""
    if context.mode is Mode.RAW or context.case.layer != "language" or context.case.severity == "control":
        return None
    kind, message = seen.error.get("type"), seen.error.get("message") or ""
    needed = context.case.needs.get("modules", ())
    missing = [name for name in needed if name not in context.offered_modules]
    if kind in ("ImportError", "ModuleNotFoundError") and context.case.category != "lang.import" and missing:
        return f"{missing[0]} is not offered"
    if kind == "NameError" and context.case.category not in ("lang.builtins", "lang.guard-shadow"):
        return message.splitlines()[0][:120]
    return None


def with_failures(seen: Seen, *more: str) -> Seen:
    return replace(seen, failures=(*seen.failures, *more))


def _around(what: str, text: str) -> str:
    place = text.find(what)
    return repr(text[max(0, place - 60) : place + len(what) + 100])
