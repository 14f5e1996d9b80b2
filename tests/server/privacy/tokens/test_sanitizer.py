"""Tokens in texts and in JSON: what goes in comes out, whatever was found in it and however it is written."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, cast
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealab.server.base.errors import PrivacyFailed
from sealab.server.privacy.detection.detect import DetectionFailed, Detector, DetectorOptions, Finding, KeyedText, Mode
from sealab.server.privacy.token_texts import TOKEN
from sealab.server.privacy.tokens import streams
from sealab.server.privacy.tokens.parts import Text, Tree
from sealab.server.privacy.tokens.sanitizer import Sanitizer
from sealab.server.privacy.tokens.streams import FileKind
from sealab.skills_db.vault import Value, Vault

Finds = Callable[[KeyedText], Sequence[tuple[int, int, str]]]


class Told(Detector):
    """Finds what a test says."""

    def __init__(self, finds: Finds) -> None:
        super().__init__()
        self.finds = finds
        self.asked = 0

    def find_leaves(self, leaves: Sequence[KeyedText]) -> list[list[Finding]]:
        self.asked += len(leaves)
        return [[Finding(start, end, kind, 0.9) for start, end, kind in self.finds(leaf)] for leaf in leaves]


def finding(words: dict[str, str]) -> Finds:
    """Find each of the words wherever it stands."""

    def find(leaf: KeyedText) -> list[tuple[int, int, str]]:
        found = []
        for word, kind in words.items():
            at = leaf.text.find(word)
            while at >= 0:
                found.append((at, at + len(word), kind))
                at = leaf.text.find(word, at + len(word))
        return found

    return find


def hidden(sanitizer: Sanitizer, text: str, scope: str = "home") -> str:
    return cast("str", sanitizer.hide(scope, [Text(text)]).parts[0])


HARD = "ab1 \n\"\\[]_é漢😀\ud800\u202e\x00{}',:@."
BROKEN_TOKENS = ["[EMAIL_", "0000000000]", "[EMAIL_0000000000]", "[X_abcdefghjk]", "[[PERSON_k3v9q2m8xa]]"]
hard_texts = st.lists(st.one_of(st.text(HARD, max_size=12), st.sampled_from(BROKEN_TOKENS)), max_size=8).map("".join)
spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.sampled_from(["EMAIL", "PERSON", "US_SSN"])), max_size=6
)


@given(text=hard_texts, found=spans)
@example(text="\\}", found=[])
def test_restoring_gives_the_text_back_whatever_was_found_in_it(
    vault: Vault, text: str, found: list[tuple[int, int, str]]
) -> None:
    inside = [(min(a, b), max(a, b), kind) for a, b, kind in found if a != b and max(a, b) <= len(text)]
    sanitizer = Sanitizer(Told(lambda leaf: inside if leaf.text == text else []), vault)
    shown = hidden(sanitizer, text, "fuzz")
    assert sanitizer.restore_text("fuzz", shown).content == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | hard_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hard_texts, inner, max_size=4),
    max_leaves=12,
)


@given(value=json_values, indent=st.sampled_from([None, 2]), ascii_only=st.booleans(), share=st.integers(1, 5))
def test_json_stays_json_and_comes_back_byte_for_byte(
    vault: Vault, value: Any, indent: int | None, ascii_only: bool, share: int
) -> None:
    sanitizer = Sanitizer(
        Told(lambda leaf: [(0, len(leaf.text), "SECRET")] if len(leaf.text) % share == 0 else []), vault
    )
    source = json.dumps([value], indent=indent, ensure_ascii=ascii_only)
    shown = hidden(sanitizer, source, "json")
    json.loads(shown)
    assert sanitizer.restore_text("json", shown).content == source
    tree = sanitizer.hide("json", [Tree(value)]).parts[0]
    json.dumps(tree)
    assert sanitizer.restore_value("json", tree).content == value


def test_a_number_that_is_personal_becomes_a_string_and_a_number_again(real: Sanitizer) -> None:
    value = {"card": 4111111111111111, "ssn": "536-90-4399", "count": 3, "rate": 0.25, "ok": True, "none": None}
    shown = cast("dict[str, Any]", real.hide("home", [Tree(value)]).parts[0])
    assert TOKEN.fullmatch(shown["card"])
    assert TOKEN.fullmatch(shown["ssn"])
    assert {key: shown[key] for key in ("count", "rate", "ok", "none")} == {
        "count": 3,
        "rate": 0.25,
        "ok": True,
        "none": None,
    }
    assert real.restore_value("home", shown).content == value
    text = json.dumps(value)
    assert json.loads(hidden(real, text)) == shown
    assert real.restore_text("home", hidden(real, text)).content == text


def test_a_mail_is_read_as_it_is_written(real: Sanitizer) -> None:
    lines = base64.encodebytes(b"It was so. " * 7 + b"\nCustomer: Ottilie Brannock, jane.roe@corp.example\n").decode()
    for text, value, kept in (
        ("From: =?iso-8859-1?Q?Ren=E9e_Brannock?= <a@b.example>\nSubject: plan", "Ren=E9e", "Subject: plan"),
        ("To: =?UTF-8?B?T3R0aWxpZSBCcmFubm9jaw==?= <c@d.example>\n", "T3R0aWxp", "To: "),
        ("Dear Ottilie Bran=\nnock, write to jane.roe=\n@corp.example =2E", "jane.roe", "write to"),
        ('BEGIN:VEVENT\nORGANIZER;CN="Herbert Lind\n qvist":x\nEND:VEVENT\n', "Herbert Lind", "END:VEVENT"),
        (lines, lines.splitlines()[1][20:60], lines[:40]),
    ):
        shown = hidden(real, text, "mail")
        assert value not in shown, shown
        assert kept in shown, shown
        assert real.restore_text("mail", shown).content == text


def test_a_value_that_the_border_of_a_line_cuts_off_is_hidden(real: Sanitizer) -> None:
    values = ["GB29 NWBK 6016 1331 9268 19", "jane.roe@corp.example", "12 Fenchurch Lane"]
    real.learn("cut", [Tree({"iban": values[0], "email": values[1], "street": values[2]})])
    for value in values:
        for length in range(9, len(value)):
            if value[-length:] == "corp.example":
                continue  # the host of an address is nobody's
            for piece, text in (
                (value[:length], f"see {value[:length]}"),
                (value[:length], f"a\nsee {value[:length]}… b"),
                (value[-length:], f"{value[-length:]} and more"),
                (value[-length:], f"a\n{value[-length:]}\nb"),
            ):
                assert piece.strip(" .@") not in hidden(real, text, "cut"), text
    assert hidden(real, "ask jane or corp", "cut") == "ask jane or corp"


def test_keys_are_hidden_where_they_are_personal(real: Sanitizer) -> None:
    value = {"jane.roe@corp.example": {"visits": 3}, "total": 1}
    shown = cast("dict[str, Any]", real.hide("home", [Tree(value)]).parts[0])
    assert "total" in shown
    assert [key for key in shown if TOKEN.fullmatch(key)]
    assert real.restore_value("home", shown).content == value


def test_a_name_that_one_part_gives_away_is_hidden_in_all(real: Sanitizer) -> None:
    row = {"customer_name": "Ottilie Brannock"}
    parts = real.hide(
        "parts", [Tree(row), Text("met ottilie? no: Ottilie Brannock, today"), Text(repr(["Ottilie Brannock"]))]
    )
    token = cast("dict[str, str]", parts.parts[0])["customer_name"]
    assert TOKEN.fullmatch(token)
    assert parts.parts[1:] == (f"met ottilie? no: {token}, today", f"['{token}']")
    assert parts.types == {"PERSON": 1}


@pytest.mark.parametrize(
    ("value", "shown_as"),
    [
        ("Zoë Krüger", json.dumps(["Zoë Krüger"])),
        ("Zoë Krüger", ascii(["Zoë Krüger"])),
        ("Anna O'Brannock", repr(["Anna O'Brannock"])),
        ('Jan "JJ" Kessling', json.dumps(["x", 'Jan "JJ" Kessling'])),
        ("Petra Varga", "hello PETRA VARGA!"),
        ("张伟明", "他叫张伟明。"),
        ("Al", "Ask Al now"),
        ("tok_live_9f8e7d6c5b", "x=tok_live_9f8e7d6c5b;"),
    ],
)
def test_a_value_that_was_learned_is_found_however_it_is_written(real: Sanitizer, value: str, shown_as: str) -> None:
    kind = "api_key" if value.startswith("tok") else "customer_name"
    real.learn("learned", [Tree([{kind: value}])])
    shown = hidden(real, shown_as, "learned")
    assert TOKEN.search(shown)
    assert real.restore_text("learned", shown).content == shown_as
    assert value not in shown
    assert value not in json.loads(shown)[-1] if shown.startswith("[") and '"' in shown else True


def test_what_is_known_is_no_part_of_other_words(real: Sanitizer) -> None:
    real.learn("words", [Tree([{"customer_name": "Will Ander"}, {"first_name": "Art"}])])
    for text in ("Artful Arts, start", "goodwill Andersen", "art and will"):
        assert hidden(real, text, "words") == text


def test_what_was_sanitised_stays_as_it_is_when_it_is_sanitised_again(real: Sanitizer) -> None:
    text = (
        "Name: Jane Roe <jane.roe@corp.example>, card 4111 1111 1111 1111, tel +1 202-555-0143\nJane Roe called.\n" * 3
    )
    once = hidden(real, text, "twice")
    assert once != text
    assert hidden(real, once, "twice") == once
    tree = real.hide("twice", [Tree({"a": text, "email": "x.y@corp.example"})]).parts[0]
    assert real.hide("twice", [Tree(tree)]).parts[0] == tree


def test_a_known_value_is_recognised_alone_however_short_it_is(vault: Vault) -> None:
    sanitizer = Sanitizer(Told(lambda leaf: [(0, 3, "PIN")] if leaf.path == ("pin",) else []), vault)
    token = cast("dict[str, str]", sanitizer.hide("exact", [Tree({"pin": "123"})]).parts[0])["pin"]
    assert sanitizer.hide("exact", [Text("123", exact=True)]).parts == (token,)
    assert sanitizer.hide("exact", [Text("123 apples")]).parts == ("123 apples",)


def test_tokens_of_another_scope_are_not_restored_but_named(real: Sanitizer) -> None:
    shown = hidden(real, "mail jane.roe@corp.example", "mine")
    answer = real.restore_text("theirs", shown)
    assert answer.content == shown
    assert answer.unknown == tuple(match[0] for match in TOKEN.finditer(shown))
    assert hidden(real, "mail jane.roe@corp.example", "theirs") != shown


def test_the_type_of_a_token_must_be_the_vaults(real: Sanitizer) -> None:
    shown = hidden(real, "jane.roe@corp.example")
    assert real.restore_text("home", shown.replace("EMAIL", "PERSON")).content == shown.replace("EMAIL", "PERSON")
    assert real.restore_text("home", shown).content == "jane.roe@corp.example"


def test_restoring_looks_once_so_a_value_that_is_a_token_stays_one(vault: Vault) -> None:
    inner = hidden(Sanitizer(Told(finding({"secret-one": "SECRET"})), vault), "secret-one", "once")
    sanitizer = Sanitizer(Told(finding({})), vault)
    (entry,) = vault.tokens_for("once", [Value("SECRET", inner)])
    assert sanitizer.restore_text("once", entry.shown).content == inner


REWRITTEN: list[Callable[[str], str]] = [
    lambda token: token.lower(),
    lambda token: token.title(),
    lambda token: token[1:-1],
    lambda token: token[1:],
    lambda token: token[:-1],
    lambda token: token.lower()[1:-1],
    lambda token: token.replace("_", "\\_").replace("[", "\\[").replace("]", "\\]"),
    lambda token: token.replace("_", "\\_")[1:-1],
    lambda token: f"`{token}`",
    lambda token: f"**{token[1:-1]}**",
    lambda token: f"<{token[1:-1]}>",
    lambda token: f"({token[1:-1]})",
    lambda token: f"{{{{{token[1:-1]}}}}}",
    lambda token: token.replace("_", "-"),
    lambda token: token.replace("_", " "),
    lambda token: token.replace("[", "&#91;").replace("]", "&#93;"),
    lambda token: token.replace("[", "&#x5B;").replace("]", "&rbrack;").replace("_", "&lowbar;"),
    lambda token: token.replace("[", "%5B").replace("]", "%5D"),
    lambda token: token.replace("[", "%5b").replace("]", "%5d").replace("_", "%5f"),
    lambda token: token.replace("[", "\\u005b").replace("]", "\\u005d"),
    lambda token: token.replace("[", "\\x5B").replace("]", "\\x5D"),
    lambda token: token.replace("[", "=5B").replace("]", "=5D").replace("_", "=5F"),
    lambda token: token.replace("[", "\uff3b").replace("]", "\uff3d"),
    lambda token: token.replace("[", "\u3010").replace("]", "\u3011"),
    lambda token: "".join(chr(ord(sign) + 0xFEE0) for sign in token),
    lambda token: f"{token[:8]}\u200b{token[8:]}",
    lambda token: f"{token[:11]}\n{token[11:]}",
    lambda token: f"{token[:4]}\r\n> {token[4:]}",
    lambda token: f"{token[:11]}=\r\n{token[11:]}",
    lambda token: f"{token[1:7]}\n    {token[7:-1]}",
    lambda token: f"{token[:11]} {token[11:]}",
    lambda token: f"[ {token[1:-1]} ]",
    lambda token: token.replace("_", ":"),
    lambda token: token.replace("_", " / "),
    lambda token: token.replace("_", "__"),
    lambda token: token.replace("_", "\u00a0"),
    lambda token: token.replace("_", ""),
    lambda token: token.replace("_", "_<wbr>"),
    lambda token: token.replace("[", "&#091;").replace("]", "&#093;"),
    lambda token: token.replace("[", "&amp;#91;").replace("]", "&amp;#93;"),
    lambda token: token.replace("[", "\\u{5b}").replace("]", "\\u{5D}"),
    lambda token: f"{token[:11]}\\\n  {token[11:]}",
]


@pytest.mark.parametrize("rewritten", REWRITTEN)
def test_a_rewritten_token_is_restored_and_no_sign_of_it_is_left(
    real: Sanitizer, rewritten: Callable[[str], str]
) -> None:
    token = rewritten(hidden(real, "jane.roe@corp.example"))
    for before, behind in (("write to ", ", please"), ("", ""), ("a [list] of ", "\n[1]")):
        restored = str(real.restore_text("home", f"{before}{token}{behind}").content)
        assert unquote(restored.strip("<>()`*")).startswith(before), restored
        inner = restored.removeprefix(before).removesuffix(behind)
        assert unquote(inner.strip("<>()`*")) == "jane.roe@corp.example"


@pytest.mark.parametrize(
    "altered",
    [
        lambda token: token[:-4],
        lambda token: f"{token[:-4]}]",
        lambda token: f"{token[:-4]}\u2026]",
        lambda token: f"{token[:-6]}...",
        lambda token: f"{token[:-1]}x]",
        lambda token: token[1:-4],
        lambda token: f"{token[:7]}\u2026]",
        lambda token: token.lower()[:-3] + "]",
        lambda token: token.replace("EMAIL", "MAIL"),
        lambda token: token.replace("EMAIL", "PERSON"),
        lambda token: token.replace("EMAIL_", ""),
        lambda token: token[7:],
        lambda token: token[:-2] + ("0" if token[-2] != "0" else "1") + "]",
        lambda token: token[:-2] + "o]",
        lambda _token: "[EMAIL_1]",
        lambda _token: "[PERSON A]",
    ],
)
def test_a_token_that_was_cut_or_altered_stays_and_is_named(real: Sanitizer, altered: Callable[[str], str]) -> None:
    token = altered(hidden(real, "the mail of jane9.roe@corp.example").removeprefix("the mail of "))
    restored = real.restore_text("home", f"write to {token}, please")
    assert restored.content == f"write to {token}, please"
    assert [left.is_known for left in restored.left] == [False]
    assert restored.unknown[0] in f"[{token}"


@pytest.mark.parametrize(
    "text",
    [
        "[EMAIL], [PERSON_NAME], [PHONE_NUMBER], [email_address] and {person_department}",
        "person_id, card_number = row['person_department'], ip_addresses[10]",
        "the commit 9g5ddg3tce of report_2024ab, e-mail departments, [see the note_department]",
        "IP_10, [1, 2], [x], ZIP_12345, MAC_ADDRESS, date_20240101, email_2024, PERSON_2024, [SSN]",
        "import person_embeddings as pe; EMAIL_BACKEND = 'smtp'; card_1NXWPnLkdIwHu7ix",
    ],
)
def test_ordinary_names_and_placeholders_are_no_tokens(real: Sanitizer, text: str) -> None:
    restored = real.restore_text("home", text)
    assert (restored.content, restored.left) == (text, ())


def test_what_fails_shows_nothing(vault: Vault) -> None:
    def fail(_leaf: KeyedText) -> Sequence[tuple[int, int, str]]:
        raise DetectionFailed("The model of names is missing. Install it.")

    def crash(_leaf: KeyedText) -> Sequence[tuple[int, int, str]]:
        raise ZeroDivisionError("jane.roe@corp.example")

    with pytest.raises(PrivacyFailed, match="model of names is missing"):
        Sanitizer(Told(fail), vault).hide("home", [Text("jane.roe@corp.example")])
    with pytest.raises(PrivacyFailed) as caught:
        Sanitizer(Told(crash), vault).hide("home", [Text("jane.roe@corp.example")])
    assert "jane" not in str(caught.value)


def test_forgetting_makes_tokens_unknown_also_to_who_has_them_in_memory(vault: Vault) -> None:
    sanitizer = Sanitizer(Told(finding({"Grace Whitlock": "PERSON"})), vault)
    shown = hidden(sanitizer, "Grace Whitlock", "forget")
    vault.forget_entries(vault.person("grace whitlock").found)
    assert sanitizer.restore_text("forget", shown).content == shown
    quiet = Sanitizer(Told(finding({})), vault)
    assert hidden(quiet, "Grace Whitlock", "forget") == "Grace Whitlock"


def test_the_same_answer_of_a_tool_is_judged_once(vault: Vault) -> None:
    told = Told(finding({"Jane Roe": "PERSON"}))
    sanitizer = Sanitizer(told, vault)
    for _ in range(3):
        sanitizer.learn("same", [Tree({"a": ["Jane Roe", "x"]})])
    assert told.asked == 3  # a key and two strings


@pytest.mark.parametrize("kind", list(FileKind))
def test_large_files_and_lines_of_a_million_characters_go_through_in_pieces_and_come_back(
    real: Sanitizer, kind: FileKind
) -> None:
    people = ", ".join(f"person{number % 300}.roe@corp.example and some words" for number in range(24_000))
    text = {
        FileKind.TEXT: people,
        FileKind.JSON: json.dumps({"all": people[:200_000].split(", "), "card": 4111111111111111}),
        FileKind.CSV: "email;note\n" + "".join(f'p{n % 300}@corp.example;"a ""b""; c"\r\n' for n in range(5_000)),
    }[kind]
    tally = streams.Tally()
    # A scope without other values, so that the time is that of this text.
    shown = "".join(streams.sanitized(_small(real), f"million {kind}", io.StringIO(text, newline=""), kind, tally))
    assert "corp.example" not in shown
    assert tally.types()["EMAIL"] == 300
    if kind is FileKind.JSON:
        json.loads(shown)
    if kind is FileKind.CSV:
        rows = list(csv.reader(io.StringIO(shown, newline=""), delimiter=";"))
        assert {len(row) for row in rows} == {2}
    restored = "".join(
        streams.restored(_small(real), f"million {kind}", io.StringIO(shown, newline=""), kind, streams.Tally())
    )
    assert restored == text


def _small(real: Sanitizer) -> Sanitizer:
    """Return a sanitizer that knows mail addresses alone, on the same vault."""
    import re

    mail = re.compile(r"[\w.]{1,40}@corp\.example")
    return Sanitizer(Told(lambda leaf: [(*m.span(), "EMAIL") for m in mail.finditer(leaf.text)]), real._vault)


def test_a_value_across_the_seam_of_two_pieces_is_hidden_whole(
    real: Sanitizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PIECE_CHARS", 64)
    monkeypatch.setattr(streams, "_AROUND_CHARS", 48)
    text = "".join(f"{'x' * (number % 37)} jane{number}.roe@corp.example; " for number in range(200))
    sanitizer = _small(real)
    shown = "".join(streams.sanitized(sanitizer, "seam", io.StringIO(text), FileKind.TEXT, streams.Tally()))
    assert "corp" not in shown
    again = "".join(streams.restored(sanitizer, "seam", io.StringIO(shown), FileKind.TEXT, streams.Tally()))
    assert again == text


def test_a_table_keeps_its_cells_when_a_value_with_its_separator_is_restored(vault: Vault) -> None:
    sanitizer = Sanitizer(Told(finding({'Roe, "JJ" Jane': "PERSON"})), vault)
    token = hidden(sanitizer, 'Roe, "JJ" Jane', "table")
    table = f'name,n\n{token},1\n"x {token}",2\n'
    restored = "".join(streams.restored(sanitizer, "table", io.StringIO(table), FileKind.CSV, streams.Tally()))
    assert list(csv.reader(io.StringIO(restored))) == [
        ["name", "n"],
        ['Roe, "JJ" Jane', "1"],
        ['x Roe, "JJ" Jane', "2"],
    ]


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [("[" + "9" * 5000 + "]", FileKind.JSON), ("[" * 100_000, FileKind.TEXT), ('{"a":' * 50_000, FileKind.TEXT)],
    ids=["a long number", "nested lists", "nested objects"],
)
def test_what_looks_like_json_and_cannot_be_read_has_a_kind_too(beginning: str, kind: FileKind) -> None:
    assert streams.kind_of("-", beginning) is kind


def test_what_was_restored_is_known_however_long_ago_the_vault_got_it(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealab.server.privacy.tokens.scope.LOADED_MAX", 1)

    def made() -> Sanitizer:
        return Sanitizer(Detector(DetectorOptions(mode=Mode.FAST)), vault)

    old, new = (hidden(made(), f"mail {name}@corp.example", "known") for name in ("old", "new"))
    sanitizer = made()
    assert [place.span.type for place in sanitizer.known_in("known", {"to": "new@corp.example"})] == ["EMAIL"]
    assert sanitizer.known_in("known", {"to": "old@corp.example"}) == []
    assert sanitizer.restore_text("known", old).content == "mail old@corp.example"
    (place,) = sanitizer.known_in("known", {"to": ["x", f"{new} old@corp.example"]})
    assert (place.path, place.text) == (("to", "1"), "old@corp.example")
