"""Values that the vault knows, or that are known by a hash alone, are found wherever they stand, and nothing else is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.base.errors import HostWorkRefused
from sealab.server.base.host_work import Account, Kind, charged_to, in_thread
from sealab.server.privacy.tokens import learned_values
from sealab.server.privacy.tokens.known_values import KnownValues
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


def known_in(text: str, **values: str) -> list[tuple[str, str]]:
    known = KnownValues()
    for kind, value in values.items():
        known.add(value, kind)
    return [(text[span.start : span.end], span.type) for span in known.find(text)]


def test_a_name_is_found_as_a_word_and_not_within_another() -> None:
    assert known_in("Ann Lee met Ann Leeson.", PERSON="Ann Lee") == [("Ann Lee", "PERSON")]


@pytest.mark.parametrize("text", ["xq7Rz-91kLmP", "q7Rz-91kLmPx", "q7Rz-91kLmP_2", "q7Rz-91kLmP"])
def test_a_secret_is_found_with_other_letters_beside_it_too(text: str) -> None:
    assert known_in(text, SECRET="q7Rz-91kLmP") == [("q7Rz-91kLmP", "SECRET")]


def test_a_secret_written_twice_is_found_twice() -> None:
    assert len(known_in("q7Rz-91kLmP" * 2, SECRET="q7Rz-91kLmP")) == 2


def test_of_many_values_the_newer_half_is_found_and_what_is_met_again_is_new() -> None:
    known = KnownValues(100)
    names = [f"user{number}@corp.example" for number in range(220)]
    for name in names:
        known.add(name, "EMAIL")
        known.add(names[0], "EMAIL")
    assert len(known) <= 101
    found = {span.start for span in known.find(" ".join(names))}
    assert {(" ".join(names)).index(name) for name in (names[0], *names[-50:])} <= found
    assert known.kind_of(names[100]) is None
    assert known.add(names[100], "EMAIL")
    assert not known.add(names[100], "EMAIL")


def test_what_is_known_takes_no_more_memory_the_longer_values_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.server.privacy.tokens.known_values.KNOWN_CHARS_MAX", 10_000)
    known = KnownValues()
    for number in range(500):
        known.add(f"{number} {'x' * 1000}", "ADDRESS")
    assert len(known) <= 12


@pytest.mark.parametrize("count", [5, 400])
def test_secrets_are_found_between_letters_however_many_there_are(count: int) -> None:
    known = KnownValues()
    secrets = [f"{chr(97 + number % 26)}{number:03}Zq8sT5vR2n" for number in range(count)]
    for secret in secrets:
        known.add(secret, "SECRET")
    text = "".join(f"x{secret}y" for secret in secrets[:5]) + "漢"
    known.add("漢字", "PERSON")
    assert [text[span.start : span.end] for span in known.find(text)] == secrets[:5]
    assert [span.type for span in known.find("是漢字的")] == ["PERSON"]


async def test_looking_for_many_secrets_that_begin_alike_ends_with_the_time_of_its_run() -> None:
    known = KnownValues()
    for number in range(1, 1000):
        known.add(f"aaaaaaaa{'b' * number}", "SECRET")

    def look() -> float:
        before = time.thread_time()
        with pytest.raises(HostWorkRefused):
            list(known.find("a" * 300_000))
        return time.thread_time() - before

    with charged_to(Account(0.05)):
        assert await in_thread(Kind.LONG_PRIVACY, look) < 1


@pytest.mark.parametrize(("kind", "letter"), [("CARD", "1"), ("ADDRESS", "王")])
def test_of_values_that_are_parts_of_one_another_so_many_are_given_as_cover_the_text(kind: str, letter: str) -> None:
    learned = LearnedValues()
    learned.add(kind, [letter * number for number in range(8, 41)])
    text = f"a {letter * 2_000} b"
    spans = list(learned.find(text))
    assert len(spans) <= 2_000 / 40 + 1
    assert {place for span in spans for place in range(span.start, span.end)} == set(range(2, 2_002))
    assert {text[span.start : span.end] for span in learned.find(f"a {letter * 9}, {letter * 12}")} == {
        letter * 9,
        letter * 12,
    }
