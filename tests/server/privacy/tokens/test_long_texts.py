"""Long tables, lines of JSON and logs: hidden and learned as short ones are, and put back as they were."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pytest

from sealab.server.base.errors import PrivacyFailed
from sealab.server.privacy.detection.detect import Detector, DetectorOptions, Finding, KeyedText, Mode
from sealab.server.privacy.token_texts import TOKEN
from sealab.server.privacy.tokens import scope as module
from sealab.server.privacy.tokens import streams
from sealab.server.privacy.tokens.grids import LEAST_CHARS
from sealab.server.privacy.tokens.parts import Text, Tree
from sealab.server.privacy.tokens.run_tokens import Brake, RunTokens
from sealab.server.privacy.tokens.sanitizer import Sanitizer
from sealab.server.privacy.tokens.streams import FileKind
from sealab.skills_db.engine import open_database
from sealab.skills_db.vault import Vault

KEY = bytes(range(32))
ROWS = 250
PERSONAL = ("customer_name", "email", "phone", "street")


class Counting(Detector):
    """Counts the texts that it looks at."""

    looked_at = 0

    def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]:
        self.looked_at += len(leaves)
        return super().find_leaves(leaves)


def people(count: int = ROWS) -> list[dict[str, str]]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [f"Ana{letters[n // 26 % 26]}{letters[n % 26]} Sör{letters[n * 7 % 26]}li" for n in range(count)]
    return [
        {
            "id": str(10_000 + number),
            "customer_name": name,
            "email": f"{name.split()[0].lower()}{number}@corp.example",
            "phone": f"+49 30 {5_550_000 + number}",
            "street": f"Lange Straße {number + 1}",
            "status": "active" if number % 3 else "closed",
            "notes": "" if number % 50 else f'asked "{name}" twice, then called +49 40 {7_770_000 + number}',
        }
        for number, name in enumerate(names)
    ]


def table(rows: Sequence[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def json_lines(rows: Sequence[dict[str, str]]) -> str:
    return "".join(json.dumps({**row, "id": int(row["id"])}, ensure_ascii=False) + "\n" for row in rows)


WRITTEN = {"table": table(people()), "lines of JSON": json_lines(people())}


@pytest.fixture
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    with open_database(None, tmp_path_factory.mktemp("vault")) as database:
        yield Vault(database, KEY)


@pytest.fixture
def detector() -> Counting:
    return Counting(DetectorOptions(mode=Mode.FAST))


@pytest.fixture
def sanitizer(vault: Vault, detector: Counting) -> Sanitizer:
    return Sanitizer(detector, vault)


def hidden(sanitizer: Sanitizer, text: str, run_tokens: RunTokens | None = None) -> str:
    return cast("str", sanitizer.hide("home", [Text(text)], run_tokens=run_tokens).parts[0])


def test_all_that_is_personal_is_a_token_as_in_a_short_text_and_comes_back(sanitizer: Sanitizer) -> None:
    assert min(map(len, WRITTEN.values())) > LEAST_CHARS
    short = hidden(sanitizer, table(people()[:2]))
    shown = {kind: hidden(sanitizer, text) for kind, text in WRITTEN.items()}
    for kind, text in shown.items():
        assert not [value for row in people() for key in PERSONAL for value in [row[key]] if value in text]
        assert "+49 40" not in text
        assert sanitizer.restore_text("home", text).content == WRITTEN[kind]
    rows = list(csv.DictReader(io.StringIO(shown["table"])))
    records = [json.loads(line) for line in shown["lines of JSON"].splitlines()]
    for person, row, record in zip(people(), rows, records, strict=True):
        assert all(TOKEN.fullmatch(row[key]) for key in PERSONAL)
        assert [row[key] for key in PERSONAL] == [record[key] for key in PERSONAL]
        assert (row["id"], record["id"]) == (person["id"], int(person["id"]))
        assert row["status"] == record["status"] == person["status"]
        if row["notes"]:
            assert row["customer_name"] in row["notes"]
    assert shown["table"].startswith(short)
    assert hidden(sanitizer, table(people()[7:9])).splitlines()[1] == shown["table"].splitlines()[8]


def test_rows_that_are_wider_or_narrower_are_hidden_too(sanitizer: Sanitizer) -> None:
    odd = "1,Jane Oddly,jane.oddly@corp.example\n2,Eva Oddly,eva@corp.example,+49 30 111222,Weg 4,active,,more,eva2@corp.example\n"
    shown = hidden(sanitizer, WRITTEN["table"] + odd)
    for value in ("Jane Oddly", "jane.oddly@", "Eva Oddly", "eva@", "111222", "eva2@"):
        assert value not in shown
    assert shown.endswith("]\n")


def test_what_one_part_gives_away_is_hidden_in_the_others(sanitizer: Sanitizer) -> None:
    name, given = people()[3]["customer_name"], "Zoë Quill"
    rows = [*people(), {**people()[0], "status": f"for {given}"}]
    parts = [Text(table(rows)), Text(f"It was {name}."), Tree({"customer_name": given})]
    shown = sanitizer.hide("home", parts)
    assert name not in str(shown.parts)
    assert given not in str(shown.parts)
    assert shown.types["EMAIL"] == ROWS


def test_what_is_hidden_already_stays_as_it_is(sanitizer: Sanitizer) -> None:
    once = hidden(sanitizer, WRITTEN["table"])
    assert hidden(sanitizer, once) == once
    again = hidden(sanitizer, once + once.splitlines(keepends=True)[5])
    assert sanitizer.restore_text("home", again).content == WRITTEN["table"] + WRITTEN["table"].splitlines(True)[5]


def test_headings_and_keys_are_hidden_where_they_are_personal(sanitizer: Sanitizer) -> None:
    name = "Jane Roe"
    rows = [{**row, name: str(number)} for number, row in enumerate(people())]
    rows[3]["customer_name"] = name
    for text in (table(rows), json_lines(rows), json_lines([{**row, "jane@corp.example": "1"} for row in rows])):
        shown = hidden(sanitizer, text)
        assert name not in shown
        assert "jane@corp" not in shown
        assert sanitizer.restore_text("home", shown).content == text


def log(count: int) -> str:
    return "".join(
        f"2026-11-25T10:{number // 60 % 60:02}:{number % 60:02}Z WARN login failed user=u{number}@corp.example try={number}\n"
        for number in range(count)
    )


PROSE = "Nothing happened. " * 1500 + f"Write to u77@corp.example. {'It rained. ' * 100}"


@pytest.mark.parametrize("text", [*WRITTEN.values(), log(900), PROSE], ids=[*WRITTEN, "log", "prose"])
def test_what_was_learned_is_known_where_it_stands_alone(
    sanitizer: Sanitizer, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORDS_OF_TABLES_MAX", 0)  # by its hash alone
    sanitizer.learn("home", [Text(text)])
    values = ["u77@corp.example"] if "u77@" in text else [people()[200][key] for key in PERSONAL]
    for value in values:
        assert value not in hidden(sanitizer, f"({value})")
        assert value.upper() not in hidden(sanitizer, f"({value.upper()})")


def test_the_same_text_is_learned_once_and_known_to_each_run(
    sanitizer: Sanitizer, detector: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORDS_OF_TABLES_MAX", 0)
    brake = Brake(0, 60)
    sanitizer.learn("home", [Text(WRITTEN["table"])], RunTokens("home", brake))
    seen = detector.looked_at
    run = RunTokens("home", brake)
    sanitizer.learn("home", [Text(WRITTEN["table"])], run)
    assert detector.looked_at == seen
    name = people()[8]["customer_name"]
    own = hidden(sanitizer, name, RunTokens("home"))
    assert hidden(sanitizer, name, run) == own
    assert hidden(sanitizer, name, RunTokens("home", brake)) != own, "a run that was not given it could be trying it"


def test_a_table_that_a_run_was_not_given_has_tokens_of_its_own(sanitizer: Sanitizer) -> None:
    own = hidden(sanitizer, WRITTEN["table"], RunTokens("home"))
    run = RunTokens("home", Brake(0, 60))
    apart = hidden(sanitizer, WRITTEN["table"], run)
    assert not {*TOKEN.findall(own)} & {*TOKEN.findall(apart)}
    assert hidden(sanitizer, WRITTEN["table"], run) == apart
    assert sanitizer.restore_text("home", apart).content == WRITTEN["table"]


def test_what_is_forgotten_is_not_known_any_more(sanitizer: Sanitizer, vault: Vault) -> None:
    hidden(sanitizer, WRITTEN["table"])
    name = people()[8]["customer_name"]
    assert name not in hidden(sanitizer, f"({name})")
    vault.forget_entries(vault.person(name).found)
    sanitizer.hide("home", [Text("x")])
    assert name in hidden(sanitizer, f"({name})")


def test_what_is_learned_stays_known_when_others_forget(sanitizer: Sanitizer, vault: Vault) -> None:
    hidden(sanitizer, "jane.roe@corp.example")
    sanitizer.hide("ended", [Text("eva@corp.example")])
    sanitizer.learn("home", [Text(WRITTEN["table"]), Tree({"customer_name": "Zoë Quill"})])
    vault.drop_scopes(["ended"])
    for name in (people()[8]["customer_name"], "Zoë Quill"):
        assert name not in hidden(sanitizer, f"({name})")


def test_more_than_a_run_may_bring_is_refused_whole(sanitizer: Sanitizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealab.server.privacy.tokens.run_tokens.STORED_MAX", 100)
    with pytest.raises(Exception, match="more than 100 new personal values"):
        hidden(sanitizer, WRITTEN["table"], RunTokens("home"))


def test_a_failing_detector_lets_nothing_through(vault: Vault) -> None:
    class Broken(Detector):
        def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]:
            raise ValueError(leaves[0].text)

    broken = Sanitizer(Broken(), vault)
    for text in WRITTEN.values():
        with pytest.raises(PrivacyFailed, match="nothing is shown"):
            hidden(broken, text)
        with pytest.raises(PrivacyFailed, match="nothing is shown"):
            broken.learn("home", [Text(text)])


@pytest.mark.parametrize("size", [25_000, 10_000_000])
@pytest.mark.parametrize(("kind", "written"), [(FileKind.CSV, table), (FileKind.JSON, json_lines)])
def test_a_file_is_hidden_alike_in_pieces_of_any_size(
    sanitizer: Sanitizer, monkeypatch: pytest.MonkeyPatch, size: int, kind: FileKind, written: Callable[..., str]
) -> None:
    monkeypatch.setattr(streams, "GRID_CHARS", size)
    text = written(people(400))
    assert len(text) > 25_000
    tally = streams.Tally()
    shown = "".join(streams.sanitized(sanitizer, "home", io.StringIO(text), kind, tally))
    assert shown == hidden(sanitizer, text)
    assert tally.types()["EMAIL"] == 400
    restored = streams.restored(sanitizer, "home", io.StringIO(shown), kind, streams.Tally())
    assert "".join(restored) == text


def test_a_row_without_end_is_still_looked_at_below_its_headings(
    sanitizer: Sanitizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "GRID_CHARS", 25_000)
    monkeypatch.setattr(streams, "_GRID_CHARS_MAX", 50_000)
    broken = WRITTEN["table"].rstrip("\n") + '"\n' + table(people(900)[ROWS:]).partition("\n")[2]
    shown = "".join(streams.sanitized(sanitizer, "home", io.StringIO(broken), FileKind.CSV, streams.Tally()))
    assert not [row["customer_name"] for row in people(900) if row["customer_name"] in shown]


def test_a_line_that_is_not_json_is_named(sanitizer: Sanitizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "GRID_CHARS", 25_000)
    lines = WRITTEN["lines of JSON"].splitlines(keepends=True)
    text = "".join([*lines[:200], "Jane Roe, jane@corp.example\n", *lines[200:]])
    with pytest.raises(Exception, match="Line 201 of the input is not valid JSON"):
        list(streams.sanitized(sanitizer, "home", io.StringIO(text), FileKind.JSON, streams.Tally()))
