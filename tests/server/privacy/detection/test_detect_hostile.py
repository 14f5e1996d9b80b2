"""Texts made to break detection: any characters at all, very long lines, and very many findings."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealab.server.privacy.detection.detect import Detector, KeyedText, Mode
from sealab.server.privacy.detection.fields.judging import judge
from sealab.server.privacy.detection.findings import PiiType

from ..found import in_mode

NASTY = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from("\x00\u202e\u2066\u200b\ufeff\u0301ß\n\r\t\"'\\@=:<>|,;{}[]()0123456789 -+."),
    ),
    max_size=120,
)
LIKELY = st.sampled_from(
    [
        "jo@example.org",
        "DE89370400440532013000",
        "4111 1111 1111 1111",
        "+44 20 7946 0958",
        "Jane Doe",
        '"first_name": "Ann"',
    ]
)


def test_a_line_of_a_million_characters_is_read_to_its_end(fast: Detector) -> None:
    text = "x-y" * 330_000 + " jo@example.org " + "n" * 10_000
    last = fast.find(text)[-1]
    assert text[last.start : last.end] == "jo@example.org"


def test_many_findings_cost_no_more_than_they_are(fast: Detector) -> None:
    text = "\n".join(f"user{i}@example.org, +49 30 12{i:05}" for i in range(2_000))
    assert len(fast.find(text)) >= 4_000


@pytest.mark.parametrize("mode", list(Mode))
def test_texts_of_any_characters_give_valid_findings(mode: Mode) -> None:
    detector = in_mode(mode)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(st.one_of(NASTY, LIKELY), max_size=6).map("".join))
    def check(text: str) -> None:
        findings = detector.find(text)
        ends = [0, *itertools.chain.from_iterable((each.start, each.end) for each in findings), len(text)]
        assert ends == sorted(ends)
        assert all(each.end > each.start and 0 <= each.score <= 1 and each.type in set(PiiType) for each in findings)

    check()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(NASTY, max_size=3).map(tuple), st.one_of(NASTY, LIKELY)), max_size=5))
def test_leaves_of_any_characters_give_findings_within_themselves(leaves: list[tuple[tuple[str, ...], str]]) -> None:
    answers = in_mode(Mode.FAST).find_leaves([KeyedText(path, text) for path, text in leaves])
    assert len(answers) == len(leaves)
    for (_, text), findings in zip(leaves, answers, strict=True):
        assert all(0 <= each.start < each.end <= len(text) for each in findings)


@settings(max_examples=200, deadline=None)
@given(st.lists(NASTY, max_size=4), NASTY)
def test_any_key_and_value_can_be_judged(path: list[str], value: str) -> None:
    verdict = judge(path, value)
    assert verdict is None or 0 < verdict.score <= 1
