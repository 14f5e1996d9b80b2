"""Logs: lines of one form are judged by a sample, and what is found is what the detector finds."""

from __future__ import annotations

import pytest

from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Finding, Mode
from sealab.server.privacy.detection.log_lines import LogFinder


class Counting(Detector):
    """Counts the characters that it looks at."""

    looked_at = 0

    def find(self, text: str) -> list[Finding]:
        self.looked_at += len(text)
        return super().find(text)


def lines(count: int) -> list[str]:
    made = []
    for number in range(count):
        at = f"2026-11-25T10:{number // 60 % 60:02}:{number % 60:02}Z"
        made.append(f"{at} INFO request id={number * 7919:012x}a path=/orders/{number} ms={number % 900}")
        if number % 3 == 0:
            made.append(f"{at} WARN login failed user=jane{number}@corp.example ip=10.1.{number % 250}.7")
    return made


@pytest.fixture
def detector() -> Counting:
    return Counting(DetectorOptions(mode=Mode.FAST))


def found(text: str, findings: list[Finding]) -> set[tuple[str, str]]:
    return {(text[each.start : each.end], str(each.type)) for each in findings}


def test_what_is_found_in_a_log_is_what_is_found_in_each_line(detector: Counting) -> None:
    text = "\n".join(lines(1500))
    finder = LogFinder(detector)
    assert detector.reads_as_log(text)
    mine = finder.find(text)
    assert detector.looked_at < len(text) / 2
    assert found(text, mine) == found(text, detector.find(text))
    assert mine == sorted(mine)


def test_a_line_that_differs_in_a_word_is_looked_at(detector: Counting) -> None:
    text = "\n".join([*lines(1500), "2026-11-25T11:00:00Z INFO customer_name=Jane Roe", "    email: jane@corp.example"])
    assert {("jane@corp.example", "EMAIL")} <= found(text, LogFinder(detector).find(text))
    assert ("Jane Roe", "PERSON") in found(text, LogFinder(detector).find(text))


def test_a_form_whose_lines_differ_in_what_is_found_is_looked_at_to_the_end(detector: Counting) -> None:
    numbers = [4_111_111_111_111_000 + number for number in range(900)]
    text = "\n".join(f"2026-11-25T10:00:{number % 60:02}Z INFO ref={number}" for number in numbers)
    assert found(text, LogFinder(detector).find(text)) == found(text, detector.find(text)) != set()


@pytest.mark.parametrize("text", ["short 10:00:00", "No log, but prose. " * 3000, "name,mail\n" + "a,b\n" * 9000])
def test_other_texts_are_no_logs(detector: Counting, text: str) -> None:
    assert not detector.reads_as_log(text)


def test_with_patterns_of_the_operator_every_line_is_looked_at() -> None:
    own = Detector(DetectorOptions(mode=Mode.FAST, patterns={"STAFF_ID": "E-[0-9]{6}"}))
    assert not own.reads_as_log("\n".join(lines(1500)))
