"""What the check of regular expressions refuses, and what it takes; `make lint` runs it on the server's process."""

from __future__ import annotations

import re

import pytest

from .__main__ import Exempt, refused, unjudged, worst
from .ambiguity import STEPS_MAX, Use, judge
from .sources import elsewhere, found_in

EXPONENTIAL = [
    r"(?:a+)+x", r"(?:a*)*x", r"(?:a|a)*x", r"(?:a|ab|b)*x", r"(?:(?:a?|b?)c)*x", r"(?:\w+\s?)*x", r"(?:\s*,?)*x",
    r"(?:[\w']{1,16}\W{1,4}){0,4}\Z", r"(?:\s|//[^\n]*)*x",
]  # fmt: skip
POLYNOMIAL = [
    r"\s+$", r"\s*\n\s*", r"\w+@", r".*x", r"a*a*x", r"(?=[^a-z]*[a-z])\w", r'"(?:[^"\\]|\\.)*"', r"/\*.*?\*/",
    r"(?:a[ab]*c)|a", r"[ac]*?(?:c+d)?", r"\w(?=\w*)", r"\s*+x", r"[^\n]*(?:\s+x)?", r"(?:[ab](?:b*c)?)*",
    r"\w{1,200}@", r"(?m)^(?:\s*)+x", r"(\w+)\1",
]  # fmt: skip
LINEAR = [
    r"\w+", r"\b\w+@", r"(?<![\w.])[\w.]+@", r"(?<!\s)\s*\n\s*", r"(?<!\s)\s+$", r"\A.*x", r"^.*x", r"(?:ab|ab)*",
    r"[ \t]*+", r"[A-Za-z0-9+/]{8,}={0,2}", r"(?:true|false|\d+)*+", r"(?:\d{4}[ -]?){4}", r"\w{1,16}@",
    r"\w+(?:,\d+x)?", r'(?<!\\)"(?:[^"\\]|\\.)*"', r"/\*[^*]*+(?:\*++[^*/][^*]*+)*+(?:\*++/?)?", r"([-.])\d\1",
]  # fmt: skip


@pytest.mark.parametrize("pattern", EXPONENTIAL)
def test_an_exponential_expression_is_refused_with_a_text_that_shows_it(pattern: str) -> None:
    judgement = judge(pattern, 0, Use.SEARCH)
    assert judgement.is_exponential
    assert judgement.pump


@pytest.mark.parametrize("pattern", POLYNOMIAL)
def test_an_expression_that_a_search_tries_anew_from_many_places_is_refused(pattern: str) -> None:
    assert not judge(pattern, 0, Use.SEARCH).is_linear


@pytest.mark.parametrize("pattern", LINEAR)
def test_a_linear_expression_is_taken(pattern: str) -> None:
    assert judge(pattern, 0, Use.SEARCH).steps <= STEPS_MAX


def test_what_is_matched_at_one_place_may_have_a_loop_and_what_has_to_match_whole_may_not_split_it() -> None:
    assert judge(r"\w+@", 0, Use.MATCH).is_linear
    assert judge(r"\w+\w+", 0, Use.SEARCH).is_linear is False
    assert not judge(r"[a-z]+[0-9]*[a-z]+", 0, Use.FULLMATCH).is_linear


def test_flags_and_bytes_count() -> None:
    assert judge(r"(?<![a-z])[a-z]+@", 0, Use.SEARCH).is_linear
    assert not judge(r"(?<![a-z])[a-zA-Z]+@", 0, Use.SEARCH).is_linear
    assert judge(r"(?<![a-z])[a-zA-Z]+@", re.IGNORECASE, Use.SEARCH).is_linear
    assert not judge(rb"\s+$", 0, Use.SEARCH).is_linear


SOURCE = r"""
import re
WORD = r"\w+"
_SEARCHED = re.compile(rf"{WORD}@", re.ASCII)
_MATCHED = re.compile(rf"{WORD}@")
_GIVEN_ON = re.compile("a")
def work(text, names):
    _SEARCHED.sub("", text)
    _MATCHED.fullmatch(text)
    list(map(_GIVEN_ON.match, names))
    re.split(r"\s+$", text, flags=re.MULTILINE)
    re.search(rf"a{re.escape(text)}", text)
    re.compile("|".join(names))
"""


def test_expressions_are_found_evaluated_and_by_their_uses() -> None:
    source = SOURCE.replace('rf"{WORD}@"', r'r"\w+" + "@"')
    found = {each.pattern: each for each in found_in(source)}
    assert {each.uses for each in found_in(source) if each.pattern == r"\w+@"} == {
        frozenset({Use.SEARCH}), frozenset({Use.FULLMATCH})
    }  # fmt: skip
    assert found[r"\s+$"].flags == re.MULTILINE
    assert found["a"].uses == {Use.SEARCH}
    assert "a(?s:.)" in found
    assert found[None].source == "'|'.join(names)"


def test_an_exception_needs_a_bound_and_a_reason_and_is_taken_out_when_it_is_no_longer_needed() -> None:
    found = found_in(
        r're.search(r"\s+$", text); re.search(r"(?:a+)+x", text); re.search(named, text)'.replace("re.", "re.", 1)
    )
    quadratic = Exempt("example.py", r"\s+$", "It is a line.", chars=500)
    exponential = Exempt("example.py", r"(?:a+)+x", "It is short.", chars=20)
    made = Exempt("example.py", "named", "A name.", stands=r"\w+")
    assert [worst(each).is_linear for each in found] == [False, False, False]
    assert len(list(refused(found, []))) == 3
    (wrong,) = refused(found, [quadratic, exponential, made])
    assert "exponential" in wrong
    wrong = list(refused(found, [Exempt("example.py", "named", "A name.", stands=r"\s+$"), quadratic, exponential]))
    assert sum("also as" in each for each in wrong) == 1
    assert any("Take that out" in each for each in refused([], [quadratic]))
    assert any("needs either" in each for each in refused(found, [Exempt("example.py", r"\s+$", "", chars=10**6)]))


def test_what_the_server_imports_of_what_runs_elsewhere_is_judged_or_named() -> None:
    assert elsewhere("server/privacy/reading/encodings.py") == "readers"
    assert elsewhere("sandbox/dialect/compiling.py") == "workers"
    assert elsewhere("sandbox/host/readers.py") is None
    loaded = {
        "sealab.server.app",
        "sealab.server.privacy",
        "sealab.server.privacy.detection.recognizers.phones",
        "json",
    }
    judged = ["server/app.py", "server/privacy/__init__.py"]
    assert list(unjudged(loaded, judged)) == ["sealab.server.privacy.detection.recognizers.phones"]
