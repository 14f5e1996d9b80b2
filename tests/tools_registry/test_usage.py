"""What was called after which search: it is found again in like words, by the same owner alone, and no word is kept."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from sealab.tools_registry.search import usage
from sealab.tools_registry.search.ranking import Searchable, SearchIndex
from sealab.tools_registry.search.usage import SearchUsage

QUERY = "store a note about a customer"


def used(file: Path, *tools: str, query: str = QUERY, owner: str = "me") -> SearchUsage:
    made = SearchUsage(file)
    made.searched(owner, query)
    for tool in tools:
        made.called(owner, tool)
    return made


def test_a_tool_that_was_called_after_a_search_is_found_by_one_in_like_words(tmp_path: Path) -> None:
    index = SearchIndex(
        [
            Searchable("crm.store", "store", "crm", "crm", "Find a store near a customer."),
            Searchable("graph.add", "add_observations", "graph", "graph", "Add facts to the entities of a graph."),
            *(
                Searchable(f"x.{n}", f"colours_{n}", f"x{n}", "x", "Show colours.", (("name", "of a customer"),))
                for n in range(6)
            ),
        ]
    )
    made = used(tmp_path / "usage.json", "graph.add")
    asked = "please store some notes on my customers"
    likeness = made.likeness("me", asked)
    assert likeness["graph.add"] > 0.9
    before = {hit.key: hit.score for hit in index.search(asked)}
    after = {hit.key: hit.score for hit in index.search(asked, used=likeness) if not hit.weak}
    assert after["graph.add"] > before.get("graph.add", 0) + 0.4
    assert after["crm.store"] == before["crm.store"]
    assert made.likeness("me", "the weather in Oslo") == {}


def test_an_unknown_key_in_what_was_used_changes_nothing() -> None:
    index = SearchIndex([Searchable("a.b", "b", "a", "a", "Store a note.")])
    assert index.search("note", used={"gone.tool": 1.0}) == index.search("note")


def test_searches_in_a_row_are_one_wish_until_a_tool_is_called(tmp_path: Path) -> None:
    made = SearchUsage(tmp_path / "usage.json")
    made.called("me", "a.first")
    for query in ("write text to disk", "save a document"):
        made.searched("me", query)
    made.called("me", "fs.write")
    made.searched("me", "weather forecast")
    made.called("me", "weather.get")
    assert set(made.likeness("me", "write text to disk")) == {"fs.write"}
    assert set(made.likeness("me", "save a document")) == {"fs.write"}
    assert set(made.likeness("me", "weather forecast")) == {"weather.get"}


def test_owners_do_not_see_what_others_used(tmp_path: Path) -> None:
    made = used(tmp_path / "usage.json", "graph.add")
    assert made.likeness("other", QUERY) == {}
    made.save()
    assert SearchUsage(tmp_path / "usage.json").likeness("other", QUERY) == {}
    assert "graph.add" in SearchUsage(tmp_path / "usage.json").likeness("me", QUERY)


def test_the_file_holds_no_word_no_name_and_no_number_of_a_query(tmp_path: Path) -> None:
    file = tmp_path / "registry" / "usage.json"
    query = "find the invoice of Jane Roe, jane.roe@mail.example, card 4111111111111111, [EMAIL_9g5ddg3tce] qxzzy"
    used(file, "crm.find", query=query).save()
    content = json.loads(file.read_text())
    ((words, tool),) = next(iter(content["owners"].values()))
    assert tool == "crm.find"
    assert all(len(word) == 16 and int(word, 16) >= 0 for word in words)
    assert not any(
        part in file.read_text() for part in ("me", "invoice", "invoic", "jane", "Jane", "4111", "9g5ddg3tce")
    )
    assert file.stat().st_mode & 0o077 == 0
    alone = SearchUsage(tmp_path / "other.json")
    assert len(alone._words("Jane Roe 4111111111111111 [EMAIL_9g5ddg3tce] qxzzy")) == 0


def test_what_a_brief_owner_did_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "usage.json"
    made = SearchUsage(file)
    made.searched("session", QUERY, brief=True)
    made.called("session", "graph.add")
    assert "graph.add" in made.likeness("session", QUERY)
    made.save()
    assert not file.exists()


def test_two_processes_add_up_and_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "usage.json"
    used(file, "a.b").save()
    first, second = used(file, "a.c"), used(file, "a.d")
    first.save()
    second.save()
    assert set(SearchUsage(file).likeness("me", QUERY)) == {"a.b", "a.c", "a.d"}
    for damaged in ("{", '{"key": "00", "owners": {}}', '{"key": 7}', "[]"):
        file.write_text(damaged)
        used(file, "a.e").save()
        assert set(SearchUsage(file).likeness("me", QUERY)) == {"a.e"}


def test_a_process_that_began_without_a_file_takes_the_key_of_the_one_that_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "usage.json"
    first, second = used(file, "a.b"), used(file, "a.c")
    first.save()
    second.save()
    assert set(second.likeness("me", QUERY)) == {"a.b"}


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "ENTRIES_MAX", 5)
    monkeypatch.setattr(usage, "OWNERS_MAX", 3)
    made = SearchUsage(tmp_path / "usage.json")
    for owner in range(9):
        for turn in range(9):
            made.searched(f"o{owner}", QUERY, brief=owner % 2 == 0)
            made.called(f"o{owner}", f"a.t{turn}")
    made.save()
    content = json.loads((tmp_path / "usage.json").read_text())["owners"]
    assert [len(entries) for entries in content.values()] == [5, 5, 5]
    assert len(made._new) <= 3
    assert len(made._words("word " * 100_000)) == 1


def test_threads_may_use_it_together(tmp_path: Path) -> None:
    made = SearchUsage(tmp_path / "usage.json")

    def work(owner: str) -> None:
        for turn in range(50):
            made.searched(owner, QUERY)
            made.called(owner, f"a.t{turn % 3}")
            made.likeness(owner, QUERY)
            made.save()

    threads = [threading.Thread(target=work, args=(f"o{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(made.likeness(f"o{number}", QUERY)) for number in range(4)} == {3}
