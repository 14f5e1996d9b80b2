"""Under PRIVACY=auto a value that a file gave is hidden in whatever form code shows it, and its form comes back."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...conftest import Caller, in_process_server

AUTO = {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast"}
TOKEN = re.compile(r"\[[A-Z_]+_([0-9a-hjkmnp-tv-z]{6})[0-9a-hjkmnp-tv-z]{4}\]")
PEOPLE = [
    {"customer_name": "Jürgen Brannock", "email": "j.brannock77@corp.example", "phone": "+49 30 1234567", "birth_date": "1980-03-05"},
    {"customer_name": "Ottilie Kessling", "email": "ottilie@corp.example", "phone": "+1 202-555-0143", "birth_date": "1971-11-30"},
]  # fmt: skip
SHOWS = """
import base64, json
from datetime import date
from urllib.parse import quote
lines = []
for row in json.loads(read_file("people.json")):
    name, day = row["customer_name"], date.fromisoformat(row["birth_date"])
    first, last = name.split()
    lines += [name.lower(), f"{first}_{last}".lower(), first + last, f"{first[0]}. {last}", f"{last}, {first}", quote(name),
              base64.b64encode(name.encode()).decode(), f"invoice_{first[0].lower()}{last.lower()}_7.pdf",
              row["email"].split("@")[0], day.strftime("%d.%m.%Y"), day.strftime("%B %d, %Y"),
              "".join(c for c in row["phone"] if c.isdigit())]
"""


def forms() -> list[str]:
    names: dict[str, object] = {"read_file": lambda _name: json.dumps(PEOPLE)}
    exec(SHOWS, names)
    lines = names["lines"]
    assert isinstance(lines, list)
    return lines


def made(home: Path) -> None:
    (home / "workspace").mkdir()
    (home / "workspace" / "people.json").write_text(json.dumps(PEOPLE), encoding="utf-8")


caller = in_process_server(AUTO, made)


async def test_no_form_of_what_a_file_gave_is_shown(caller: Caller) -> None:
    expected = [form.removeprefix("invoice_").removesuffix("_7.pdf") for form in forms()]
    for way in ("print('\\n'.join(lines))", "result = lines", "raise ValueError('\\n'.join(lines))"):
        seen = (await caller.call("execute_code", code=SHOWS + way)).model_dump_json()
        assert [form for form in expected if form in seen] == [], way


async def test_what_the_model_writes_of_it_is_the_form_that_stood_there(caller: Caller) -> None:
    said = str((await caller.run(SHOWS + "print('\\n'.join(lines))"))["output"])
    await caller.call("write_workspace_file", filename="forms.txt", content=said)
    assert (caller.home / "workspace" / "forms.txt").read_text(encoding="utf-8").splitlines() == forms()
    begins = [TOKEN.findall(line)[0] for line in said.splitlines()]
    half = len(begins) // 2
    assert len({*begins[:8]}) == len({*begins[half : half + 8]}) == 1, "each person's name in eight forms"
    assert begins[0] != begins[half]
