"""What leaks of known values when code prints them in another form, end to end, and what is hidden beside them.

    python -m tests.benchmarks.privacy_forms [--people N] [--seed N] [--nobody FOLDER] [--show]

A real server under PRIVACY=auto has a file of people of 16 locales (Faker's). Code reads the file and prints, for each
transform, the transformed value of each person: alone on a line, in a sentence, or in the name of a file. It leaks
where it stands in the answer as it was printed, or more than a third of its letters and digits do. The same expressions give the expected texts here.

Beside it: what of texts about nobody is hidden, in findings to a KB, after all these people are known, and before.
FOLDER may hold further such texts, as `make bench-privacy` reads them (`negatives*.jsonl`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from .privacy import read
from .privacy_corpus.documents import Writer
from .privacy_corpus.locales import LOCALES

TOKEN = re.compile(r"\[[A-Z_]+_[0-9a-hjkmnp-tv-z]{10}\]")
PRELUDE = """
import base64, json, re, unicodedata
import datetime
from urllib.parse import quote

def bare(v):
    return "".join(c for c in unicodedata.normalize("NFD", v) if not 0x300 <= ord(c) < 0x370)

def words(v):
    return [w for w in re.split(r"[\\s,.]+", v) if w]

def day(v):
    return datetime.date.fromisoformat(v)

def digits(v):
    return "".join(c for c in v if c.isdigit())

MONTHS = "January February March April May June July August September October November December".split()
TWO = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ø": "oe", "å": "aa", "æ": "ae"})
CYRILLIC = str.maketrans(dict(zip("абвгдезийклмнопрстуфыэжхцчшщъьёюяєіїґ", "a b v g d e z i i k l m n o p r s t u f y e zh kh ts ch sh shch ie _ e iu ia ie i i g".replace("_", "").split(" "))))
GREEK = str.maketrans(dict(zip("αβγδεζηθικλμνξοπρσςτυφχψω", "a v g d e z i th i k l m n x o p r s s t y f ch ps o".split())))
"""
PERSON, DOB, PHONE, MAIL, CARD, IBAN, PLACE = "name", "dob", "phone", "email", "card", "iban", "address"
TIME = "T00:00:00Z"
TRANSFORMS: tuple[tuple[str, str, str], ...] = (
    ("as it is", PERSON, "v"),
    ("lower()", PERSON, "v.lower()"),
    ("upper()", PERSON, "v.upper()"),
    ("title()", PERSON, "v.title()"),
    ("casefold()", PERSON, "v.casefold()"),
    ("NFC", PERSON, 'unicodedata.normalize("NFC", v)'),
    ("NFD", PERSON, 'unicodedata.normalize("NFD", v)'),
    ("without accents", PERSON, "bare(v)"),
    ("without accents, lower", PERSON, "bare(v).lower()"),
    ("two letters for one (ae, ss)", PERSON, "v.translate(TWO)"),
    ("Cyrillic and Greek in Latin", PERSON, "v.lower().translate(CYRILLIC).translate(GREEK).title()"),
    ("first_last", PERSON, '"_".join(words(v)).lower()'),
    ("first.last", PERSON, '".".join(words(v)).lower()'),
    ("first-last, a slug", PERSON, '"-".join(words(bare(v))).lower()'),
    ("FirstLast", PERSON, '"".join(w[:1].upper() + w[1:] for w in words(v))'),
    ("firstlast", PERSON, '"".join(words(v)).lower()'),
    ("lastfirst", PERSON, "(words(v)[-1] + words(v)[0]).lower()"),
    ("Last, First", PERSON, 'words(v)[-1] + ", " + words(v)[0]'),
    ("LAST First", PERSON, 'words(v)[-1].upper() + " " + words(v)[0]'),
    ("J. Doe", PERSON, 'words(v)[0][0] + ". " + words(v)[-1]'),
    ("J Doe", PERSON, 'words(v)[0][0] + " " + words(v)[-1]'),
    ("Doe J.", PERSON, 'words(v)[-1] + " " + words(v)[0][0] + "."'),
    ("jdoe", PERSON, "(words(v)[0][0] + words(v)[-1]).lower()"),
    ("base 64", PERSON, "base64.b64encode(v.encode()).decode()"),
    ("base 64, begun one byte later", PERSON, 'base64.b64encode(("x" + v + "!").encode()).decode()'),
    ("base 64, begun two bytes later", PERSON, 'base64.b64encode(("xy" + v + "!!").encode()).decode()'),
    ("hexadecimal", PERSON, "v.encode().hex()"),
    ("URL-encoded", PERSON, "quote(v)"),
    ("JSON escapes", PERSON, "json.dumps(v)"),
    ("repr of bytes", PERSON, "repr(v.encode())"),
    ("cut off with an ellipsis", PERSON, 'v[: max(7, len(v) * 3 // 4)] + "..." if len(v) > 9 else v'),
    ("2026-03-05", DOB, "v"),
    ("05.03.2026", DOB, 'day(v).strftime("%d.%m.%Y")'),
    ("3/5/2026", DOB, 'f"{day(v).month}/{day(v).day}/{day(v).year}"'),
    ("05/03/26", DOB, 'day(v).strftime("%d/%m/%y")'),
    ("5 March 2026", DOB, 'f"{day(v).day} {MONTHS[day(v).month - 1]} {day(v).year}"'),
    ("March 5, 2026", DOB, 'f"{MONTHS[day(v).month - 1]} {day(v).day}, {day(v).year}"'),
    ("5 Mar 2026", DOB, 'f"{day(v).day} {MONTHS[day(v).month - 1][:3]} {day(v).year}"'),
    ("20260305", DOB, 'v.replace("-", "")'),
    ("2026-03-05T00:00:00Z", DOB, f"v + {TIME!r}"),
    ("seconds since 1970", DOB, "str((day(v) - datetime.date(1970, 1, 1)).days * 86400)"),
    ("month of the locale", DOB, 'f"{day(v).day} {months[day(v).month - 1]} {day(v).year}"'),
    ("digits alone", PHONE, "digits(v)"),
    ("digits in threes", PHONE, '" ".join(digits(v)[i : i + 3] for i in range(0, len(digits(v)), 3))'),
    ("digits with points", PHONE, '".".join(digits(v)[i : i + 3] for i in range(0, len(digits(v)), 3))'),
    ("without blanks", CARD, "digits(v)"),
    ("in groups of four", CARD, '" ".join(digits(v)[i : i + 4] for i in range(0, len(digits(v)), 4))'),
    ("without blanks", IBAN, 'v.replace(" ", "")'),
    ("in groups of four", IBAN, '" ".join(v.replace(" ", "")[i : i + 4] for i in range(0, len(v.replace(" ", "")), 4))'),
    ("small letters", IBAN, "v.lower()"),
    ("upper()", MAIL, "v.upper()"),
    ("mailbox", MAIL, 'v.split("@")[0]'),
    ("mailbox with blanks", MAIL, 'v.split("@")[0].replace(".", " ").replace("_", " ")'),
    ("URL-encoded", MAIL, "quote(v)"),
    ("lower()", PLACE, "v.lower()"),
    ("on one line, a slug", PLACE, '"-".join(words(bare(v))).lower()'),
    ("cut off with an ellipsis", PLACE, 'v[: len(v) * 3 // 4] + "..."'),
)  # fmt: skip
SETTINGS = ("{}", "Done with {} today.", "report_{}_final.pdf")


def people(count: int, seed: int) -> list[dict[str, Any]]:
    """Return as many people of each locale."""
    found = []
    for locale in LOCALES:
        writer = Writer(locale, seed, held_out=False)
        dice = random.Random(f"{locale.name} {seed}")
        for _ in range(count // len(LOCALES)):
            row: dict[str, Any] = {key: writer.value(kind) for key, kind in (
                (PERSON, "person"), (PHONE, "phone"), (MAIL, "email"), (CARD, "card"), (IBAN, "iban"), (PLACE, "address"),
            )}  # fmt: skip
            row[DOB] = date.fromordinal(
                dice.randrange(date(1940, 1, 1).toordinal(), date(2007, 1, 1).toordinal())
            ).isoformat()
            row["months"] = list(locale.months) or [str(n) for n in range(1, 13)]
            row["cased"] = row[PERSON].lower() != row[PERSON]
            found.append(row)
    return found


def expected(rows: Sequence[dict[str, Any]], field: str, expression: str) -> list[str]:
    """Return what the code prints, worked out here."""
    names: dict[str, Any] = {}
    exec(PRELUDE, names)  # the same source as in the server
    return [str(eval(expression, {**names, "v": row[field], "months": row["months"]})) for row in rows]


def is_the_value(said: str, row: dict[str, Any], name: str) -> bool:
    """Return whether a transform has a meaning for a value: no initials in scripts without any, no name of one word."""
    parts = [part for part in re.split(r"[\s,.]+", str(row[PERSON])) if part]
    if (
        not row["cased"]
        and any(part.isascii() is False for part in parts)
        and name in {"J. Doe", "J Doe", "Doe J.", "jdoe"}
    ):
        return False
    if name in {"J. Doe", "J Doe", "Doe J.", "jdoe", "lastfirst", "Last, First", "LAST First"}:
        # A title or a suffix is nobody's name, and an initial alone says nothing.
        return len(parts) > 1 and not _titles(parts) and len(said) > 3
    return True


def _titles(parts: Sequence[str]) -> bool:
    ends = {
        "md", "dds", "phd", "jr", "dvm", "ii", "iii", "iv", "v", "mba", "bsc", "msc", "ba", "bed", "beng", "meng",
        "a", "sc", "ed",
    }  # fmt: skip
    begins = {
        "dr", "mr", "mrs", "ms", "miss", "herr", "frau", "prof", "univ", "dipl", "ing", "sig", "dott", "г-н", "г-жа",
        "pan", "pani", "hr", "fr", "sr", "sra", "srta", "bay", "bayan", "sayın", "dra", "тов", "mme", "le", "la",
        "ir", "drs", "av",
    }  # fmt: skip
    return parts[-1].lower() in ends or parts[0].lower() in begins or len(parts[-1]) < 2 or len(parts[0]) < 2


def shows_most(line: str, setting: str, said: str) -> bool:
    """Return whether more than a third of the letters and digits of a value are left beside the tokens."""
    left = sum(map(str.isalnum, TOKEN.sub("", line).replace(TIME, ""))) - sum(map(str.isalnum, setting))
    return 3 * left > sum(map(str.isalnum, said))


async def shown(client: Client, file: str, field: str, expression: str, setting: str) -> list[str]:
    """Return the lines that the model sees."""
    code = (
        f"{PRELUDE}\nfor row in json.loads(read_file({file!r})):\n    v, months = row[{field!r}], row['months']\n"
        f"    print({setting!r}.format({expression}))\n"
    )
    answer = (await client.call_tool("execute_code", {"code": code})).structured_content
    assert answer is not None
    if not answer["success"]:
        raise SystemExit(f"{expression}: {answer['error']}")
    return str(answer["output"]).splitlines()


async def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=320)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--nobody", type=Path, help="a folder with more texts about nobody")
    parser.add_argument("--only", help="transforms whose names hold this")
    parser.add_argument("--show", action="store_true", help="print what leaks and what is hidden falsely")
    options = parser.parse_args()
    rows = people(options.people, options.seed)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "workspace").mkdir()
        (Path(home) / "workspace" / "people.json").write_text(json.dumps(rows, ensure_ascii=False))
        (Path(home) / "workspace" / "nobody.json").write_text(json.dumps(texts_about_nobody(options.nobody)))
        server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "sealab.server", "serve", "--home", home],
            env={
                **os.environ,
                "SEALAB_PRIVACY": "auto",
                "SEALAB_PRIVACY_MODE": "fast",
                "SEALAB_OUTPUT_MAX_CHARS": "2000000",
            },
        )
        async with Client(server, mode="legacy") as client:
            before = await hidden_of_nobody(client, show=False)
            unknown: dict[str, set[int]] = {}
            for field in (PERSON, DOB, PHONE, MAIL, CARD, IBAN, PLACE):
                lines = await shown(client, "people.json", field, "v", SETTINGS[0])
                unknown[field] = {n for n, row in enumerate(rows) if row[field] in "\n".join(lines)}
            print("not found in the file itself:", {field: len(those) for field, those in unknown.items()})
            print(
                f"{'':36}{'values':>8}"
                + "".join(f"{each:>24}" for each in ("alone", "in a sentence", "in a file's name"))
            )
            for name, field, expression in TRANSFORMS:
                if options.only and options.only not in name:
                    continue
                said = expected(rows, field, expression)
                counted = [
                    n for n, row in enumerate(rows) if is_the_value(said[n], row, name) and n not in unknown[field]
                ]
                cells = []
                for setting in SETTINGS:
                    lines = await shown(client, "people.json", field, expression, setting)
                    whole = "\n".join(lines)
                    same = len(lines) == len(rows)
                    leaked = [
                        n
                        for n in counted
                        if said[n] in whole or (same and shows_most(lines[n], setting, said[n].removesuffix(TIME)))
                    ]
                    cells.append(f"{100 * len(leaked) / len(counted):.1f} %")
                    if options.show:
                        print(*(f"    {rows[n][field]!r}: {lines[n] if same else said[n]!r}" for n in leaked), sep="\n")
                print(
                    f"{field + ': ' + name:36}{len(counted):>8}" + "".join(f"{cell:>24}" for cell in cells), flush=True
                )
            after = await hidden_of_nobody(client, show=options.show)
    print(f"\nhidden of texts about nobody, to a KB: {before:.2f} before these people were known, {after:.2f} after")


def texts_about_nobody(folder: Path | None) -> list[str]:
    """Return texts in which nothing is personal."""
    texts = [
        document.text
        for locale in LOCALES
        for document in Writer(locale, 5, held_out=False).documents(4)
        if not document.marks
    ]
    for path in sorted(folder.glob("negatives*.jsonl*")) if folder else ():
        texts += [row.text for row in read(path)]
    return texts


async def hidden_of_nobody(client: Client, *, show: bool) -> float:
    """Return how many tokens stand in the texts about nobody, to a KB."""
    code = "import json\nprint('\\n----\\n'.join(json.loads(read_file('nobody.json'))))"
    answer = (await client.call_tool("execute_code", {"code": code})).structured_content
    assert answer is not None
    if not answer["success"]:
        raise SystemExit(str(answer["error"]))
    said = str(answer["output"])
    if show:
        print(*(f"    hidden: {said[max(0, m.start() - 40) : m.end() + 30]!r}" for m in TOKEN.finditer(said)), sep="\n")
    return len(TOKEN.findall(said)) / (len(said) / 1024)


if __name__ == "__main__":
    asyncio.run(main())
