"""Finding skills by words: what comes first, what is found at all, and that the index never falls behind."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.skills_db.content import SkillKind
from sealab.skills_db.listing import SkillIndex, SkillSummary
from sealab.skills_db.word_index import words


def summary(name: str, description: str = "", tags: tuple[str, ...] = (), signature: str = "") -> SkillSummary:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return SkillSummary(name, 1, SkillKind.FUNCTION, description, signature, tags, moment, 0, None)


@pytest.fixture
def index() -> SkillIndex:
    made = SkillIndex()
    for each in (
        summary("csv_profile", "Summarises the columns of a table.", ("data",), "(path: str) -> dict"),
        summary(
            "json_diff", "Compares two documents and lists what changed.", ("data",), "(old: dict, new: dict) -> list"
        ),
        summary("logTriage", "Groups the errors of a log file, worst first.", ("ops",)),
        summary("dedupe_records", "Removes records that stand twice in a CSV.", ("data", "Clean Up")),
        summary("invoice_total", "Adds up the amounts of invoices.", ("money",)),
        summary("café_menu", "数据清洗 and prices"),
    ):
        made.put(each)
    return made


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("csv_profile", "csv_profile"),
        ("csv profile", "csv_profile"),
        ("CSVProfile", "csv_profile"),
        ("csv", "csv_profile"),
        ("log triage", "logTriage"),
        ("log_triage", "logTriage"),
        ("grouping error", "logTriage"),
        ("compare documents", "json_diff"),
        ("dedup", "dedupe_records"),
        ("record", "dedupe_records"),
        ("invioce totl", "invoice_total"),
        ("sumarise colums", "csv_profile"),
        ("clean", "dedupe_records"),
        ("cafe", "café_menu"),
        ("数据", "café_menu"),
        ("清洗", "café_menu"),
        ("oice", "invoice_total"),
        ("->", "csv_profile"),
        ("the", "csv_profile"),
    ],
)
def test_the_best_skill_comes_first(index: SkillIndex, query: str, first: str):
    assert index.find(query, None, 10)[1][0] == first


@pytest.mark.parametrize("query", ["zebra", "%", "xq", "'; --", "\0"])
def test_what_no_skill_has_finds_nothing(index: SkillIndex, query: str):
    assert index.find(query, None, 10) == (0, [])


def test_a_name_counts_more_than_a_description(index: SkillIndex):
    assert index.find("csv", None, 10) == (2, ["csv_profile", "dedupe_records"])


def test_a_skill_that_has_more_of_the_words_comes_before_one_that_has_one_in_its_name(index: SkillIndex):
    index.put(summary("error_text", "Something else."))
    assert index.find("group errors of a log file", None, 2)[1][0] == "logTriage"


def test_a_tag_narrows_a_query_and_the_limit_cuts_only_what_is_shown(index: SkillIndex):
    assert index.find("csv json", "DATA", 2)[0] == 3
    assert len(index.find("csv json", "data", 2)[1]) == 2
    assert index.find("csv json", "money", 2) == (0, [])
    assert index.find(None, "clean up", 5) == (1, ["dedupe_records"])
    assert index.find(" ", None, 2) == (6, ["café_menu", "csv_profile"])
    assert index.find("csv", None, 0) == (2, [])


def test_a_skill_that_changed_is_found_by_what_it_says_now(index: SkillIndex):
    index.put(summary("csv_profile", "Draws a chart.", ("plots",)))
    assert index.find("columns", None, 5)[1] == []
    assert index.find("chart", "plots", 5)[1] == ["csv_profile"]
    assert "csv_profile" not in index.find(None, "data", None)[1]
    index.remove("csv_profile")
    index.remove("csv_profile")
    assert index.find("chart", None, 5)[1] == index.find("csv_profile", "plots", 5)[1] == []


def test_the_nearest_names_are_those_that_look_alike(index: SkillIndex):
    assert index.nearest("csv_profil")[0] == "csv_profile"
    assert index.nearest("logtriage")[0] == "logTriage"
    assert index.nearest("qqqqqq") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("readCSVFile", ["read", "csv", "file"]),
        ("sha256_sum", ["sha", "256", "sum"]),
        ("Ｃａｆé-Straße", ["cafe", "strasse"]),
        ("a.b/c\\d\n", ["a", "b", "c", "d"]),
    ],
)
def test_text_is_cut_into_words_where_identifiers_are(text: str, expected: list[str]):
    assert words(text) == expected


NAMES = st.text("abcXY_1é数", min_size=1, max_size=6)


@given(
    st.lists(st.tuples(NAMES, st.text("ab cé数_", max_size=8), st.booleans()), max_size=12), NAMES, st.integers(0, 5)
)
def test_an_index_that_was_changed_answers_as_one_that_was_made_anew(changes, query, limit):
    changed, kept = SkillIndex(), {}
    for name, description, remove in changes:
        changed.find(query, None, 1)
        if remove:
            changed.remove(name)
            kept.pop(name, None)
        else:
            changed.put(summary(name, description))
            kept[name] = summary(name, description)
    fresh = SkillIndex()
    for each in kept.values():
        fresh.put(each)
    assert changed.find(query, None, limit) == fresh.find(query, None, limit)
    total, names = changed.find(query, None, None)
    assert total == len(names) == len(set(names))
    assert changed.find(query, None, limit) == (total, names[:limit])
    if query in kept and words(query):
        assert words(names[0]) == words(query) or "".join(words(names[0])) == "".join(words(query))
