from __future__ import annotations

import re
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealab.sandbox.job import Isolation
from sealab.server.base.errors import SettingsError
from sealab.server.base.settings import _NAMES, Settings, Surface, _parsed, read_settings
from sealab.server.cli import main
from sealab.server.use_cases.runs.isolations import allowed_isolations


def read(tmp_path: Path, file: str = "", command_line: dict[str, object] | None = None, **environment: str) -> Settings:
    (tmp_path / "sealab.toml").write_text(file, encoding="utf-8")
    return read_settings(
        file=tmp_path / "sealab.toml",
        file_required=False,
        environment=environment,
        command_line=command_line or {},
    )


def test_with_nothing_set_the_defaults_of_the_contract_hold(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert (settings.timeout_seconds, settings.max_timeout_seconds) == (30, 120)
    assert (settings.memory_mb, settings.max_memory_mb, settings.pids_max) == (500, 2000, 64)
    assert settings.allowed_isolation is None
    assert allowed_isolations(settings) == (Isolation.RESTRICTED, Isolation.CONTAINER)
    assert (settings.workspace_quota_mb, settings.output_max_chars, settings.tool_calls_max) == (1000, 20_000, 1000)
    assert (settings.runs_kept, settings.workers_spare, settings.workers_max) == (200, 2, 8)
    assert (settings.sessions_max, settings.session_idle_seconds) == (8, 600)
    assert settings.drain_seconds == 30
    assert (settings.privacy, settings.surface) == ("tools", "full")


def test_the_file_wins_over_the_defaults_the_environment_over_the_file_the_command_line_over_all(
    tmp_path: Path,
) -> None:
    file = 'SURFACE = "code"\nTIMEOUT_SECONDS = 5\nMEMORY_MB = 64\n'
    assert read(tmp_path, file).surface is Surface.CODE
    both = read(tmp_path, file, SEALAB_TIMEOUT_SECONDS="6.5", SEALAB_SURFACE="full")
    assert (both.timeout_seconds, both.memory_mb, both.surface) == (6.5, 64, Surface.FULL)
    assert read(tmp_path, file, {"surface": "code"}, SEALAB_SURFACE="full").surface is Surface.CODE
    assert read(tmp_path, file, {"surface": None}, SEALAB_SURFACE="full").surface is Surface.FULL


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("TIMEOUT_SECONDS", "soon"),
        ("TIMEOUT_SECONDS", "nan"),
        ("TIMEOUT_SECONDS", "inf"),
        ("MAX_TIMEOUT_SECONDS", "0"),
        ("MEMORY_MB", "1.5"),
        ("MAX_MEMORY_MB", "-1"),
        ("PIDS_MAX", "many"),
        ("ALLOWED_ISOLATION", "restricted,none"),
        ("ALLOWED_ISOLATION", ""),
        ("REQUIRED_LEVEL", "high"),
        ("WORKSPACE_QUOTA_MB", "1e3"),
        ("OUTPUT_MAX_CHARS", "0"),
        ("TOOL_CALLS_MAX", "-1"),
        ("RUNS_KEPT", "0"),
        ("DRAIN_SECONDS", "-1"),
        ("HTTP_SESSIONS_MAX", "0"),
        ("HTTP_BODIES_MB", "15"),
        ("HTTP_RECEIVE_SECONDS", "0"),
        ("WORKERS_SPARE", "x"),
        ("WORKERS_MAX", "0"),
        ("SESSIONS_MAX", "x"),
        ("SESSION_IDLE_SECONDS", "0"),
        ("PRIVACY", "on"),
        ("RESTORE_TO_MODEL", "perhaps"),
        ("SURFACE", "half"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_an_error_that_names_the_key_from_the_environment_and_from_the_file(
    tmp_path: Path, key: str, value: str
) -> None:
    with pytest.raises(SettingsError, match=f"SEALAB_{key} is .*which cannot be used"):
        read(tmp_path, **{f"SEALAB_{key}": value})
    with pytest.raises(SettingsError, match=f"^{key} in .*sealab.toml"):
        read(tmp_path, f'{key} = "{value}"')


def test_an_unknown_key_is_an_error_that_names_it_and_the_nearest_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"SEALAB_TIMEOUT_SECOND is not a setting\. Did you mean TIMEOUT_SECONDS"):
        read(tmp_path, SEALAB_TIMEOUT_SECOND="3")
    with pytest.raises(SettingsError, match=r"timeout in .*sealab\.toml is not a setting"):
        read(tmp_path, "timeout = 3")


def test_the_home_and_variables_of_others_are_no_settings(tmp_path: Path) -> None:
    assert read(tmp_path, SEALAB_HOME="/somewhere", SEALABX="1", PATH="/bin") == Settings()


def test_a_setting_without_its_prefix_is_named_at_start_unless_other_programs_use_the_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PRIVACY", "TIMEOUT_SECONDS", "DATABASE_URL", "LOG_LEVEL", "SEALAB_TIMEOUT_SECONDS"):
        monkeypatch.setenv(name, "10")
    main(["skills", "list", "--home", str(tmp_path)])
    told = [line for line in capsys.readouterr().err.splitlines() if "environment" in line]
    assert told == ["sealab: PRIVACY in the environment is not read. Set SEALAB_PRIVACY, or remove it."]


def test_lowering_a_maximum_lowers_the_default_below_it_but_not_a_value_that_was_chosen(tmp_path: Path) -> None:
    lowered = read(tmp_path, SEALAB_MAX_TIMEOUT_SECONDS="2", SEALAB_MAX_MEMORY_MB="100", SEALAB_WORKERS_MAX="1")
    assert (lowered.timeout_seconds, lowered.memory_mb, lowered.workers_spare) == (2, 100, 1)
    with pytest.raises(SettingsError, match="TIMEOUT_SECONDS is 5, which is above MAX_TIMEOUT_SECONDS, 2"):
        read(tmp_path, SEALAB_MAX_TIMEOUT_SECONDS="2", SEALAB_TIMEOUT_SECONDS="5")


@pytest.mark.parametrize("usual", ["TIMEOUT_SECONDS", "MEMORY_MB", "WORKERS_SPARE"])
def test_a_default_that_is_just_above_its_maximum_stops_the_start(tmp_path: Path, usual: str) -> None:
    most = "WORKERS_MAX" if usual == "WORKERS_SPARE" else f"MAX_{usual}"
    read(tmp_path, **{f"SEALAB_{usual}": "10", f"SEALAB_{most}": "10"})
    with pytest.raises(SettingsError, match=f"{usual} is 11, which is above {most}, 10"):
        read(tmp_path, **{f"SEALAB_{usual}": "11", f"SEALAB_{most}": "10"})


def test_a_share_of_the_processors_is_a_number_and_unlimited_unless_it_is_set(tmp_path: Path) -> None:
    assert read(tmp_path).cpus is None
    assert read(tmp_path, SEALAB_CPUS="1.5").cpus == 1.5
    assert read(tmp_path, "CPUS = 2").cpus == 2
    for share in ("0", "-1", "0.001", "nan", "all"):
        with pytest.raises(SettingsError, match="SEALAB_CPUS"):
            read(tmp_path, SEALAB_CPUS=share)


def test_a_settings_file_that_was_named_must_be_there_and_be_toml(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(SettingsError, match="There is no settings file"):
        read_settings(file=missing, file_required=True, environment={}, command_line={})
    assert read_settings(file=missing, file_required=False, environment={}, command_line={}) == Settings()
    for text, said in (
        ("TIMEOUT_SECONDS =", "not valid TOML"),
        ("TIMEOUT_SECONDS = " + "9" * 5000, "too many digits"),
        ("PRIVACY_ALLOW = " + "[" * 100_000, "nested too deeply"),
    ):
        with pytest.raises(SettingsError, match=said):
            read(tmp_path, text)


def test_a_list_in_the_file_is_as_good_as_commas_in_the_environment(tmp_path: Path) -> None:
    expected = (Isolation.RESTRICTED, Isolation.PROCESS)
    assert read(tmp_path, 'ALLOWED_ISOLATION = ["restricted", "process"]').allowed_isolation == expected
    assert read(tmp_path, SEALAB_ALLOWED_ISOLATION="restricted, process").allowed_isolation == expected


@pytest.mark.parametrize("key", ["VAULT_KEY", "DATABASE_URL"])
def test_a_secret_stands_in_no_message_and_no_representation(tmp_path: Path, key: str) -> None:
    assert "s3cret" not in repr(read(tmp_path, **{f"SEALAB_{key}": "postgresql://u:s3cret@h/d"}))
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, f'{key} = "s3cret\\u0000"')
    assert "s3cret" not in str(refused.value)
    assert "Give a text that is not empty." in str(refused.value)


def test_every_default_is_a_value_that_may_be_given(tmp_path: Path) -> None:
    for name, value in asdict(Settings()).items():
        if value is not None:
            listed = list(value) if isinstance(value, tuple) else value
            assert getattr(read(tmp_path, command_line={name: listed}), name) == value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.just("EMAIL"), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.sampled_from(sorted(_NAMES)), VALUES)
@example("MEMORY_MB", "9" * 5000)
@example("TIMEOUT_SECONDS", 10**400)
@example("PRIVACY_PATTERNS", {"OWN": "a{99999999999999999999}"})
@example("PRIVACY_PATTERNS", {"OWN": "(" * 10_000 + ")" * 10_000})
@example("PRIVACY_PATTERNS", "[" * 100_000)
@example("PRIVACY_THRESHOLDS", {"EMAIL": "x"})
def test_any_value_is_read_or_refused_with_what_to_give_instead(key: str, value: object) -> None:
    said = ""
    try:
        _parsed(_NAMES[key], key, value)
    except SettingsError as refused:
        said = str(refused)
    wanted = r"(a|one of|at least one of|true|types) (?!limit).{,100}\."
    assert not said or re.fullmatch(rf"{key} is .{{1,201}}, which cannot be used\. Give {wanted}", said, re.DOTALL)


def test_a_settings_file_that_cannot_be_read_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "sealab.toml"
    file.write_bytes(b"LOG_LEVEL = '\xff'")
    with pytest.raises(SettingsError, match=r"is not UTF-8 text \(byte 13\)\. Save it as UTF-8\."):
        read_settings(file=file, file_required=False, environment={}, command_line={})
    file.unlink()
    file.mkdir()
    with pytest.raises(SettingsError, match=r"cannot be read: Is a directory\. Change the permissions"):
        read_settings(file=file, file_required=False, environment={}, command_line={})


OAUTH = {
    "SEALAB_AUTH": "oauth",
    "SEALAB_OAUTH_ISSUER": "https://idp.example/realms/team",
    "SEALAB_OAUTH_AUDIENCE": "https://sealab.example/mcp",
}


def test_an_issuer_is_named_with_the_audience_of_its_tokens(tmp_path: Path) -> None:
    settings = read(tmp_path, **OAUTH)
    assert settings.oauth_issuer == "https://idp.example/realms/team"
    for left_out, needed in (("ISSUER", "OAUTH_ISSUER"), ("AUDIENCE", "OAUTH_AUDIENCE")):
        fewer = {key: value for key, value in OAUTH.items() if not key.endswith(left_out)}
        with pytest.raises(SettingsError, match=needed):
            read(tmp_path, **fewer)


@pytest.mark.parametrize(
    "more",
    [
        {"SEALAB_OAUTH_ISSUER": "http://idp.example"},
        {"SEALAB_OAUTH_ISSUER": "https://idp.example?realm=a"},
        {"SEALAB_OAUTH_ISSUER": "https://user:pass@idp.example"},
        {"SEALAB_OAUTH_INTROSPECTION_URL": "http://idp.example/i", "SEALAB_OAUTH_CLIENT_ID": "a"},
        {"SEALAB_OAUTH_INTROSPECTION_URL": "https://idp.example/i"},
        {"SEALAB_OAUTH_CLIENT_ID": "a"},
        {"SEALAB_OAUTH_CLIENT_SECRET": "the secret"},
    ],
    ids=str,
)
def test_what_would_leave_oauth_open_or_half_set_is_refused(tmp_path: Path, more: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="OAUTH_") as refused:
        read(tmp_path, **(OAUTH | more))
    assert "the secret" not in str(refused.value)


def test_the_secret_of_the_client_is_not_shown(tmp_path: Path) -> None:
    client = {"SEALAB_OAUTH_CLIENT_ID": "sealab", "SEALAB_OAUTH_CLIENT_SECRET": "the secret"}
    assert "the secret" not in repr(read(tmp_path, **(OAUTH | client)))


PAGE = (Path(__file__).parent.parent.parent / "docs" / "limits.md").read_text()
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
ROWS = [
    [cell.strip() for cell in line.strip("| ").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| what", "| ---", "| settings", "| `"))
]
FIXED_BY = {
    "the server's own computing for a run, as a share of its time limit": "server.base.host_work:CPU_SHARE",
    "time in which the clock stands still while a user is asked": "sandbox.host.run_clock:PAUSE_SECONDS_MAX",
    "questions to the user in one call; those at once count as one": "server.interfaces.protocol.elicitation:ROUNDS_MAX",
    "time for a user's answer": "server.interfaces.protocol.elicitation:ANSWER_SECONDS",
    "how long a run goes on whose stream broke": "server.interfaces.protocol.draining:LASTING_SECONDS",
    "the code with its `context_vars`; one answer of the host": "sandbox.wire.frames:FRAME_BYTES_MAX",
    "arguments of one host call; `write_file` sends parts by itself": "sandbox.wire.frames:CALL_BYTES_MAX",
    "one text argument of a host call, but for contents, code and tests": "server.use_cases.host_functions.broker:TEXT_CHARS_MAX",
    "values in one host call": "sandbox.wire.frames:CALL_VALUES_MAX",
    "nesting of JSON between code and host": "sandbox.wire.bounded_json:DEPTH_MAX",
    "calls to the host that are answered at once": "sandbox.host.worker:CALLS_AT_ONCE_MAX",
    "calls for files, beside `TOOL_CALLS_MAX`": "server.use_cases.host_functions.broker:FILE_CALLS_MAX",
    "bytes of files read and written in pieces": "server.use_cases.host_functions.broker:FILE_BYTES_MAX",
    "calls of `progress`, beside these": "server.use_cases.host_functions.broker:PROGRESS_MAX",
    "calls of `sanitize_pii` and `restore_pii`, beside these": "server.use_cases.host_functions.broker:PRIVACY_CALLS_MAX",
    "printed output that is kept": "sandbox.job:Limits.output_bytes_max",
    "standard error that is kept": "sandbox.wire.output:ERROR_BYTES",
    "the result as JSON": "sandbox.report.values:SIZE_MAX",
    "values in the result": "sandbox.report.values:NODES_MAX",
    "the text of an answer beside its structured content": "server.use_cases.runs.truncation:SHOWN_CHARS",
    "an error's message": "sandbox.report.failures:MESSAGE_CHARS_MAX",
    "calls named one by one in the report": "server.use_cases.runs.run:ENTRIES_MAX",
    "images of a result": "server.use_cases.runs.images:IMAGES_MAX",
    "one of them, or of the workspace": "server.use_cases.runs.images:IMAGE_BYTES_MAX",
    "figures": "sandbox.wire.report_frame:FIGURES_MAX",
    "a figure's longest side": "sandbox.full_python.figures:SIDE_PIXELS_MAX",
    "values of a table or an array that is shown whole": "sandbox.full_python.plain_values:CELLS_MAX",
    "memory of a table that becomes such a file": "sandbox.full_python.tables:BYTES_MAX",
    "tables that a report describes": "sandbox.wire.report_frame:TABLES_MAX",
    "values that are displayed": "sandbox.wire.report_frame:DISPLAYED_MAX",
    "rows of a table file that `read_workspace_file` shows": "server.use_cases.runs.tables.table_previews:ROWS",
    "calls that a dry run notes down": "server.use_cases.host_functions.call_log:DRY_CALLS_MAX",
    "runs alive at once, waiting ones included; three quarters for one caller": "sandbox.host.pool:ALIVE_MAX",
    "memory of all workers of an isolation, of the machine's": "sandbox.host.pool:MACHINE_SHARE_MAX",
    "bytes of reports kept": "workspace.archive:BYTES_MAX",
    "one wait of `get_run`": "server.use_cases.runs.background.background:WAIT_SECONDS_MAX",
    "schedules of one tenant": "server.use_cases.skills.schedules:SCHEDULES_MAX",
    "of them, of one principal with a token": "server.use_cases.skills.schedules:SCHEDULES_OF_ONE_MAX",
    "how late a set time is fired": "server.use_cases.skills.schedules:LATE_SECONDS",
    "runs of a schedule that fail in a row": "server.use_cases.skills.schedules:PAUSE_AFTER",
    "one message on standard input": "server.interfaces.protocol.stdio:MESSAGE_BYTES_MAX",
    "body of an HTTP request": "mcp.server.streamable_http_manager:DEFAULT_MAX_REQUEST_BODY_SIZE",
    "values in one message; a text is one, however long": "server.interfaces.protocol.message_bounds:VALUES_MAX",
    "a token with `AUTH`": "server.interfaces.protocol.web.authentication:TOKEN_CHARS_MAX",
    "wrong tokens from one address": "server.governance.access.guesses:GUESSES_MAX",
    "console sessions of one principal": "server.interfaces.console.sessions:SESSIONS_OF_ONE_MAX",
    "one message of a server, unpacked": "tools_registry.upstream.message_faults:MESSAGE_BYTES_MAX",
    "values in one large answer": "server.use_cases.upstream_tools.large_json:VALUES_MAX",
    "blocks of content in one answer": "tools_registry.upstream.results:BLOCKS_MAX",
    "bytes to and from tools in one run": "server.use_cases.host_functions.call_log:BYTES_MAX",
    "images and files that tools give one run": "server.use_cases.host_functions.attachments:BYTES_MAX",
    "how many of these": "server.use_cases.host_functions.attachments:FILES_MAX",
    "a server's own error message": "tools_registry.upstream.results:ERROR_MAX_CHARS",
    "tools of a server": "tools_registry.upstream.link:TOOLS_LISTED_MAX",
    "characters in all pages of one list of a server": "tools_registry.upstream.pages:LISTED_CHARS_MAX",
    "a file of tool definitions": "tools_registry.definitions:FILE_BYTES_MAX",
    "one text of a definition": "tools_registry.definitions:TEXT_CHARS_MAX",
    "an OpenAPI document; one in YAML has 4 MiB": "tools_registry.openapi.document:DOCUMENT_BYTES_MAX",
    "operations of such a document": "tools_registry.openapi.operations:OPERATIONS_MAX",
    "characters of a query, or of a tool's name": "server.use_cases.upstream_tools.discovery:QUERY_CHARS_MAX",
    "calls that one question to the user is about": "server.governance.questions:CALLS_MAX",
    "characters of such a question": "server.governance.questions:CHARS_MAX",
    "time for a user to sign in to a server": "server.governance.sign_ins.signing_in:SIGN_IN_SECONDS",
    "one reading": "workspace.store:READ_BYTES_MAX",
    "one writing from code": "server.use_cases.host_functions.workspace_calls:KEPT_BYTES_MAX",
    "files that code writes in parts at a time": "server.use_cases.host_functions.workspace_calls:UNFINISHED_FILES_MAX",
    "files and folders that one run of full Python makes": "sandbox.host.run_folders:ENTRIES_MAX",
    "a file that it writes, in an object store": "workspace.landing:STORED_BYTES_MAX",
    "a path": "workspace.names:PATH_BYTES_MAX",
    "a name in a path": "workspace.names:COMPONENT_BYTES_MAX",
    "folders in each other": "workspace.names:DEPTH_MAX",
    "code, and tests, each": "skills_db.content:TEXT_MAX_BYTES",
    "a description, or a signature": "skills_db.content:LISTED_MAX_CHARS",
    "its description in lists and searches": "server.use_cases.skills.search:ABOUT_CHARS_MAX",
    "a name": "skills_db.content:NAME_MAX_CHARS",
    "tags": "skills_db.content:TAGS_MAX",
    "calls of tools that tests record": "server.use_cases.skills.recordings:RECORDINGS_MAX",
    "bytes of skills saved by one run": "server.use_cases.skills.use_cases:RUN_SKILL_BYTES_MAX",
    "files of a skill folder that is imported": "skills_db.skill_md:FILES_MAX",
    "its bytes": "skills_db.skill_md:FOLDER_BYTES_MAX",
    "characters looked through at once": "server.privacy.tokens.parts:CHARS_MAX",
    "bytes of a caller's values in the vault": "skills_db.vault:SCOPE_BYTES_MAX",
    "values of a caller who is known by a connection alone": "skills_db.vault:BRIEF_VALUES_MAX",
    "new values that one run brings": "server.privacy.tokens.run_tokens:VALUES_MAX",
    "new values in tables and lines of JSON that one run hides": "server.privacy.tokens.run_tokens:STORED_MAX",
    "unknown tokens that a caller asks for within a minute": "server.privacy.privacy:GUESSES_MAX",
}
"""The constant of each row of the page."""
NOT_FIXED = {
    "memory of runs at work",
    "files and folders",
    "bytes kept of the files of a failed run",
    "connecting (`connect_timeout_seconds`)",
    "one call (`call_timeout_seconds`)",
}
"""Rows that no constant says, or one of another row."""
FIXED = [(row[1], *FIXED_BY[row[0]].split(":")) for row in ROWS if row[0] in FIXED_BY]
IN_THE_PAGE = re.compile(r"(_MAX|_MAX_CHARS|_MB|_SECONDS|_DAYS|_KEPT)$|^(CPUS|WORKERS_SPARE)$")


def number(text: str) -> float:
    found = re.match(r"([\d,.]*\d)(?: (KiB|MiB))?", text)
    assert found, text
    return float(found[1].replace(",", "")) * UNITS.get(found[2], 1)


@pytest.mark.parametrize(("shown", "module", "name"), FIXED)
def test_what_is_fixed_is_as_the_page_says(shown: str, module: str, name: str) -> None:
    found: Any = import_module(module if module.startswith("mcp.") else f"sealab.{module}")
    owner, _, attribute = name.partition(".")
    found = getattr(found, owner)
    if attribute:
        found = getattr(found(), attribute)  # a default
    assert number(shown) == found


def test_every_row_that_says_a_bound_is_compared_with_what_fixes_it() -> None:
    assert {row[0] for row in ROWS} == FIXED_BY.keys() | NOT_FIXED


def test_every_setting_that_bounds_something_is_on_the_page() -> None:
    bounds = {each.name.upper() for each in fields(Settings) if IN_THE_PAGE.search(each.name.upper())}
    assert bounds <= set(re.findall(r"`([A-Z_]+)`", PAGE))
