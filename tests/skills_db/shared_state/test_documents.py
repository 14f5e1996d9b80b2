"""Documents that servers share: one change after another, each with a version, and nothing of another's lost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from sealab.skills_db.engine import Database
from sealab.skills_db.shared_state.documents import DocumentStore

from ..conftest import Place


def put(store: DocumentStore, name: str, data: bytes) -> int:
    with store.editing(name) as draft:
        draft.data = data
    return draft.version


def test_each_change_has_the_next_number_and_what_is_the_same_is_no_change(database: Database) -> None:
    store = DocumentStore(database)
    assert store.versions() == (0, {})
    assert [put(store, "a", b"1"), put(store, "b", b"1"), put(store, "a", b"2"), put(store, "a", b"2")] == [1, 2, 3, 0]
    assert store.versions() == (3, {"a": 3, "b": 2})
    assert store.read(["a", "b", "c"]) == {"a": (3, b"2"), "b": (2, b"1")}
    store.remove("a")
    store.remove("a")
    assert store.versions() == (4, {"b": 2})


def test_what_several_change_at_once_is_all_kept(place: Place) -> None:
    def add(number: int) -> None:
        with place.open() as database, DocumentStore(database).editing("names") as draft:
            draft.data = json.dumps([*json.loads(draft.data or b"[]"), number]).encode()

    with place.open() as database:
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(add, range(12)))
        (_, content) = DocumentStore(database).read(["names"])["names"]
        assert sorted(json.loads(content)) == list(range(12))
        assert DocumentStore(database).revision() == 12


def test_a_change_that_raises_stores_nothing(database: Database) -> None:
    store = DocumentStore(database)
    try:
        with store.editing("a") as draft:
            draft.data = b"1"
            raise KeyError
    except KeyError:
        pass
    assert store.versions() == (0, {})
