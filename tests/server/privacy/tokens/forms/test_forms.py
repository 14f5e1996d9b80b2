"""The forms in which a known value is found, and the words that are no form of one."""

from __future__ import annotations

import base64
import itertools
import threading
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.tokens.forms import folding, form_index
from sealab.server.privacy.tokens.forms.dates import dates_said
from sealab.server.privacy.tokens.forms.folding import folded, folded_letters, folded_small, keys_of
from sealab.server.privacy.tokens.known_values import KnownValues

FILLING = "nothing of note was said, and 12 items were counted in all. " * 10


def found(text: str, *values: tuple[str, str]) -> list[str]:
    known = KnownValues()
    for value, kind in values:
        known.add(value, kind)
    return [text[span.start : span.end] for span in sorted(known.find(text), key=lambda span: span.start)]


PEOPLE = {
    "Jane Doe": [
        "jane doe", "JANE DOE", "jane_doe", "jane.doe", "jane-doe", "JaneDoe", "janedoe", "doejane", "Doe, Jane", "DOE Jane", "J. Doe",
        "J Doe", "jdoe", "j.doe", "JDoe", "Doe, J", "Doe J", "janeDoe",
    ],
    "Jürgen Müller": ["jurgen muller", "JÜRGEN MÜLLER", "juergen_mueller", "JuergenMueller", unicodedata.normalize("NFD", "Jürgen Müller"), "jmueller"],
    "Anna Weiß": ["ANNA WEISS", "anna-weiss", "Anna Weiß".casefold()],
    "Søren Ærø": ["soren aro", "soeren_aeroe", "sorenaro"],
    "Иван Щербаков": ["ИВАН ЩЕРБАКОВ", "Ivan Shcherbakov", "ivan.shcherbakov", "I. Shcherbakov", "Щербаков, Иван"],
    "Юлия Жуковская": ["Iuliia Zhukovskaia", "Yuliya Zhukovskaya", "iuliia_zhukovskaia"],
    "Γιώργος Παπαδόπουλος": ["Giorgos Papadopoulos", "giorgos_papadopoulos"],
    "Yeşim Ilgaz": ["yesim ilgaz", "YEŞİM ILGAZ", "yılgaz"],
    "María García López": ["maria garcia", "Maria Lopez", "GARCIA LOPEZ, Maria", "MariaGarciaLopez", "M. García"],
    "Dr. Emma van den Berg": ["emma van den berg", "vandenberg.emma", "E. van den Berg", "emmavandenberg", "Emma Berg"],
    "Maria Clara da Silva e Souza Prado": ["maria_clara_da_silva_e_souza_prado", "PRADO, Maria Clara da Silva e Souza"],
    "山田 太郎": ["山田太郎", "山田・太郎", "太郎 山田"],
    "김영호": [unicodedata.normalize("NFD", "김영호"), "김 영호"],
    "Doe, Jane": ["Jane Doe", "jane_doe", "jdoe"],
}  # fmt: skip


AROUND = ("{}", "Seen {} today.", FILLING + "({})" + FILLING)


@pytest.mark.parametrize("name", PEOPLE)
def test_a_person_is_found_in_every_ordinary_form(name: str) -> None:
    for form, around in itertools.product(PEOPLE[name], (*AROUND, "report_{}_v2.pdf")):
        assert found(around.format(form), (name, "PERSON")) == [form], (form, around)


OTHERS = [
    ("jane.doe+news@corp.example", "EMAIL", "JANE.DOE+NEWS@corp.example"),
    ("jane.doe+news@corp.example", "EMAIL", "jane.doe"),
    ("jane.doe@corp.example", "EMAIL", "jane_doe"),
    ("roman_69@corp.example", "EMAIL", "roman_69"),
    ("m-n-o-p-q-r@corp.example", "EMAIL", "m.n.o.p.q.r"),
    ("卢街G座", "ADDRESS", "卢街g座"),
    ("jane.doe@corp.example", "EMAIL", "jane.doe%40corp.example"),
    ("+1 (555) 123-4567", "PHONE", "+15551234567"),
    ("+1 (555) 123-4567", "PHONE", "15551234567"),
    ("+1 (555) 123-4567", "PHONE", "555.123.4567"),
    ("+1 (555) 123-4567", "PHONE", "(555) 123-4567"),
    ("+33 6 12 34 56 78", "PHONE", "0612345678"),
    ("+33612345678", "PHONE", "06 12 34 56 78"),
    ("0049 30 1234567", "PHONE", "+49301234567"),
    ("555-123-4567x89", "PHONE", "5551234567"),
    ("555-123-4567x89", "PHONE", "555123456789"),
    ("4111 1111 1111 1111", "CARD", "4111111111111111"),
    ("4111111111111111", "CARD", "4111-1111-1111-1111"),
    ("DE89 3704 0044 0532 0130 00", "IBAN", "DE89370400440532013000"),
    ("DE89370400440532013000", "IBAN", "de89 3704 0044 0532 0130 00"),
    ("GB82WEST12345698765432", "IBAN", "GB82 WEST 1234 5698 7654 32"),
    ("12 Main Street, Springfield, IL 62704", "ADDRESS", "12_main_street_springfield_il_62704"),
    ("12 Main Street, Springfield, IL 62704", "ADDRESS", "12 MAIN STREET\nSPRINGFIELD IL 62704"),
    ("San José", "LOCATION", "sanjose"),
    ("536-90-4399", "SSN", "536904399"),
    ("00:1B:44:11:3A:B7", "MAC", "001b44113ab7"),
]


def test_other_values_are_found_in_theirs() -> None:
    for (value, kind, form), around in itertools.product(OTHERS, AROUND):
        assert found(around.format(form), (value, kind)) == [form], (value, around)


BIRTHS = ["1980-03-05", "05.03.1980", "3/5/1980", "5/3/1980", "5 March 1980", "March 5, 1980", "Mar 5th, 1980", "5. März 1980", "5 mars 1980", "5 de marzo de 1980", "5 marzo 1980", "5 maart 1980", "5 marca 1980", "5 de março de 1980", "5 Mart 1980", "5 марта 1980", "5 березня 1980", "5 मार्च 1980", "5 مارس 1980", "1980年3月5日", "1980년 3월 5일", "19800305", "05/03/80", "1980/3/5", "(1980, 3, 5"[1:], "321062400", "321062400000"]  # fmt: skip


@pytest.mark.parametrize("value", ["1980-03-05", "March 5, 1980", "05.03.1980"])
def test_a_day_of_birth_is_found_however_it_is_written_and_another_day_is_not(value: str) -> None:
    for form, around in itertools.product(BIRTHS, ("born {}, it says", "at={}T10:00:00Z", *AROUND)):
        assert found(around.format(form), (value, "DOB")) == [form], (form, around)
    for other in ("1980-03-06", "351980", "3.5.19", "version 3.5.80.1", "5 shops 1980"):
        assert found(other, (value, "DOB")) == [], other


def test_days_that_there_are_not_are_none() -> None:
    assert dates_said("1980-02-30") == dates_said("99/99/1980") == dates_said("") == set()


ENCODED = {
    "base 64": base64.b64encode("Jürgen Müller".encode()).decode(),
    "base 64, one byte later": base64.b64encode("xJürgen Müller, Berlin".encode()).decode(),
    "base 64, two bytes later": base64.b64encode("xyJürgen Müller, Berlin".encode()).decode(),
    "base 64 for URLs": base64.urlsafe_b64encode("~~?Jürgen Müller".encode()).decode(),
    "hexadecimal": "Jürgen Müller".encode().hex(),
    "URL": quote("Jürgen Müller"),
    "JSON": "J\\u00fcrgen M\\u00fcller",
    "bytes": repr("Jürgen Müller".encode())[2:-1],
    "HTML": "J&uuml;rgen M&#252;ller",
    "quoted-printable": "J=C3=BCrgen M=C3=BCller",
}


@pytest.mark.parametrize("how", ENCODED)
def test_a_value_is_found_in_what_is_encoded(how: str) -> None:
    for around in (*AROUND, "v={};", "/files/{}/1", "report_{}_2.pdf"):
        text = around.format(ENCODED[how])
        (hidden,) = found(text, ("Jürgen Müller", "PERSON"))
        assert hidden in ENCODED[how], around
        left = ENCODED[how].replace(hidden, "")
        assert len(left) <= (16 if "later" in how or "URLs" in how else 0), "what stood beside it alone"


def test_a_secret_is_found_in_what_is_encoded_too() -> None:
    secret = ("tok_live_9f8e7d6c5b", "SECRET")
    assert found("x" + secret[0].upper() + "y", secret) == [secret[0].upper()]
    encoded = base64.b64encode(secret[0].encode()).decode()
    assert found(f"key: {encoded}", secret) == [encoded.rstrip("=")]


def test_a_value_that_a_table_cuts_off_is_found_by_its_beginning() -> None:
    for text, cut in (
        ("| Christopher Doe-Wal... |", ["Christopher Doe-Wal"]),
        ("file_Christopher D…", ["Christopher D"]),
        ("Christopher,  ...", ["Christopher"]),
        ("Chris...", []),
        ("Christopher Dob...", []),
    ):
        assert found(text, ("Christopher Doe-Wallace", "PERSON")) == cut, text


def test_everyday_words_numbers_and_mailboxes_that_say_nothing_are_no_forms() -> None:
    names = ("May Price", "Mark Price", "Tim Rain", "Ann Long", "Sue Link", "Sam Bird", "Sal Hill", "Will Ander")
    people = tuple((name, "PERSON") for name in names)
    for text in (
        "it may price in the change, and the mark price rose",
        "the price, may it fall",
        "May we? Price follows",
        "A Price was paid",
        "a may-price",
        "a price of 12",
        "the train left",
        "a long way",
        "an a. long",
        "links and birds and hills",
        "Birds",
        "goodwill anderson",
    ):
        assert found(text, *people) == [], text
    written = "May Price, MAY PRICE, may_price, Price, May"
    assert found(written, people[0]) == ["May Price", "MAY PRICE", "may_price", "Price, May"]
    mails = (("sales@corp.example", "EMAIL"), ("info@corp.example", "EMAIL"))
    for text in ("10 0 0 12", "100012", "15551234", "sales", "info"):
        assert found(text, ("10.0.0.12", "IP"), ("+1 555 123 4567", "PHONE"), *mails) == [], text


def test_two_people_in_neighbouring_lines_are_found_each_for_himself() -> None:
    people = (("Anna Schmidt", "PERSON"), ("Peter Kowalski", "PERSON"), ("Kowalski Anna", "PERSON"))
    assert found("Peter Kowalski\nAnna Schmidt\n", *people[:2]) == ["Peter Kowalski", "Anna Schmidt"]


def test_what_stands_at_the_seam_of_two_pieces_of_a_long_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_index, "_CHUNK_CHARS", 1)
    known = KnownValues()
    known.add("Jane Doe", "PERSON")
    for before in range(1060, 1140):
        text = "x " * (before // 2) + "y" * (before % 2) + " jane_doe " + "z " * 1500
        assert [text[span.start : span.end] for span in known.find(text)] == ["jane_doe"]


def test_values_that_begin_with_the_same_word_cost_no_more_than_others() -> None:
    """Counted in comparisons: a text asks for the stretches that it has, not for each value."""
    known = KnownValues()
    for number in range(5_000):
        known.add(f"ana sorli{number:05}", "USERNAME")
    text = "ana sorli00007 and ana sorli04999, ana nobody"
    assert [text[span.start : span.end] for span in known.find(text)] == ["ana sorli00007", "ana sorli04999"]
    index = known._generations[0].forms
    assert index is not None
    compared: list[str] = []
    original = index._numbers
    index._numbers = lambda *given: compared.append(given[0]) or original(*given)  # type: ignore[method-assign, func-returns-value]
    list(known.find(text))
    assert len(compared) <= 8


HARD = (
    "\\",
    "%41",
    "a1",
    "aB",
    "a...",
    "\u0301",
    "\ud800",
    "\0",
    "=C3=BC",
    "\\u00e9",
    "&amp;",
    "1980 ",
    "山",
    "aB1/",
    " ",
)


def test_a_text_of_any_signs_is_looked_through_with_what_stands_behind_it() -> None:
    values = (("Jane Doe", "PERSON"), ("1980-03-05", "DOB"), ("tok_live_9f8e7d6c5b", "SECRET"))
    for sign, count in itertools.product((*HARD, "4a616e6520446f65"), (1, 100, 5000)):
        hidden = found(f"{sign * count} | jane_doe, 5.3.1980", *values)
        assert hidden[-2:] == ["jane_doe", "5.3.1980"], (sign, count)


def test_a_value_is_found_that_is_the_beginning_of_many_others() -> None:
    known = KnownValues()
    for number in range(100):
        known.add(f"Institute of Applied Sciences number {number}, Springfield", "ADDRESS")
    known.add("Institute of Applied Sciences", "ADDRESS")
    for text in ("institute of applied sciences", "INSTITUTE OF APPLIED SCIENCES NUMBER 99, SPRINGFIELD"):
        assert [text[span.start : span.end] for span in known.find(text)] == [text]


def test_values_and_forms_are_found_while_another_thread_adds_values() -> None:
    known = KnownValues(4000)
    known.add("Jane Doe", "PERSON")
    failed: list[BaseException] = []

    def add() -> None:
        try:
            for number in range(12_000):
                known.add(f"Person{number} Family{number}", "PERSON")
                known.add(f"{number}Zq8sT5vR2nKw", "SECRET")
                if number % 50 == 0:
                    known.add("Jane Doe", "PERSON")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=add)
    thread.start()
    while thread.is_alive():
        assert [span.type for span in known.find("see jane_doe")] == ["PERSON"]
        assert "PERSON" in {span.type for span in known.find("Jane Doe Person7 Family7 5Zq8sT5vR2nKw")}
    assert not failed


def test_a_form_leads_to_its_one_value() -> None:
    known = KnownValues()
    for name in ("Jane Doe", "John Smith", "Jack Smith", "Christopher Doe-Wallace"):
        known.add(name, "PERSON")
    known.add("jane.doe@corp.example", "EMAIL")
    known.add("1980-03-05", "DOB")
    for text, origin in (
        ("jane_doe", "Jane Doe"),
        ("J. Doe", "Jane Doe"),
        ("jane.doe", "Jane Doe"),  # a mailbox is often named for its owner
        ("SmFuZSBEb2U=", "Jane Doe"),
        ("5 March 1980", "1980-03-05"),
        ("Christopher Doe", None),  # not surely the known one
        ("J. Smith", None),  # two people
        ("Jane Doe", None),
        ("nobody", None),
    ):
        assert (known.origin_of(text) or (None,))[0] == origin, text


letters = st.text(st.one_of(st.characters(), st.sampled_from("aZé ß_-9İıé́山ガ김ᄀक़Ж\ud800")), max_size=60)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in folded_small(text).word_spans()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("JaneDoe jane_doe", ["Jane", "Doe", "jane", "doe"]),
        ("HTMLText x1y2", ["HTML", "Text", "x", "1", "y", "2"]),
        ("+49 (30) 123", ["49", "30", "123"]),
        ("山田ab", ["山", "田", "ab"]),
        ("xअजित", ["x", "अजित"]),
        ("", []),
    ],
)
def test_words_end_where_letters_case_or_digits_do(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    "forms",
    [
        ("Müller", "MÜLLER", "Mu\u0308ller", "muller", "MUL\u00adLER"),
        ("Straße", "strase"),
        ("İnönü", "i̇nönü", "INONU", "ınönü"),
        ("ガ", "カ\u3099"),
        ("٣٤", "34"),
        ("फ़", "फ\u093c"),
    ],
)
def test_case_and_accents_make_no_difference(forms: tuple[str, ...]) -> None:
    assert len({folded_letters(form) for form in forms}) == 1


@given(text=letters)
def test_long_texts_are_folded_as_short_ones_are(text: str) -> None:
    short = folded_small(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "_SMALL_CHARS", -1)
        long = folded(text)
    assert short.letters == long.letters
    for name in ("places", "starts", "ends", "sums"):
        assert list(map(int, getattr(short, name))) == list(map(int, getattr(long, name)))


@given(text=letters, start=st.integers(0, 40), length=st.integers(1, 40))
def test_the_key_of_a_stretch_is_that_of_its_letters_alone(text: str, start: int, length: int) -> None:
    said = folded_small(text)
    part = said.letters[start : start + length]
    if part:
        assert said.key(start, start + len(part)) == int(keys_of(["before", part])[1])
