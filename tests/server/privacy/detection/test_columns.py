"""Columns and logs: what a heading or a sample says is what the detector finds in each cell and each line."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sealab.server.privacy.detection import keys
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Finding, KeyedText, Mode
from sealab.server.privacy.detection.recognizers import tables
from sealab.server.privacy.detection.samples import CELLS_SAMPLED, ColumnFinder, LogFinder, is_log

MANY = CELLS_SAMPLED * 5


class Counting(Detector):
    """Counts the texts that it looks at."""

    looked_at = 0

    def find_leaves(self, leaves: list[KeyedText]) -> list[list[Finding]]:  # type: ignore[override]  # a list is one
        self.looked_at += len(leaves)
        return super().find_leaves(leaves)


def detector(**options: object) -> Counting:
    return Counting(DetectorOptions(mode=Mode.FAST, **options))  # type: ignore[arg-type]  # given by name


@pytest.fixture(scope="module")
def plain() -> Counting:
    return detector()


COLUMNS = {
    "customer_name": [f"{first} {last}" for first in ("Jane", "José", "Anne-Marie") for last in ("Roe", "O'Hara", "Li")]
    + ["", "unknown", "N/A", "Acme Holdings Ltd", "42", "jane.roe@corp.example"],
    "email": ["jane.roe@corp.example", "none", "-", "call +49 30 1234567"],
    "phone": ["+49 30 1234567", "030/1234567", "mobile"],
    "notes": ["called on Monday", "met Jane Roe at +49 30 1234567", "jane.roe@corp.example", "4111 1111 1111 1111"],
    "amount": ["12.50", "0.1", "7"],
    "street": ["Main Street 4", "Hauptstr. 12", "n/a"],
    "status": ["active", "closed"],
}


@pytest.mark.parametrize("heading", COLUMNS)
def test_each_cell_is_judged_as_it_is_alone(plain: Counting, heading: str) -> None:
    texts = COLUMNS[heading]
    found = ColumnFinder(plain).find(("0", heading), texts, COLUMNS)
    whole = {text: kind for kind, some in found.whole.items() for text in some}
    for text, alone in zip(texts, plain.find_leaves([KeyedText(("0", heading), text) for text in texts]), strict=True):
        covered = {at for each in alone for at in range(each.start, each.end)}
        mine = found.within.get(text, [])
        assert covered <= (set(range(len(text))) if text in whole else {p for f in mine for p in range(f.start, f.end)})
        assert alone or (text not in whole and not mine)


@pytest.mark.parametrize(
    ("heading", "cell", "kind"),
    [
        ("order", "{:08}", None),
        ("at", "2026-11-25T10:00:00.{:03}Z", None),
        ("total", "{}.50", None),
        ("ref", "ORD-{:06}", None),
        ("contact", "jane{}@corp.example", "EMAIL"),
    ],
)
def test_of_many_cells_of_one_form_a_sample_is_looked_at(
    plain: Counting, heading: str, cell: str, kind: str | None
) -> None:
    finder = ColumnFinder(plain)
    before = plain.looked_at
    texts = [cell.format(number) for number in range(MANY)]
    found = finder.find(("0", heading), texts)
    assert found.whole == ({kind: texts} if kind else {})
    assert plain.looked_at - before < MANY
    assert finder.find(("0", heading), ["Call jane.roe@corp.example"]).within


def test_where_a_sample_differs_every_cell_is_looked_at(plain: Counting) -> None:
    cards = [f"{number:016}" for number in range(4_111_111_111_111_000, 4_111_111_111_111_000 + MANY)]
    found = ColumnFinder(plain).find(("0", "reference"), cards)
    alone = [
        each for each, some in zip(cards, plain.find_leaves([KeyedText((), c) for c in cards]), strict=True) if some
    ]
    assert set(found.whole.get("CARD", ())) >= set(alone) != set()
    assert len(found.whole["CARD"]) < MANY


def test_names_are_taken_for_people_only_below_a_heading_that_names_people(plain: Counting) -> None:
    names = [f"Jane {chr(65 + number // 26)}{chr(97 + number % 26)}ez" for number in range(MANY)]
    names = [name for name in names if name.split()[1].isascii() and name.replace(" ", "").isalpha()]
    assert set(ColumnFinder(plain).find(("0", "customer_name"), names).whole["PERSON"]) == set(names)


def test_beside_a_price_a_name_is_judged_as_the_detector_does(plain: Counting) -> None:
    texts = ["Blue Chair", "Oak Table", "Vera Stone"]
    leaves = [
        leaf
        for row, text in enumerate(texts)
        for leaf in (KeyedText((str(row), "name"), text), KeyedText((str(row), "price"), "7"))
    ]
    alone = {text: bool(found) for text, found in zip(texts, plain.find_leaves(leaves)[::2], strict=True)}
    people = ColumnFinder(plain).find(("0", "name"), texts, ["name", "price"]).whole.get("PERSON", ())
    assert {text: text in people for text in texts} == alone
    assert not all(alone.values())


def test_what_the_operator_allows_or_asks_for_holds_in_columns() -> None:
    texts = [f"jane{number}@corp.example" for number in range(MANY)]
    allowing = ColumnFinder(detector(allow=("jane7@corp.example", "/jane[0-9]{3}@.*/")))
    for heading in ("email", "contact"):
        assert set(allowing.find(("0", heading), texts).whole["EMAIL"]) == {*texts[:100]} - {"jane7@corp.example"}
    assert not ColumnFinder(detector(types=frozenset({"CARD"}))).find(("0", "email"), texts).whole
    own = ColumnFinder(detector(patterns={"STAFF_ID": "70[0-9]{4}7"}))
    numbers = [str(number) for number in range(7_000_000, 7_000_000 + MANY)]
    assert own.find(("0", "ref"), numbers).whole["STAFF_ID"] == [each for each in numbers if each.endswith("7")]


PRINTED = [
    # pandas: rows, an index with a name, a wrapped table, one on its side; a column, with an index, and a row
    "   id           name  amount\n0   0  Xela Quorvath     9.5\n1   1  Ib Brandstett    10.0",
    "               id  amount\nname                     \nIb Brandstett   1    10.0\nXela Quorvath   0     9.5",
    "            name  amount  \\\n0  Xela Quorvath     9.5   \n\n                    c  \n0  xxxxxxxxxxxxxxxxxx  ",
    "            name  ...             d\n0  Xela Quorvath  ...  yyyyyyyyyyyy\n\n[1 rows x 4 columns]",
    "                    0              1\nid                  0              1\nname    Xela Quorvath  Ib Brandstett",
    "id\n0    Xela Quorvath\n1    Ib Brandstett\nName: name, dtype: str",
    "name\nIb Brandstett    10.0\nXela Quorvath     9.5\nName: amount, dtype: float64",
    "id                    0\nname      Xela Quorvath\namount              9.5\nName: 0, dtype: object",
    # polars, DuckDB
    """
┌─────┬───────────────┐
│ id  ┆ name          │
│ --- ┆ ---           │
│ i64 ┆ str           │
╞═════╪═══════════════╡
│ 0   ┆ Xela Quorvath │
└─────┴───────────────┘
""",
    """
┌───────┬───────────────┐
│  id   │     name      │
│ int32 │    varchar    │
├───────┼───────────────┤
│     1 │ Xela Quorvath │
└───────┴───────────────┘
""",
]


@pytest.mark.parametrize("printed", PRINTED)
def test_the_heading_of_a_column_speaks_of_what_is_printed_below_it(plain: Counting, printed: str) -> None:
    found = {printed[each.start : each.end] for each in plain.find(printed) if each.type == "PERSON"}
    assert "Xela Quorvath" in found


def test_of_aligned_columns_only_those_are_personal_whose_headings_say_so(plain: Counting) -> None:
    printed = "   city_count        product          owner\n0           3  Xela Quorvath  Ib Brandstett"
    assert [printed[each.start : each.end] for each in plain.find(printed)] == ["Ib Brandstett"]


def test_who_somebody_is_to_somebody_is_said_in_many_languages(plain: Counting) -> None:
    for heading in (
        *("buyer", "Käufer", "Verkäuferin", "acheteur", "vendedor", "venditore", "verkoper"),
        *("Käufer*in", "k\ufffdufer", "k\ufffd\ufffdufer", "kupuj\ufffdc\ufffd", "kÃ¤ufer", "Name des Käufers"),
        *("nabywca", "zákazník", "vásárló", "cumpărător", "köpare", "køber", "ostaja", "kupac", "Müşteri", "élève"),
        *("paciente", "inquilino", "huurder", "khách hàng", "pembeli", "покупатель", "купувач", "購入者", "买家"),
        *("구매자", "खरीदार", "المشتري", "πελάτης", "לקוח", "ลูกค้า"),
    ):
        (found,) = plain.find_leaves([KeyedText(("0", heading), "Xela Quorvath")])
        assert [(each.start, each.end, each.type) for each in found] == [(0, 13, "PERSON")], heading
    for heading in ("Größe", "host", "tag", "Käufertyp", "student count", "имя файла", "商品名", "k\ufffdrbe"):
        assert plain.find_leaves([KeyedText(("0", heading), "Xela Quorvath")]) == [[]], heading


def test_columns_that_are_printed_one_below_the_other_are_each_looked_at_once(
    plain: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    monkeypatch.setattr(tables, "field", lambda *given: looked_at.append(given) or [])
    assert list(tables.tables("Name:     a, dtype: object\n" * 500)) == []
    assert len(looked_at) < 1000


def test_a_heading_with_lost_letters_is_tried_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(keys, "rule_for", tried.append)
    monkeypatch.setattr(keys, "is_name_key", lambda words: bool(tried.append(words)))  # type: ignore[func-returns-value]  # none is one
    for heading in ("zq\ufffdx", "zq\ufffdx\ufffdy", "zq\ufffdx\ufffdy\ufffdz"):
        tried.clear()
        keys.in_words(heading)
        assert len(tried) < 100


class CountingCharacters(Detector):
    """Counts the characters that it looks at."""

    looked_at = 0

    def _find(self, text: str, told: Sequence[Finding]) -> list[Finding]:
        self.looked_at += len(text)
        return super()._find(text, told)


def lines(count: int) -> list[str]:
    made = []
    for number in range(count):
        at = f"2026-11-25T10:{number // 60 % 60:02}:{number % 60:02}Z"
        made.append(f"{at} INFO request id={number * 7919:012x}a path=/orders/{number} ms={number % 900}")
        if number % 3 == 0:
            made.append(f"{at} WARN login failed user=jane{number}@corp.example ip=10.1.{number % 250}.7")
    return made


@pytest.fixture
def counting() -> CountingCharacters:
    return CountingCharacters(DetectorOptions(mode=Mode.FAST))


def found(text: str, findings: list[Finding]) -> set[tuple[str, str]]:
    return {(text[each.start : each.end], str(each.type)) for each in findings}


def test_what_is_found_in_a_log_is_what_is_found_in_each_line(counting: CountingCharacters) -> None:
    text = "\n".join(lines(1500))
    (mine,) = counting.find_leaves([KeyedText((), text)])
    assert counting.looked_at < len(text) / 2
    assert found(text, mine) == found(text, counting.find(text))
    assert mine == sorted(mine)


def test_a_line_that_differs_in_a_word_is_looked_at(counting: CountingCharacters) -> None:
    text = "\n".join([*lines(1500), "2026-11-25T11:00:00Z INFO customer_name=Jane Roe", "    email: jane@corp.example"])
    assert {("jane@corp.example", "EMAIL")} <= found(text, LogFinder(counting).find(text))
    assert ("Jane Roe", "PERSON") in found(text, LogFinder(counting).find(text))


def test_a_form_whose_lines_differ_in_what_is_found_is_looked_at_to_the_end(counting: CountingCharacters) -> None:
    numbers = [4_111_111_111_111_000 + number for number in range(900)]
    text = "\n".join(f"2026-11-25T10:00:{number % 60:02}Z INFO ref={number}" for number in numbers)
    assert found(text, LogFinder(counting).find(text)) == found(text, counting.find(text)) != set()


@pytest.mark.parametrize("text", ["short 10:00:00", "No log, but prose. " * 3000, "name,mail\n" + "a,b\n" * 9000])
def test_other_texts_are_no_logs(text: str) -> None:
    assert not is_log(text)


def test_with_patterns_of_the_operator_every_line_is_looked_at() -> None:
    own = CountingCharacters(DetectorOptions(mode=Mode.FAST, patterns={"STAFF_ID": "E-[0-9]{6}"}))
    own.find_leaves([KeyedText((), text := "\n".join(lines(1500)))])
    assert own.looked_at >= len(text)
