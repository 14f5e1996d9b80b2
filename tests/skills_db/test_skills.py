"""The store of skills, on SQLite and on PostgreSQL: versions, tombstones, counts, and any text at all."""

from __future__ import annotations

import multiprocessing
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.skills_db.content import SkillDraft, SkillKind
from sealab.skills_db.engine import open_database
from sealab.skills_db.errors import SkillNotFound, SkillRefused, StoreFull
from sealab.skills_db.redaction import SkillTraces, redact_skills
from sealab.skills_db.runs import RunRecord, RunStore
from sealab.skills_db.skills import SkillCounts, SkillStore

from .programs import SAVES, save_some

CLIENTS = 10
FULL = SkillDraft(
    name="full",
    code="def full(a: int = 10) -> int:\n    return a\n",
    kind=SkillKind.SCRIPT,
    signature="(a: int = 10) -> int",
    parameters={"type": "object", "properties": {"a": {"type": "integer", "default": 10**40}}},
    description="Gives back what it got.",
    tags=("numbers", "Zahlen", "数"),
    tests="assert full(1) == 1",
    modules=("json", "re"),
    tools=("files.read",),
    skills=("other",),
    recordings=[{"tool": "files.read", "answer": ["\0\ud800", 0.1, None, True]}],
    extra={"license": "MIT", "files": {"notes.md": "# x\r\n"}},
)


def draft(name: str, code: str = "pass", **parts) -> SkillDraft:
    return SkillDraft(name=name, code=code, **parts)


def names_of(page) -> list[str]:
    return [each.name for each in page.skills]


def test_what_was_saved_is_loaded_exactly(store: SkillStore):
    before = datetime.now(UTC)
    saved = store.save(FULL)
    assert (saved.name, saved.version, saved.created) == ("full", 1, True)
    loaded = store.load("full")
    assert loaded.draft == FULL
    assert (loaded.name, loaded.version, loaded.latest, loaded.runs, loaded.last_run) == ("full", 1, 1, 0, None)
    assert before <= loaded.created_at <= datetime.now(UTC)
    assert loaded.content_hash == saved.content_hash == FULL.content_hash()


def test_whether_there_is_a_skill_is_asked_without_the_names_of_all(store: SkillStore, monkeypatch):
    store.save(FULL)
    store.save(draft("gone"))
    store.delete("gone")
    monkeypatch.setattr(SkillStore, "names", None)
    assert store.newest("full") == store.load("full")
    assert [store.newest(name) for name in ("fool", "gone", "no name")] == [None] * 3


def test_saving_the_same_again_makes_no_version_and_says_so(store: SkillStore):
    first = store.save(FULL)
    summaries = store.summaries()
    again = store.save(FULL)
    assert (again.version, again.created, again.content_hash) == (1, False, first.content_hash)
    assert len(store.versions("full")) == 1
    assert store.summaries() is summaries


@pytest.mark.parametrize(
    "change",
    [
        {"code": "def full(): pass"},
        {"description": "other"},
        {"tests": ""},
        {"tags": ("numbers",)},
        {"tags": ("Zahlen", "numbers", "数")},
        {"recordings": None},
        {"extra": {}},
        {"kind": SkillKind.FUNCTION},
        {"parameters": {}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_other_content_is_another_version(file_place, change):
    from dataclasses import replace

    with file_place.open() as database:
        store = SkillStore(database)
        store.save(FULL)
        assert store.save(replace(FULL, **change)).version == 2
        assert store.load("full", 1).draft == FULL
        assert store.load("full").draft == replace(FULL, **change)


def test_going_back_to_earlier_content_is_a_version_of_its_own(store: SkillStore):
    for code in ("first", "second", "first"):
        store.save(draft("a", code))
    assert [store.load("a", number).draft.code for number in (1, 2, 3)] == ["first", "second", "first"]
    assert store.load("a").version == 3


def test_an_unknown_skill_or_version_is_told_with_what_there_is(store: SkillStore):
    store.save(draft("read_table"))
    with pytest.raises(SkillNotFound, match=r"^There is no skill 'raed_table'\. Did you mean read_table\?$"):
        store.load("raed_table")
    with pytest.raises(SkillNotFound, match=r"There is no skill 'xyz'\. `list_skills` names"):
        store.delete("xyz")
    with pytest.raises(SkillNotFound, match=r"no version 7\. Its newest is 1; leave the version out"):
        store.load("read_table", 7)
    for huge in (2**31, 2**63, 10**30, -1, 0):
        with pytest.raises(SkillNotFound, match="no version"):
            store.load("read_table", huge)
    for name in ("nothing", "", "\0", "\ud800", "x" * 10_000):
        for look_up in (store.load, store.versions, store.delete, store.restore):
            with pytest.raises(SkillNotFound):
                look_up(name)
        assert store.purge(name) == 0
        assert run_store(store).recent(skill=name) == ()


def test_a_deleted_skill_is_gone_from_everywhere_until_it_is_restored(store: SkillStore):
    store.save(draft("a", "1"))
    store.save(draft("a", "2"))
    assert names_of(store.list()) == ["a"]
    assert store.delete("a") == (1, 2)
    assert store.list().total == 0
    assert store.names() == ()
    for version in (None, 1, 2):
        with pytest.raises(SkillNotFound, match="was deleted"):
            store.load("a", version)
    with pytest.raises(SkillNotFound, match="was deleted"):
        store.delete("a")
    assert [each.deleted_at is None for each in store.versions("a")] == [False, False]
    assert store.restore("a") == (1, 2)
    assert store.load("a").draft.code == "2"
    assert store.load("a", 1).draft.code == "1"
    assert names_of(store.list()) == ["a"]
    with pytest.raises(SkillNotFound, match="no deleted skill 'a'"):
        store.restore("a")


def test_a_skill_saved_under_a_deleted_name_counts_on_and_can_get_its_past_back(store: SkillStore):
    store.save(draft("a", "old"))
    store.delete("a")
    saved = store.save(draft("a", "old"))
    assert (saved.version, saved.created) == (2, True)
    with pytest.raises(SkillNotFound):
        store.load("a", 1)
    assert store.restore("a") == (1,)
    assert store.load("a").version == 2
    assert store.load("a", 1).draft.code == "old"


def test_purging_removes_for_good_what_was_deleted_and_nothing_else(store: SkillStore):
    store.save(draft("kept"))
    store.save(draft("gone", "1"))
    store.save(draft("half", "1"))
    before = datetime.now(UTC)
    store.delete("gone")
    store.delete("half")
    store.save(draft("half", "2"))
    assert store.purge(deleted_before=before) == 0
    assert store.purge(deleted_before=datetime.now(UTC) - timedelta(hours=1)) == 0
    assert store.purge("gone") == 1
    with pytest.raises(SkillNotFound, match="There is no skill"):
        store.versions("gone")
    assert store.purge() == 1
    assert names_of(store.list()) == ["half", "kept"]
    assert store.save(draft("half", "3")).version == 3
    assert store.save(draft("gone", "new")).version == 1


def test_another_program_sees_every_change_in_its_lists(place):
    """Its list is kept in memory, and must notice what others save, delete, and purge."""
    with place.open() as ours, place.open() as theirs:
        here, there = SkillStore(ours), SkillStore(theirs)
        here.save(draft("alpha", description="reads tables"))
        assert [each.description for each in there.list().skills] == ["reads tables"]
        here.save(draft("alpha", "2", description="writes pages"))
        (newest,) = there.list().skills
        assert (newest.name, newest.description, newest.version) == ("alpha", "writes pages", 2)
        here.delete("alpha")
        here.purge()
        assert there.list().total == 0
        here.save(draft("beta"))
        here.delete("beta")
        here.purge()
        here.save(draft("gamma"))
        assert names_of(there.list()) == ["gamma"]


def test_a_list_is_in_the_order_of_names_and_tells_how_many_there_are(store: SkillStore):
    for name in ("b", "a", "C", "ä", "_d"):
        store.save(draft(name, tags=("Odd",) if name in "ab" else ()))
    page = store.list(limit=2)
    assert (page.total, names_of(page)) == (5, ["C", "_d"])
    assert names_of(store.list(limit=None)) == ["C", "_d", "a", "b", "ä"]
    assert names_of(store.list(tag="odd")) == ["a", "b"]
    assert store.list(tag="none").total == 0
    assert store.list(limit=0) == type(page)(5, ())


def test_the_summary_of_a_skill_is_the_same_object_until_the_skill_changes(store: SkillStore):
    store.save(draft("a", tags=("Odd",)))
    store.save(draft("b"))
    before = store.summaries()
    assert store.summaries() is before
    store.save(draft("b", "2"))
    store.save(draft("c"))
    store.delete("c")
    after = store.summaries()
    assert list(after) == ["a", "b"]
    assert after["a"] is before["a"]
    assert (before["b"].version, after["b"].version) == (1, 2)
    assert store.with_runs([after["b"], before["a"]]) == (after["b"], before["a"])
    assert (after["a"].has_tag("oDD"), after["a"].has_tag("od"), after["b"].has_tag("odd")) == (True, False, False)


def test_a_run_is_counted_for_its_skill_however_few_records_are_kept(database):
    store, runs = SkillStore(database), RunStore(database, kept=3)
    store.save(draft("a"))
    moment = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    records = [
        RunRecord(
            run_id=f"r{number}",
            started_at=moment + timedelta(seconds=number),
            duration_ms=1.25 * number,
            status="ok" if number % 2 else "error",
            isolation="restricted",
            kind="skill" if number else "code",
            skill="a" if number else None,
            version=1 if number else None,
        )
        for number in range(6)
    ]
    runs.record(records[0])
    runs.record(*reversed(records[1:]), records[1])
    runs.record(records[-1])
    runs.trim()
    assert runs.recent() == tuple(reversed(records[-3:]))
    assert runs.recent(1, skill="a") == (records[-1],)
    assert runs.count_by_status() == {"ok": 2, "error": 1}
    listed = store.list().skills[0]
    assert (listed.runs, listed.last_run) == (5, moment + timedelta(seconds=5))
    assert (store.load("a").runs, store.load("a").last_run) == (5, moment + timedelta(seconds=5))
    assert runs.trim() == 0
    store.save(draft("a", "2"))
    store.save(draft("b"))
    assert store.counts() == SkillCounts(skills=2, versions=3, runs=5)
    store.delete("a")
    assert store.counts() == SkillCounts(skills=1, versions=1, runs=0)


def test_old_run_records_are_dropped_without_being_asked(database):
    runs = RunStore(database, kept=2)
    for number in range(103):
        runs.record(
            RunRecord(run_id=str(number), started_at=datetime.now(UTC), duration_ms=1, status="ok", isolation="process")
        )
    assert len(runs.recent(1000)) < 10
    assert runs.recent(1)[0].run_id == "102"


def test_a_purged_skill_leaves_no_name_behind_in_the_run_records(database):
    store, runs = SkillStore(database), RunStore(database)
    store.save(draft("secret_plan"))
    moment = datetime.now(UTC)
    for run_id in ("1", "2"):
        runs.record(
            RunRecord(
                run_id=run_id,
                started_at=moment,
                duration_ms=1,
                status="ok",
                isolation="restricted",
                skill="secret_plan",
                version=1,
            )
        )
    store.delete("secret_plan")
    store.purge()
    assert {(each.skill, each.version) for each in runs.recent()} == {(None, None)}


def test_threads_of_one_program_lose_no_version(store: SkillStore):
    def save(client: int) -> list[int]:
        return [store.save(draft("shared", f"{client}.{number}")).version for number in range(SAVES)]

    with ThreadPoolExecutor(CLIENTS) as threads:
        versions = [version for mine in threads.map(save, range(CLIENTS)) for version in mine]
    assert sorted(versions) == list(range(1, CLIENTS * SAVES + 1))
    assert len({store.load("shared", number).draft.code for number in versions}) == CLIENTS * SAVES


def test_ten_programs_that_start_at_once_make_the_tables_once_and_lose_no_version(place):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([save_some.__module__])
    start, results = context.Event(), context.Queue()
    programs = [
        context.Process(target=save_some, args=(place.url, place.home, client, start, results))
        for client in range(CLIENTS)
    ]
    for program in programs:
        program.start()
    start.set()
    saved = [each for _ in programs for each in results.get(timeout=50)]
    for program in programs:
        program.join(20)
        assert program.exitcode == 0
    assert sorted(version for _, _, version in saved) == list(range(1, CLIENTS * SAVES + 1))
    with place.open() as database:
        store = SkillStore(database)
        assert all(store.load("shared", version).draft.code == f"{client}.{n}" for client, n, version in saved)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": ""}, "The skill has no name"),
        ({"name": "n" * 129}, "The name .* has 129 characters. Use 128 at most."),
        ({"name": "a\0b"}, "The name holds a NUL character"),
        ({"name": "a\ud800"}, "The name holds half a surrogate pair"),
        ({"code": "#" * 1_000_001}, r"The code has 1,000,001 bytes. Keep it below 1,000,000\."),
        ({"description": "€" * 400_000}, "has 400000 characters. Use 10000 at most."),
        ({"tests": "\0"}, "The tests holds? a NUL"),
        ({"tags": ("t",) * 51}, "has 51 tags"),
        ({"tags": ("t" * 129,)}, "The tag .* has 129 characters"),
        ({"recordings": "x" * 10_000_001}, "The recordings ha(s|ve) 10,000,003 bytes as JSON"),
        ({"extra": {"x": float("nan")}}, "The extra cannot be kept as JSON"),
        ({"extra": {"x": {1}}}, "The extra cannot be kept as JSON: Object of type set"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_is_too_large_or_no_text_is_refused_and_stores_nothing(file_place, parts, message):
    with file_place.open() as database:
        store = SkillStore(database)
        with pytest.raises(SkillRefused, match=message):
            store.save(SkillDraft(**{"name": "a", "code": "pass"} | parts))
        assert store.list().total == 0


def test_the_largest_code_that_is_allowed_is_kept(store: SkillStore):
    store.save(draft("a", "#" * 1_000_000))
    assert len(store.load("a").draft.code) == 1_000_000


def test_the_store_holds_no_more_bytes_than_it_may_until_some_are_purged(store: SkillStore, monkeypatch):
    monkeypatch.setattr("sealab.skills_db.skills.STORE_BYTES_MAX", 60_000)
    store.save(draft("a", "#" * 25_000))
    store.save(SkillDraft(name="b", code="pass", tests="#" * 10_000, recordings="x" * 15_000))
    with pytest.raises(StoreFull, match="sealab skills purge"):
        store.save(draft("a", "pass" + "#" * 9_000))
    assert store.load("a").version == 1
    store.delete("b")
    with pytest.raises(StoreFull):
        store.save(draft("c", "#" * 9_000))
    store.purge()
    store.save(draft("c", "#" * 9_000))
    assert store.names() == ("a", "c")


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60) | st.sampled_from(
    [
        "'; DROP TABLE sealab_skill; --", '" OR 1=1', "%", "_", "\\", "*", "a*", "NEAR(", "AND", "{}", "%s", ":name",
        "$1", "\n",
    ]
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=TEXT.filter(bool), tags=st.lists(TEXT, max_size=3), description=TEXT, query=TEXT)
def test_no_name_tag_description_or_query_breaks_anything(store: SkillStore, name, tags, description, query):
    saved = draft(name, description, tags=tuple(tags), description=description, tests=name, signature=query)
    assert store.save(saved).name == name
    assert store.load(name).draft == saved
    assert name in names_of(store.list(limit=None))
    for tag in tags:
        assert name in names_of(store.list(tag=tag, limit=None))
    store.list(tag=query)
    run_store(store).record(
        RunRecord(
            run_id=name, started_at=datetime.now(UTC), duration_ms=0, status=query, isolation=description, skill=name
        )
    )
    with pytest.raises(SkillNotFound):
        store.load(f"{name}?")
    assert store.delete(name)
    assert store.purge(name)
    assert store.names() == ()


def run_store(store: SkillStore) -> RunStore:
    return RunStore(store._database)


def test_the_database_of_another_encoding_is_refused(cluster, tmp_path):
    from sealab.skills_db.errors import DatabaseUnavailable

    url = cluster.create("latin", "ENCODING 'LATIN1' TEMPLATE template0")
    try:
        with pytest.raises(DatabaseUnavailable, match=re.escape("keeps text as LATIN1")):
            open_database(url, tmp_path)
    finally:
        cluster.drop("latin")


def without_jane(value):
    """Replace the name wherever it stands in a value of JSON."""
    if isinstance(value, str):
        return value.replace("jane", "[erased]")
    if isinstance(value, dict):
        return {key: without_jane(each) for key, each in value.items()}
    return [without_jane(each) for each in value] if isinstance(value, list) else value


def test_a_name_is_found_in_all_that_skills_hold_and_erased_as_far_as_is_asked_for(database, store: SkillStore):
    told = draft("told", description="for jane", tags=("jane",), recordings=[{"answer": "jane"}])
    coded = draft("coded", "'jane'", tests="'jane'", extra={"files": {"a.md": "jane"}})
    for each in (told, coded, draft("jane_report", "1"), draft("other")):
        store.save(each)
    store.save(draft("coded", "'nobody'"))
    store.delete("coded")
    traces = SkillTraces(("told 1",), ("told 1",), ("coded 1",), ("jane_report",))
    hashes = {name: store.load(name).content_hash for name in ("told", "other", "jane_report")}
    assert redact_skills(database, without_jane, changes=False) == traces
    assert {name: store.load(name).content_hash for name in hashes} == hashes

    assert redact_skills(database, without_jane, changes=True) == traces
    loaded = store.load("told")
    assert (loaded.draft.description, loaded.draft.tags) == ("for [erased]", ("[erased]",))
    assert loaded.content_hash == loaded.draft.content_hash() != hashes["told"]
    assert store.summaries()["told"].description == "for [erased]", "what searches look at is renewed"
    assert store.load("other").content_hash == hashes["other"]

    left = SkillTraces(code=("coded 1",), names=("jane_report",))
    assert redact_skills(database, without_jane, changes=True, in_code=True) == left
    assert "jane_report" not in store.names()
    store.restore("coded")
    assert store.load("coded", 1).draft.code == "'[erased]'"
    assert store.load("coded", 1).content_hash == store.load("coded", 1).draft.content_hash()
    assert redact_skills(database, without_jane, changes=False) == SkillTraces()
