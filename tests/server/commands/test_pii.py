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


@pytest.mark.parametrize(
    ("encoding", "said", "from_stdin"),
    [
        ("latin-1", "cp1252", False),
        ("latin-1", "cp1252", True),
        ("utf-16", "utf-16-le", True),
        ("utf-16-be", "utf-16-be", False),
        ("utf-8-sig", None, True),
    ],
)
def test_what_a_file_is_written_in_is_found_out_said_and_kept(
    tmp_path: Path, encoding: str, said: str | None, *, from_stdin: bool
) -> None:
    text = "customer_name,email\r\nZoë Krügersdóttir,zoe@corp.example\r\nRené Åbjörnsson,rene@corp.example\r\n"
    file = tmp_path / "people.csv"
    file.write_bytes(text.encode(encoding))
    hidden = pii(tmp_path, "sanitize", *([] if from_stdin else [str(file)]), "--as", "csv", text=file.read_bytes())
    assert hidden.returncode == 0, hidden.stderr
    shown = hidden.output.decode(encoding)
    assert "Hidden: 2 EMAIL, 2 PERSON." in hidden.stderr
    assert shown.count("[PERSON_") == shown.count("[EMAIL_") == 2
    assert ("by its bytes" in hidden.stderr) is (said is not None)
    assert said is None or f"Read as {said}" in hidden.stderr
    named = ["--encoding", "latin-1"] if encoding == "latin-1" else []  # with its tokens it is ASCII
    assert pii(tmp_path, "restore", *named, text=hidden.output).output == text.encode(encoding)


def test_a_stray_letter_far_behind_is_no_utf_8_either(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    lines = b"".join(b"%d%s,\n" % (n, b"." * 60) for n in range(1500))  # more than is looked at first
    file.write_bytes(b"n,customer_name\n" + lines + b"1,Ren\xe9 Krausnick\n")
    hidden = pii(tmp_path, "sanitize", str(file))
    assert "Read as cp1252" in hidden.stderr
    assert b"Krausnick" not in hidden.output
    assert "1 bytes are not utf-8" in pii(tmp_path, "sanitize", text=file.read_bytes()).refusal(1)
    named = pii(tmp_path, "sanitize", "--encoding", "latin1", "--as", "csv", text=file.read_bytes())
    assert named.returncode == 0
    assert b"Krausnick" not in named.output


def test_what_is_no_text_is_refused_and_an_encoding_that_there_is_not_too_and_an_unknown_token_is_counted(
    tmp_path: Path,
) -> None:
    binary = pii(tmp_path, "sanitize", text=bytes(range(256)) * 20)
    assert (binary.returncode, binary.output) == (2, b"")
    assert "does not look like text" in binary.stderr
    assert pii(tmp_path, "sanitize", "--encoding", "klingon", text=b"x").returncode == 2
    assert ": 1 token ([EMAIL_aaaaaaaaaa])." in pii(tmp_path, "restore", text=b"[EMAIL_aaaaaaaaaa]").stderr


@pytest.mark.parametrize(("name", "content"), [("t.csv", TABLE), ("r.json", RECORD), ("p.txt", PROSE)])
def test_a_file_is_hidden_stays_valid_and_comes_back_byte_for_byte(tmp_path: Path, name: str, content: str) -> None:
    file, hidden = tmp_path / name, tmp_path / f"hidden-{name}"
    raw = content.encode() + ("é".encode() + b"\xff\xfe not UTF-8" if name == "p.txt" else b"")
    file.write_bytes(raw)
    assert pii(tmp_path, "sanitize", str(file), "-o", str(hidden)).returncode == (name == "p.txt")
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
    answer = pii(tmp_path, "sanitize", "--json", text=PROSE.encode()).told
    assert (answer["pii_found"], answer["pii_types"]) == (2, ["EMAIL", "SSN"])
    forgotten = pii(tmp_path, "forget", "jane@corp.example", "--only", "--yes", "--json").told
    assert (forgotten["erased"], forgotten["forgotten"], forgotten["types"]) == (True, 1, {"EMAIL": 1})
    back = pii(tmp_path, "restore", "-", "--json", text=answer["sanitized_text"].encode()).told
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
    shown = pii(tmp_path, "forget", "--scope", scope[:8], "--json").told
    assert shown == {"erased": False, "forgotten": 1, "types": {"SSN": 1}, "runs": []}
    forgotten = pii(tmp_path, "forget", "--scope", scope[:8], "--json", "--yes").told
    assert forgotten == {**shown, "erased": True}


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


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("stray.jsonl", '{"a": 1}\nwrite to jane@corp.example\n', 2),
        ("comment.json", '{\n  // owner: jane@corp.example\n  "a": 1}', 2),
        ("single.json", "{'email': 'jane@corp.example'}", 1),
        ("open.json", '{"a": 1, "email": "jane@corp.example', 1),
        ("number.json", '["x",\n 536-90-4399]', 2),
        ("seam.json", f"[{'1,' * 131_062}\n 4111111111111111 1, 536-90-4399]", 2),
        ("prose.json", "jane@corp.example", 1),
    ],
)
def test_a_file_that_is_not_json_is_not_taken_for_json(tmp_path: Path, name: str, text: str, line: int) -> None:
    file, made = tmp_path / name, tmp_path / "made"
    file.write_text(text)
    assert (
        f"Line {line} of the input is not valid JSON. Correct it, or give --as text."
        in pii(
            tmp_path, "restore" if name in {"comment.json", "prose.json"} else "sanitize", str(file), "-o", str(made)
        ).refusal()
    )
    assert not made.exists()
    hidden = pii(tmp_path, "sanitize", str(file), "--as", "text").output
    assert b"jane" not in hidden
    assert b"536-90-4399" not in hidden


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff{"a": [1, -2.5e3, true, null, NaN, -Infinity], "b": {}}\r\n',
        '{"a": 1}{"b": 2}\n\n[]\n7\n8\n',
        f'\x1e{{"n": {"9" * 60}}}\n\x1e"x"\n',
        '{"a": 1,}',
        "",
    ],
)
def test_json_comes_through_as_it_was(tmp_path: Path, text: str) -> None:
    assert pii(tmp_path, "sanitize", "--as", "json", text=text.encode()).output == text.encode()
