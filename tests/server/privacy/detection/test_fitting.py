"""What of a finding is hidden, and what is left as it is."""

from __future__ import annotations

import pytest

from sealab.sandbox.job import Json
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, KeyedText, Mode
from sealab.server.privacy.tokens.structured import leaves_of

FAST = Detector(DetectorOptions(mode=Mode.FAST))
BALANCED = Detector(DetectorOptions(mode=Mode.BALANCED))


def _found(detector: Detector, text: str) -> list[tuple[str, str]]:
    return [(text[each.start : each.end], each.type) for each in detector.find(text)]


def _in(value: Json, detector: Detector = BALANCED) -> list[str]:
    leaves = [KeyedText(leaf.path, leaf.text) for leaf in leaves_of(value)]
    found = detector.find_leaves(leaves)
    return [leaf.text[f.start : f.end] for leaf, each in zip(leaves, found, strict=True) for f in each]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Dr. Anna Weber met us.", "Anna Weber"),
        ("Frau Prof. Dr. Anna Weber kommt.", "Anna Weber"),
        ("Dipl.-Ing. Hans Maier kommt.", "Hans Maier"),
        ("Wczoraj pani Anna Kowalska była tutaj.", "Anna Kowalska"),
        ("डॉ. अमित शर्मा ने फ़ोन किया।", "अमित शर्मा"),
        ("اتصل الدكتور محمد القحطاني أمس.", "محمد القحطاني"),
        ("Звонила г-жа Анна Петрова.", "Анна Петрова"),
    ],
)
def test_a_title_is_no_part_of_a_name(text: str, name: str) -> None:
    assert (name, "PERSON") in _found(FAST, text)


def test_a_name_has_one_form_with_and_without_a_title_in_fields_too() -> None:
    assert _in([{"name": "Dr. Anna Weber"}, {"full_name": "Anna Weber"}]) == ["Anna Weber", "Anna Weber"]
    assert _in([{"氏名": "山田太郎様"}]) == ["山田太郎"]


@pytest.mark.parametrize(
    "text",
    [
        "channel,revenue\nmobile,773421.25\nweb,1200334.10\n",
        "channel,revenue\nmobile,7734215\nweb,1200334\n",
        "channel | revenue\nmobile | 7734215\nweb | 1200334\n",
        "phone: 773421.25",
        "account 1234567.89 balance",
        '{"mobile": 773421.25}',
    ],
)
def test_an_amount_is_no_number_of_a_person_for_the_word_beside_it(text: str) -> None:
    assert _found(BALANCED, text) == []


@pytest.mark.parametrize(
    "text", ["phone,5551234567", "Tel:\n030 1234567", "my mobile is 7734215", "phone\n555-867-5309\n"]
)
def test_a_number_whose_word_speaks_of_it_stays_one(text: str) -> None:
    assert [kind for _, kind in _found(FAST, text)] == ["PHONE"]


@pytest.mark.parametrize(
    "message",
    [
        "name 'recs' is not defined",
        "NameError: name 'jane' is not defined. Did you mean: 'janet'?",
        "NameError: name 'Paris' is not defined",
        "'list' object has no attribute 'maria'",
        "AttributeError: 'Jordan' object has no attribute 'paris'",
        "KeyError: 'PERSON'",
        "KeyError: 'warehouse'",
        "cannot import name 'Anna' from 'people'",
        "f() got an unexpected keyword argument 'mark'",
    ],
)
def test_what_code_calls_something_is_nobodys_name_in_a_message_of_an_error(message: str) -> None:
    assert _found(BALANCED, message) == []
    assert _in({"error": {"type": "NameError", "message": message, "line": 3}}) == []


def test_a_name_beside_such_a_message_is_hidden() -> None:
    text = "name 'recs' is not defined for Jane Doe"
    assert ("Jane Doe", "PERSON") in _found(BALANCED, text)


def test_what_is_allowed_stays_where_it_is_a_part_of_a_finding() -> None:
    text = "Please visit 12 Main Street, Springfield, IL 62704 with Anna Weber."
    allowing = Detector(DetectorOptions(mode=Mode.FAST, allow=("Springfield", "Weber")))
    said = [value for value, _ in _found(allowing, text)]
    assert "12 Main Street" in said
    assert "Anna" in said
    assert not any("Springfield" in value or "Weber" in value for value in said)
    expressions = Detector(DetectorOptions(mode=Mode.FAST, allow=("/Spring[a-z]+/",)))
    assert not any("Springfield" in value for value, _ in _found(expressions, text))


def test_a_part_of_what_cannot_be_divided_allows_nothing() -> None:
    allowing = Detector(DetectorOptions(mode=Mode.FAST, allow=("example.org", "jo")))
    assert _found(allowing, "write to jo@example.org") == [("jo@example.org", "EMAIL")]
    inner = Detector(DetectorOptions(mode=Mode.FAST, allow=("Web",)))
    assert _found(inner, "Dr. Anna Weber met us.") == [("Anna Weber", "PERSON")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"first_name": "May", "month": "May", "note": "In May sales rise"}', ["May"]),
        ("Dear May,\nthe price in May is fine.\nBest,\nPrice", ["May", "Price"]),
        ("month,dept,customer\nMay,Sales,May Sales\nJune,Price,Grant Price", ["May Sales", "Grant Price"]),
        ("Mr. Price and Mrs. May agreed in May on a price.", ["Price", "May"]),
    ],
)
def test_a_name_that_is_an_everyday_word_is_hidden_where_it_stands_as_the_name(text: str, names: list[str]) -> None:
    assert [value for value, kind in _found(BALANCED, text) if kind == "PERSON"] == names


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("PERSON", "Anna Weber", True),
        ("PERSON", "Dr. Anna Weber", False),
        ("PERSON", "Anna Springfield", False),
        ("PHONE", "030 1234567", True),
        ("PHONE", "773421.25", False),
        ("EMAIL", "jo@example.org", False),
    ],
)
def test_a_value_counts_as_a_whole_where_all_of_it_is_hidden(kind: str, value: str, kept: bool) -> None:
    detector = Detector(DetectorOptions(mode=Mode.FAST, allow=("Springfield", "jo@example.org")))
    assert detector.keeps(kind, 0.9, value) == kept
    assert not detector.keeps(kind, 0.1, value)
