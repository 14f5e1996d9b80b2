"""`sealab pii`: files of personal data from a terminal."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ..command_line import Ended, sealab

TABLE = 'customer_name,email,card\r\n"Roe, Jane ""JJ""",jane@corp.example,4111111111111111\r\nBen Kessling,ben@corp.example,5500005555555559\r\n'
RECORD = '{ "card" : 4111111111111111,\n  "customer_name": "Zo\\u00eb Kr\\u00fcger", "note": "mail zoe@corp.example\\n", "n": 3}\n'
PROSE = "Please write to jane@corp.example,\r\nSSN: 536-90-4399\r\n"


def pii(home: Path, *arguments: str, text: bytes = b"", **more: str) -> Ended:
    return sealab("pii", *arguments, "--home", str(home), stdin=text, SEALAB_PRIVACY_MODE="fast", **more)


@pytest.mark.parametrize(("name", "content"), [("t.csv", TABLE), ("r.json", RECORD), ("p.txt", PROSE)])
def test_a_file_is_hidden_stays_valid_and_comes_back_byte_for_byte(tmp_path: Path, name: str, content: str) -> None:
    file, hidden = tmp_path / name, tmp_path / f"hidden-{name}"
    raw = content.encode() + (b"\xff\xfe not UTF-8" if name == "p.txt" else b"")
    file.write_bytes(raw)
    assert pii(tmp_path, "sanitize", str(file), "-o", str(hidden)).returncode == 0
    shown = hidden.read_bytes()
    for value in (b"corp.example", b"4111111111111111", b"Kessling", b"Kr\\u00fcger", b"536-90-4399"):
        assert value not in shown
    if name == "t.csv":
        assert [len(row) for row in csv.reader(io.StringIO(shown.decode()))] == [3, 3, 3]
    if name == "r.json":
        assert json.loads(shown)["n"] == 3
    back = pii(tmp_path, "restore", str(hidden))
    assert back.output == raw
    assert "Restored:" in back.stderr


def test_stdin_json_forget_and_audit(tmp_path: Path) -> None:
    answer = json.loads(pii(tmp_path, "sanitize", "--json", text=PROSE.encode()).stdout)
    assert (answer["pii_found"], answer["pii_types"]) == (2, ["EMAIL", "SSN"])
    forgotten = json.loads(pii(tmp_path, "forget", "jane@corp.example", "--json").stdout)
    assert forgotten == {"forgotten": 1, "types": {"EMAIL": 1}}
    back = json.loads(pii(tmp_path, "restore", "-", "--json", text=answer["sanitized_text"].encode()).stdout)
    assert back["restored"] == 1
    assert [token[:7] for token in back["unknown_tokens"]] == ["[EMAIL_"]
    told = pii(tmp_path, "audit", "--json").stdout
    assert "jane" not in told
    audit = json.loads(told)
    assert audit["values"] == 1
    assert {(line["action"], line["type"]) for line in audit["audit"]} == {
        ("hide", "EMAIL"),
        ("hide", "SSN"),
        ("forget", "EMAIL"),
        ("restore", "SSN"),
    }
    scope = audit["audit"][0]["scope"]
    forgotten = json.loads(pii(tmp_path, "forget", "--scope", scope[:8], "--json").stdout)
    assert forgotten == {"forgotten": 1, "types": {"SSN": 1}}


@pytest.mark.parametrize(
    ("arguments", "more", "said", "code"),
    [
        (("sanitize", "no-such-file"), {}, "cannot be read", 2),
        (("sanitize", "/"), {}, "cannot be read", 2),
        (("forget", " "), {}, "nothing to forget", 2),
        (("forget",), {}, "not clear what to forget", 2),
        (("forget", "--scope", "0123abcd"), {}, "does not name exactly one scope", 2),
        (("audit",), {"SEALAB_PRIVACY": "off"}, "PRIVACY is off", 2),
        (("audit", "--limit", "-1"), {}, "--limit is -1, which is not allowed. Give 0 or more.", 2),
        (("sanitize",), {"SEALAB_VAULT_KEY": "short"}, "VAULT_KEY is too short", 2),
        (("sanitize",), {"SEALAB_PRIVACY_PATTERNS": '{"X": "("}'}, "PRIVACY_PATTERNS", 2),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], more: dict[str, str], said: str, code: int
) -> None:
    done = pii(tmp_path, *arguments, text=b"x", **more)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.output == b""


def test_another_key_for_the_same_vault_is_refused(tmp_path: Path) -> None:
    first = pii(tmp_path, "sanitize", text=PROSE.encode(), SEALAB_VAULT_KEY="11" * 32)
    other = pii(tmp_path, "restore", text=first.output, SEALAB_VAULT_KEY="22" * 32)
    assert other.returncode == 2
    assert "another key" in other.stderr
    assert other.output == b""
