"""Documents with what is personal marked: forms, JSON, tables, logs and prose of one locale, and documents of nobody."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

import phonenumbers
from faker import Faker

from .locales import KINDS, Locale

Marks = list[tuple[int, int, str]]

_KEYS = (
    {"person": "name", "address": "address", "city": "city", "dob": "birth_date", "phone": "phone", "email": "email", "iban": "iban", "card": "card_number", "zip": "zip"},
    {"person": "fullName", "address": "streetAddress", "city": "homeTown", "dob": "dateOfBirth", "phone": "mobilePhone", "email": "emailAddress", "iban": "bankIban", "card": "creditCard", "zip": "postalCode"},
)  # fmt: skip
_PROSE = (
    (
        "Ticket: {person} from {city} reports that nobody answered on {phone} and asks for a reply to {email}.",
        "Please update the record of {person}, born {dob}, to the new address {address}.",
        "We refunded {person} to {iban} after the charge on card {card} had failed.",
    ),
    (
        "I spoke with {person} about the contract; the new office is in {city}, and {phone} still works.",
        "{person} (date of birth {dob}) moved to {address} and wrote to us from {email}.",
        "The transfer from {iban} and the payment by card {card} were both made by {person}.",
    ),
)
_NOBODY = (
    '{{"sku": "CH-{n}", "name": "Oak Chair", "price": 129.5, "stock": {n}, "warehouse": "north-2", "status": "active"}}',
    "2026-03-{d:02} 10:15:0{d1} INFO scheduler job=rebuild-index shard={n} took_ms={n} status=ok",
    "def total(rows):\n    # add up what was paid\n    return sum(row.amount for row in rows if row.status == 'paid')\n",
    "id,product,quantity,unit_price\n{n},Desk lamp,{d},19.90\n{n},Notebook A5,{d},2.50\n",
    "commit 4f{n}ab: move the parser to its own module; 3 files changed, 120 insertions, 48 deletions",
    "GET /api/v2/orders/{n}?page={d}&sort=created HTTP/1.1 200 {n} 0.0{d} trace=a81f{n}c0",
    "[build]\nversion = 2.{d}.1\ntarget = release\nname = demo-service\nretries = {d}\n",
    '[{{"event": "deploy", "service": "billing-api", "region": "eu-west-1", "duration": {n}}}, {{"event": "rollback", "service": "search"}}]',
)


@dataclass(frozen=True)
class Document:
    """A text, where in it what stands (start, end, kind), and what sort of text it is: fields, English or local."""

    text: str
    marks: Marks
    sort: str


class Writer:
    """Writes the documents of one locale, from one seed: the `tuned` set, or the `held-out` one."""

    def __init__(self, locale: Locale, seed: int, *, held_out: bool) -> None:
        self._locale = locale
        self._dice = random.Random(f"{locale.name} {seed} {held_out}")
        self._fake = Faker(locale.faker)
        self._fake.seed_instance(self._dice.randrange(2**32))
        self._set = int(held_out)

    def documents(self, rounds: int) -> Iterator[Document]:
        """Yield so many of each form: those with people, and as many with none."""
        forms = _FORMS[self._set]
        for _ in range(rounds):
            for form in forms:
                yield form(self)
            for template in _PROSE[self._set]:
                yield self._filled(template, "English prose")
            for template in self._locale.about_people[self._set :: 2]:
                yield self._filled(template, "local prose")
            for nobody in (*_NOBODY[self._set :: 2], *self._locale.about_nobody[self._set :: 2]):
                numbers = {"n": self._dice.randrange(1000, 99999), "d": self._dice.randrange(1, 28)}
                said = nobody.format(**numbers, d1=self._dice.randrange(10)) if nobody in _NOBODY else nobody
                yield Document(said, [], "nobody")

    def value(self, kind: str) -> str:
        """Return a value of the locale."""
        made: str = getattr(self, f"_{kind}")()
        return made

    def label(self, kind: str) -> str:
        """Return a label of the locale and the set."""
        return self._dice.choice(self._locale.labels[kind][self._set :: 2])

    def record(self, key: Callable[[str], str], least: int = 4) -> dict[str, tuple[str, str]]:
        """Return some fields, key to kind and value: always a person."""
        kinds = ["person", *self._dice.sample(KINDS[1:], self._dice.randrange(least, len(KINDS)))]
        return {key(kind): (kind, self.value(kind)) for kind in kinds}

    def _person(self) -> str:
        made = self._dice.random()
        if made < 0.4:
            return str(self._fake.name())
        given, family = self._fake.first_name(), self._fake.last_name()
        if self._locale.name in {"zh", "ko"}:
            return f"{family}{given}"
        if self._locale.name == "ja":
            return f"{family}{given}" if made < 0.7 else f"{family} {given}"
        return f"{given} {family}"

    def _address(self) -> str:
        made = self._fake.address() if self._dice.random() < 0.5 else self._fake.street_address()
        return ", ".join(part.strip() for part in made.splitlines() if part.strip())

    def _city(self) -> str:
        return str(self._fake.city())

    def _zip(self) -> str:
        return str(self._fake.postcode())

    def _dob(self) -> str:
        day: date = self._fake.date_of_birth(minimum_age=18, maximum_age=90)
        form = self._dice.choice(self._locale.dates)
        return day.strftime(form.replace("MONTH", self._locale.months[day.month - 1] if self._locale.months else ""))

    def _phone(self) -> str:
        if self._dice.random() < 0.4:
            return str(self._fake.phone_number())
        region = self._locale.region
        kind = self._dice.choice((phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE))
        example = phonenumbers.example_number_for_type(region, kind) or phonenumbers.example_number(region)
        assert example is not None
        number = example
        for _ in range(200):
            digits = str(example.national_number)
            drawn = digits[:-5] + f"{self._dice.randrange(100_000):05}"
            number = phonenumbers.PhoneNumber(country_code=example.country_code, national_number=int(drawn))
            if phonenumbers.is_valid_number(number):
                break
        forms = phonenumbers.PhoneNumberFormat
        return phonenumbers.format_number(number, self._dice.choice((forms.NATIONAL, forms.INTERNATIONAL, forms.E164)))

    def _email(self) -> str:
        return str(self._fake.ascii_safe_email() if self._dice.random() < 0.3 else self._fake.ascii_email())

    def _iban(self) -> str:
        made = str(self._fake.iban())
        return made if self._dice.random() < 0.5 else " ".join(made[at : at + 4] for at in range(0, len(made), 4))

    def _card(self) -> str:
        made = str(self._fake.credit_card_number())
        if self._dice.random() < 0.3:  # the second series of Mastercard: 2221 to 2720
            body = f"{self._dice.randrange(2221, 2721)}{self._dice.randrange(10**11):011}"
            made = body + next(str(d) for d in range(10) if is_card_number(body + str(d)))
        if len(made) != len("4111111111111111") or self._dice.random() < 0.5:
            return made
        return self._dice.choice(" -").join(made[at : at + 4] for at in range(0, 16, 4))

    def _filled(self, template: str, sort: str) -> Document:
        text, marks = "", []
        rest = template
        while "{" in rest:
            before, _, rest = rest.partition("{")
            kind, _, rest = rest.partition("}")
            value = self.value(kind)
            text += before
            marks.append((len(text), len(text) + len(value), kind))
            text += value
        return Document(text + rest, marks, sort)

    def number(self) -> int:
        """Return a number that is nobody's."""
        return self._dice.randrange(1000, 99999)


def is_card_number(digits: str) -> bool:
    """Return whether the last digit is the check digit of a card."""
    doubled = [int(d) * (1 + place % 2) for place, d in enumerate(reversed(digits))]
    return sum(d // 10 + d % 10 for d in doubled) % 10 == 0


def _marked(text: str, fields: list[tuple[str, str]]) -> Document:
    """Mark the values in the order in which they stand in a text."""
    marks: Marks = []
    at = 0
    for kind, value in fields:
        start = text.index(value, at)
        at = start + len(value)
        marks.append((start, at, kind))
    return Document(text, marks, "fields")


def _local_form(writer: Writer) -> Document:
    record = writer.record(writer.label)
    text = "".join(f"{key}: {value}\n" for key, (_, value) in record.items())
    return _marked(text, list(record.values()))


def _wide_form(writer: Writer) -> Document:
    record = writer.record(writer.label)
    is_wide = writer._locale.name in {"ja", "zh"}
    text = ("、" if is_wide else " | ").join(f"{key}{'：' if is_wide else ': '}{v}" for key, (_, v) in record.items())
    return _marked(text, list(record.values()))


def _json(keys: dict[str, str] | None, *, nested: bool, several: bool) -> Callable[[Writer], Document]:
    def write(writer: Writer) -> Document:
        key = keys.__getitem__ if keys else writer.label
        records = [writer.record(key) for _ in range(3 if several else 1)]
        flat = [{name: value for name, (_, value) in record.items()} for record in records]
        value = flat if several else {"id": writer.number(), "customer": flat[0]} if nested else flat[0]
        text = json.dumps(value, ensure_ascii=False, indent=2 if nested else None)
        return _marked(text, [field for record in records for field in record.values()])

    return write


def _csv(separator: str) -> Callable[[Writer], Document]:
    def write(writer: Writer) -> Document:
        kinds = ["person", "city", *writer._dice.sample(["dob", "phone", "email", "address", "zip", "card"], 3)]
        rows = [[writer.value(kind) for kind in kinds] for _ in range(4)]
        lines = [[writer.label(kind) for kind in kinds], *rows]
        quoted = [[f'"{cell}"' if separator in cell else cell for cell in line] for line in lines]
        text = "".join(f"{n}{separator}{separator.join(line)}\n" for n, line in enumerate(quoted))
        text = "id" + text[1:]
        return _marked(text, [(kind, cell) for row in rows for kind, cell in zip(kinds, row, strict=True)])

    return write


def _markdown(writer: Writer) -> Document:
    kinds = ["person", "city", *writer._dice.sample(["dob", "phone", "email", "address"], 2)]
    rows = [[writer.value(kind) for kind in kinds] for _ in range(3)]
    lines = [[writer.label(kind) for kind in kinds], ["---"] * len(kinds), *rows]
    text = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    return _marked(text, [(kind, cell) for row in rows for kind, cell in zip(kinds, row, strict=True)])


def _log(form: str) -> Callable[[Writer], Document]:
    def write(writer: Writer) -> Document:
        text, fields = "", []
        for n in range(3):
            record = {_KEYS[0][kind]: (kind, writer.value(kind)) for kind in ("person", "phone", "email", "city")}
            pairs = " ".join(form.format(key, value) for key, (_, value) in record.items())
            text += f"2026-05-0{n + 1}T09:1{n}:00Z INFO crm request={writer.number()} {pairs} status=200\n"
            fields += record.values()
        return _marked(text, fields)

    return write


def _xml(writer: Writer) -> Document:
    record = writer.record(_KEYS[0].__getitem__)
    inner = "".join(f"  <{key}>{value}</{key}>\n" for key, (_, value) in record.items())
    return _marked(f'<customer id="{writer.number()}">\n{inner}</customer>\n', list(record.values()))


_FORMS: tuple[tuple[Callable[[Writer], Document], ...], ...] = (
    (_local_form, _json(_KEYS[0], nested=False, several=False), _json(None, nested=False, several=False), _json(_KEYS[0], nested=True, several=False), _csv(","), _log('{}="{}"')),
    (_wide_form, _json(_KEYS[1], nested=False, several=True), _json(None, nested=True, several=False), _xml, _csv(";"), _markdown, _log("{}='{}'")),
)  # fmt: skip
