"""Finding skills by words in a real store: what comes first, what is found at all, and that no change is missed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sealab.server.base.database import HomeDatabase
from sealab.server.use_cases.skills.search import SkillIndex
from sealab.server.use_cases.skills.service import SkillService
from sealab.skills_db.content import SkillDraft, SkillPage
from sealab.skills_db.skills import SkillStore
from tests.waiting import wait_until

from ..conftest import Caller, in_process_server

SKILLS = (
    ("csv_profile", "Summarises the columns of a table.", ("data",), "csv_profile(path: str) -> dict"),
    ("json_diff", "Compares two documents and lists what changed.", ("data",), "json_diff(old: dict, new: dict) -> list"),
    ("logTriage", "Groups the errors of a log file, worst first.", ("ops",), ""),
    ("dedupe_records", "Removes records that stand twice in a CSV.", ("data", "Clean Up"), ""),
    ("invoice_total", "Adds up the amounts of invoices.", ("money",), ""),
    ("café_menu", "数据清洗 and prices 🍰", (), ""),
    ("sha256_sum", "x" * 3_000, ("checksums",), ""),
)  # fmt: skip


def draft(name: str, description: str = "", tags: tuple[str, ...] = (), signature: str = "") -> SkillDraft:
    return SkillDraft(name=name, code=f"# {description}", description=description, tags=tags, signature=signature)


@contextmanager
def service_below(home: Path) -> Iterator[SkillService]:
    database = HomeDatabase(None, home)
    try:
        yield SkillService(database)
    finally:
        database.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SkillService]:
    with service_below(tmp_path) as made:
        for each in SKILLS:
            made.store().save(draft(*each))
        yield made


@pytest.fixture
def store(service: SkillService) -> SkillStore:
    return service.store()


@pytest.fixture
def index(service: SkillService) -> SkillIndex:
    return SkillIndex(service)


def names(page: SkillPage) -> list[str]:
    return [each.name for each in page.skills]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("csv_profile", "csv_profile"),
        ("csv profile", "csv_profile"),
        ("CSVProfile", "csv_profile"),
        ("csv", "csv_profile"),
        ("csvp", "csv_profile"),
        ("log triage", "logTriage"),
        ("log_triage", "logTriage"),
        ("grouping error", "logTriage"),
        ("compare documents", "json_diff"),
        ("dedup", "dedupe_records"),
        ("record", "dedupe_records"),
        ("invioce totl", "invoice_total"),
        ("sumarise colums", "csv_profile"),
        ("clean", "dedupe_records"),
        ("checksum", "sha256_sum"),
        ("sha 256", "sha256_sum"),
        ("sha", "sha256_sum"),
        ("cafe", "café_menu"),
        ("数据", "café_menu"),
        ("清洗", "café_menu"),
        ("清", "café_menu"),
        ("inv", "invoice_total"),
        ("oice", "invoice_total"),
        ("path", "csv_profile"),
        ("->", "csv_profile"),
        ("🍰", "café_menu"),
    ],
)
async def test_the_best_skill_comes_first(index: SkillIndex, query: str, first: str) -> None:
    page = await index.page(query, None, 10)
    assert names(page)[0] == first
    assert page.total == len(page.skills) < len(SKILLS)


@pytest.mark.parametrize("query", ["zebra", "%", "xq", "'; --", "\0", "\ud800", "skills"])
async def test_what_no_skill_has_finds_nothing(index: SkillIndex, query: str) -> None:
    assert await index.page(query, None, 10) == SkillPage(0, ())


async def test_a_name_counts_more_than_a_description(index: SkillIndex) -> None:
    assert names(await index.page("csv", None, 10)) == ["csv_profile", "dedupe_records"]


async def test_a_skill_of_exactly_that_name_comes_first(index: SkillIndex, store: SkillStore) -> None:
    for name in ("getUser", "get_user", "get_user_name", "user"):
        store.save(draft(name, "Gets the user: get user, get user, get user."))
    for name in ("getUser", "get_user", "get_user_name", "user", *(each[0] for each in SKILLS)):
        assert names(await index.page(name, None, 1)) == [name]


async def test_a_skill_with_more_of_the_words_comes_before_one_with_one_in_its_name(
    index: SkillIndex, store: SkillStore
) -> None:
    store.save(draft("error_text", "Something else."))
    assert names(await index.page("group errors of a log file", None, 2))[0] == "logTriage"


async def test_a_tag_narrows_a_query_and_the_limit_cuts_only_what_is_shown(index: SkillIndex) -> None:
    found = await index.page("csv json", "DATA", 2)
    assert (found.total, len(found.skills)) == (3, 2)
    assert await index.page("csv json", "money", 2) == SkillPage(0, ())
    assert await index.page("csv", None, 0) == SkillPage(2, ())
    alone = await index.page(None, "clean up", 5)
    assert (alone.total, names(alone)) == (1, ["dedupe_records"])
    blank = await index.page(" ", None, 2)
    assert (blank.total, names(blank)) == (len(SKILLS), ["café_menu", "csv_profile"])


async def test_a_skill_that_changed_is_found_by_what_it_says_now(index: SkillIndex, tmp_path: Path) -> None:
    assert names(await index.page("summarises", None, 5)) == ["csv_profile"]
    with service_below(tmp_path) as another_program:
        theirs = another_program.store()
        theirs.save(draft("csv_profile", "Draws a chart.", ("plots",)))
        assert names(await index.page("summarises", None, 5)) == []
        (changed,) = (await index.page("chart", "plots", 5)).skills
        assert (changed.name, changed.version) == ("csv_profile", 2)
        assert (await index.page("csv", "data", 5)).total == 1
        theirs.delete("csv_profile")
        assert (await index.page("chart", None, 5)).total == (await index.page("csv_profile", "plots", 5)).total == 0
        theirs.restore("csv_profile")
        assert (await index.page("chart", None, 5)).total == 1
        theirs.delete("csv_profile")
        theirs.purge()
        assert (await index.page("chart", None, 5)).total == 0


async def test_documents_for_searches_of_tools_are_others_after_every_change(
    index: SkillIndex, store: SkillStore
) -> None:
    assert index() == (None, ())
    await index.refresh()
    before, documents = index()
    await index.refresh()
    assert index()[0] == before
    store.save(draft("added", "Something new."))
    await index.page("anything", None, 1)
    after, more = index()
    assert after != before
    kept = {each.document.name: each for each in more}
    assert set(kept) - {each.document.name for each in documents} == {"added"}
    assert all(kept[each.document.name] is each for each in documents)
    assert {each.document.key for each in more} == {f"skills.{name}" for name in kept}


def save_them(home: Path) -> None:
    """Save the skills in the home of a server to come."""
    with service_below(home) as service:
        for each in SKILLS:
            service.store().save(draft(*each))


served = in_process_server({}, save_them)


async def test_a_list_counts_all_that_fit_and_gives_the_best(served: Caller) -> None:
    found = await served.told("list_skills", query="csv jsno", limit=2)
    assert found["count"] == 3
    assert [each["name"] for each in found["skills"]][:1] == ["json_diff"]
    assert len(found["skills"]) == 2
    assert found["skills"][0].keys() == {"name", "version", "description", "signature", "tags", "runs", "last_run"}
    assert await served.told("list_skills", query="zebra") == {"count": 0, "skills": []}
    assert await served.told("list_skills", query="csv", limit=0) == {"count": 2, "skills": []}
    assert (await served.told("list_skills", query="", limit=10**12))["count"] == len(SKILLS)
    report = await served.run("[each['name'] for each in list_skills('dedup')['skills']]")
    assert report["result"] == ["dedupe_records"]


async def test_a_limit_below_0_is_refused(served: Caller) -> None:
    told = "limit is -1, which is not allowed. Give 0, to count only, or more."
    for arguments in ({"limit": -1}, {"limit": -1, "query": "csv"}, {"limit": -1, "tag": "data"}):
        answer = await served.refusal("list_skills", **arguments)
        assert told in answer
    report = await served.run("list_skills(limit=-1)")
    assert told in report["error"]["message"]


async def test_an_unknown_skill_is_told_with_the_names_that_it_may_have_meant(served: Caller) -> None:
    for name, near in (("csv_profil", "csv_profile"), ("logtriage", "logTriage")):
        refusal = await served.refusal("load_skill", name=name)
        assert f"There is no skill '{name}'. Did you mean {near}?" in refusal
    assert "`list_skills` names those that there are" in await served.refusal("load_skill", name="qqqqqq")


def test_runs_are_recorded_though_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    with closing(HomeDatabase(None, tmp_path)) as database, closing(SkillService(database)) as service:
        service.note("a" * 26, owner="local", duration_ms=1.0, status="ok", isolation="restricted", skills={})
        monkeypatch.setattr(time, "time", lambda: now() - 3600)
        wait_until(lambda: not service._ended.waiting())
        wait_until(lambda: service.run_store().count_by_status() == {"ok": 1})
