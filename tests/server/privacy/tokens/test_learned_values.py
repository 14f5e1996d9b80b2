"""Values that are known by a hash alone are found wherever they stand as words, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.errors import HostWorkRefused
from sealab.server.privacy.tokens import learned_values
from sealab.server.privacy.tokens.learned_values import LearnedValues

PEOPLE = ["Jane Müller", "O'Brien, Kate", "山田太郎", "Will"]
ADDRESSES = ["jane.roe+x@corp.example", "a@b.example"]


@pytest.fixture
def learned() -> LearnedValues:
    made = LearnedValues()
    made.add("PERSON", PEOPLE)
    made.add("EMAIL", ADDRESSES)
    return made


def found(learned: LearnedValues, text: str) -> set[tuple[str, str]]:
    return {(text[span.start : span.end], span.type) for span in learned.find(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dear Jane Müller, hello", {("Jane Müller", "PERSON")}),
        ("JANE MÜLLER and jane muller", {("JANE MÜLLER", "PERSON"), ("jane muller", "PERSON")}),
        ("by O'BRIEN, KATE.", {("O'BRIEN, KATE", "PERSON")}),
        ("昨日山田太郎さんは", {("山田太郎", "PERSON")}),
        ("<jane.roe+x@corp.example>", {("jane.roe+x@corp.example", "EMAIL")}),
        ("Will will", {("Will", "PERSON")}),
        ("Jane Müllerin, Anjane Müller, Willow, Jane  Müller", set()),
        ("", set()),
    ],
)
def test_a_value_is_found_as_words_without_case_and_accents(
    learned: LearnedValues, text: str, expected: set[tuple[str, str]]
) -> None:
    assert found(learned, text) == expected


def test_what_does_not_stand_out_is_known_only_where_it_is_asked_for(learned: LearnedValues) -> None:
    learned.add("ZIP", ["12", "10115"])
    assert found(learned, "There are 12 of 10115.") == set()
    assert learned.kind_of("10115") == "ZIP"
    assert learned.kind_of("10116") is None
    assert learned.kind_of("...") is None


words = st.text("abcXYZ09éß漢字", min_size=4, max_size=8)
values = st.lists(words, min_size=1, max_size=4).map(" ".join)


@given(some=st.lists(values, min_size=1, max_size=30), before=st.text(max_size=20), after=st.text(max_size=20))
def test_each_of_many_values_is_found_between_other_words(some: list[str], before: str, after: str) -> None:
    learned = LearnedValues()
    for value in some:
        learned.add("ADDRESS", [value])
    for value in some:
        text = f"{before} {value} {after}"
        start = len(before) + 1
        covered: set[int] = set()
        for span in learned.find(text):
            covered |= set(range(span.start, span.end))
        letters = {at for at in range(start, start + len(value)) if text[at].isalnum()}
        assert any(map(str.isdigit, value)) or letters <= covered


def test_values_are_found_across_the_pieces_of_a_long_text(
    learned: LearnedValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_values, "_CHUNK_CHARS", 50)
    for lead in range(60):
        text = "x " * 20 + "y" * lead + " Jane Müller wrote to jane.roe+x@corp.example" + " z" * 50
        assert found(learned, text) == {("Jane Müller", "PERSON"), ("jane.roe+x@corp.example", "EMAIL")}


def test_what_cannot_be_kept_by_its_hash_is_given_back() -> None:
    long, wordy = "x" * 257, " ".join("abcdefghijklmn")
    secret = "sk-live-4242"
    learned = LearnedValues()
    assert learned.add("ADDRESS", ["Main Street 4", long, wordy])[1] == [long, wordy]
    assert learned.add("SECRET", [secret])[1] == [secret]
    assert len(learned) == 1


def test_more_than_can_be_kept_are_refused_and_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_values, "LEARNED_MAX", 10)
    learned = LearnedValues()
    learned.add("PERSON", [f"Jane Roe {number}" for number in range(10)])
    with pytest.raises(HostWorkRefused, match="More than 10 personal values"):
        learned.add("PERSON", ["John Roe"])
    learned.add("PERSON", ["Jane Roe 3"])
    assert found(learned, "Jane Roe 9") == {("Jane Roe 9", "PERSON")}


def test_a_run_has_met_what_it_learned_last(learned: LearnedValues) -> None:
    hashes, _left = learned.add("PERSON", ["Jane Müller", "New One"], 7)
    assert learned.was_met("Jane Müller", 7)
    assert not learned.was_met("Will", 7)
    assert not learned.was_met("Jane Müller", 8)
    assert all(learned.met_again(each, 8) for each in hashes)
    assert learned.known_and_met(["New One", "x" * 300, "Will", "Nobody"], 8) == (
        [True, False, True, False],
        [True, False, False, False],
    )
    assert not LearnedValues().met_again(hashes[0], 8)
