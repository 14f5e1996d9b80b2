"""What a call of a tool is given: neither a token that stands for nothing, nor a value that policy does not give it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from sealab.server.cli import main
from sealab.server.privacy.tokens.audit_notes import PAUSE_SECONDS

from ...conftest import Caller, in_this_process
from ..crm import UPSTREAM, customers

COUNT = 12
ROWS = 'rows = (await tools.customers.list_customers())["customers"]\n'
UNKNOWN = "[EMAIL_0000000000]"
TOKEN = re.compile(r"\[[A-Z_]+_[0-9a-hjkmnp-tv-z]{10}\]")
ENVIRONMENT = {
    "SEALAB_PRIVACY": "auto",
    "SEALAB_PRIVACY_MODE": "fast",
    "SEALAB_ALLOWED_ISOLATION": "restricted,process",
    "SEALAB_WORKERS_SPARE": "1",
    "SEALAB_TOOL_CALLS_MAX": "100",
}


def sent(caller: Caller, name: str) -> list[dict[str, Any]]:
    file = caller.home / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    tmp_path = tmp_path_factory.mktemp("home")
    python = {"command": sys.executable, "approve": "never"}

    def mail(name: str, **policy: object) -> dict[str, object]:
        return {**python, "args": [str(UPSTREAM), "mail", str(tmp_path / f"{name}.jsonl")], **policy}

    servers = {
        "customers": {**python, "args": [str(UPSTREAM), "customers", str(COUNT)]},
        "mail": mail("mail"),
        "vault": mail("vault", restore={"SECRET": ["send.token"], "EMAIL": ["send.to"]}),
        "notes": mail("notes", allow_tokens=["send"]),
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with in_this_process(tmp_path, ENVIRONMENT) as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_sent_yet(caller: Caller) -> None:
    for file in caller.home.glob("*.jsonl"):
        file.unlink()


async def test_a_call_with_a_token_that_stands_for_nothing_is_refused_and_named(caller: Caller) -> None:
    code = f"await tools.mail.send(to={UNKNOWN!r}, subject='', body='')"
    report = await caller.run(code)
    assert report["error"]["type"] == "ToolError"
    assert f"mail.send was not called: {UNKNOWN} in 'to' stands for no value here." in report["error"]["message"]
    assert "as they were shown" in report["error"]["message"]
    assert report["privacy"]["left"] == [{"tool": "mail.send", "refused": 1, "unknown": [UNKNOWN]}]
    assert report["privacy"]["unknown"] == [UNKNOWN]
    answer = await caller.call("execute_code", code=code)
    assert f"mail.send: 1 call was refused: unknown {UNKNOWN}" in answer.content[0].text  # type: ignore[union-attr]
    assert not sent(caller, "mail")


async def test_a_rewritten_token_reaches_a_tool_and_a_file_as_its_value_and_a_cut_one_reaches_neither(
    caller: Caller,
) -> None:
    token = (await caller.run(ROWS + "result = rows[3]['email']"))["result"]
    email = customers(COUNT)[3]["email"]
    written = [token.lower(), token[1:-1], token.replace("[", "&#91;").replace("]", "&#93;"), token.replace("_", "\\_")]
    report = await caller.run(f"""
for body in {written!r}:
    await tools.mail.send(to='x', subject='', body='to ' + body)
    write_file('a.txt', 'to ' + body)
    assert open('a.txt').read() == 'to ' + restore_pii(body)
""")
    assert report["success"], report
    assert [mail["body"] for mail in sent(caller, "mail")] == [f"to {email}"] * 4
    for cut in (token[:-4], f"{token[:-5]}\u2026]", token.replace("EMAIL", "PERSON")):
        report = await caller.run(f"""
cut, refused = 'to {cut[:9]}' + {cut[9:]!r}, []
try:
    await tools.mail.send(to='x', subject='', body=cut)
except ToolError as error:
    refused.append(str(error))
try:
    write_file('b.txt', cut)
except RuntimeError as error:
    refused.append(str(error))
await tools.mail.send(to='x', subject='', body=cut, allow_tokens=True)
write_file('b.txt', cut, allow_tokens=True)
refused
""")
        assert report["success"], report["error"]
        assert [cut.strip("]") in each and "allow_tokens=True" in each for each in report["result"]] == [True, True]
        assert sent(caller, "mail")[-1]["body"] == f"to {cut}"
        assert (caller.home / "workspace" / "b.txt").read_text() == f"to {cut}"
    assert len(sent(caller, "mail")) == 7


async def test_a_value_is_written_for_its_place_in_what_a_tool_and_a_file_get_or_the_call_is_refused(
    caller: Caller,
) -> None:
    report = await caller.run("""
token = sanitize_pii("o'brien@corp.example")
assert token.startswith('[EMAIL_')
bodies = [f"SELECT 1 FROM t WHERE m = '{token}'", f'<a title="{token}">x</a>', json.dumps({'q': f"echo '{token}'"})]
for n, body in enumerate(bodies):
    await tools.mail.send(to='x', subject='', body=body)
    write_file(f'{n}.txt', body)
write_file('page.html', token + ' & co')
refused = []
try:
    await tools.mail.send(to='x', subject='', body=f"SELECT 1 FROM t WHERE 1=1 -- {token}")
except ToolError as error:
    refused.append(str(error))
try:
    write_file('a.sql', f"-- {token}")
except RuntimeError as error:
    refused.append(str(error))
refused
""")
    assert report["success"], report["error"]
    assert [mail["body"] for mail in sent(caller, "mail")] == [
        "SELECT 1 FROM t WHERE m = 'o''brien@corp.example'",
        '<a title="o&#x27;brien@corp.example">x</a>',
        json.dumps({"q": "echo 'o'\\''brien@corp.example'"}),
    ]
    files = [(caller.home / "workspace" / f"{n}.txt").read_text() for n in range(3)]
    assert files == [mail["body"] for mail in sent(caller, "mail")]
    assert len(report["result"]) == 2
    for refusal in report["result"]:
        assert "cannot be written in a comment or a body of SQL" in refusal
        assert "[EMAIL_" in refusal


async def test_numbers_of_accounts_go_to_no_tool_that_does_not_ask_for_them(caller: Caller) -> None:
    token = (await caller.run(ROWS + "result = rows[1]['iban']"))["result"]
    for value in (repr(token), "rows[1]['iban']", "'it is ' + rows[1]['iban'].replace(' ', '')"):
        report = await caller.run(ROWS + f"await tools.mail.send(to='x', subject='', body={value})")
        assert 'in mcp.json: "restore": {"*": true, "IBAN": ["send.body"]}.' in report["error"]["message"], report
    assert not sent(caller, "mail")


async def test_a_dry_run_says_that_a_call_would_be_refused_for_its_token(caller: Caller) -> None:
    report = await caller.run(f"await tools.mail.send(to={UNKNOWN!r}, subject='', body='')", dry_run=True)
    assert "stands for no value here" in report["error"]["message"]


async def test_code_can_catch_the_refusal_and_of_many_tokens_some_are_named(caller: Caller) -> None:
    report = await caller.run("""
refused = 0
for n in range(30):
    try:
        await tools.mail.send(to=f'[EMAIL_{n:010}]', subject='', body='')
    except ToolError:
        refused += 1
result = refused
""")
    assert report["result"] == 30
    assert report["privacy"]["left"][0]["refused"] == 30
    assert len(report["privacy"]["left"][0]["unknown"]) == 20
    assert "20 of 30 tokens" in str(report["truncated"]["left"])


async def test_where_the_operator_allows_it_a_tool_is_given_tokens_as_they_are(caller: Caller) -> None:
    secret = (await caller.run(ROWS + "result = rows[2]['api_key']"))["result"]
    report = await caller.run(
        ROWS + f"await tools.notes.send(to={UNKNOWN!r}, subject='', body=sanitize_pii(rows[2]['api_key']))"
    )
    assert report["success"], report
    assert sent(caller, "notes")[-1]["to"] == UNKNOWN
    assert sent(caller, "notes")[-1]["body"] == secret
    left = {"tool": "notes.send", "withheld": [secret], "unknown": [UNKNOWN]}
    assert report["privacy"]["left"] == [left]


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_a_secret_goes_to_no_tool_as_a_value_either_however_the_code_came_by_it(
    caller: Caller, isolation: str
) -> None:
    secret = (await caller.run(ROWS + "result = rows[2]['api_key']"))["result"]
    code = f"""
token, refused = {secret!r}, []
for body in (
    rows[2]['api_key'], 'key: ' + rows[2]['api_key'] + '!', json.dumps({{'key': [rows[2]['api_key']]}}),
    restore_pii(sanitize_pii(rows[2]['api_key'])), restore_pii(token), token,
):
    try:
        await tools.mail.send(to='x', subject='', body=body)
    except ToolError as error:
        refused.append(str(error))
refused
"""
    report = await caller.run(ROWS + code, isolation=isolation)
    said = "the operator's `restore` does not give it a value of the type SECRET in 'body'"
    assert [said in each for each in report["result"]] == [True] * 6, report
    assert report["privacy"]["left"] == [{"tool": "mail.send", "refused": 6, "values": {"SECRET": 6}}]
    assert not sent(caller, "mail")
    assert str(customers(COUNT)[2]["api_key"]) not in json.dumps(report)


async def test_a_secret_restored_by_code_in_a_run_that_met_it_nowhere_else_goes_to_no_tool(caller: Caller) -> None:
    secret = (await caller.run(ROWS + "result = rows[2]['api_key']"))["result"]
    report = await caller.run(f"await tools.mail.send(to='x', subject='', body=restore_pii({secret!r}))")
    assert "SECRET in 'body'" in report["error"]["message"]
    assert not sent(caller, "mail")


async def test_values_and_tokens_go_where_the_policy_names_their_type_and_argument(caller: Caller) -> None:
    row = customers(COUNT)[2]
    code = ROWS + "await tools.vault.send(to=rows[2]['email'], subject='', body='', token=rows[2]['api_key'])"
    assert (await caller.run(code))["success"]
    hidden = code.replace("rows[2]['email']", "sanitize_pii(rows[2]['email'])")
    assert (await caller.run(hidden))["success"]
    for mail in sent(caller, "vault"):
        assert (mail["to"], mail["token"]) == (row["email"], row["api_key"])
    for argument in ("body", "subject"):
        given = {"to": "'x'", "subject": "''", "body": "''", argument: "rows[2]['email']"}
        written = ", ".join(f"{name}={value}" for name, value in given.items())
        report = await caller.run(ROWS + f"await tools.vault.send({written})")
        assert f"a value of the type EMAIL in {argument!r}" in report["error"]["message"]
        assert report["privacy"]["left"] == [{"tool": "vault.send", "refused": 1, "values": {"EMAIL": 1}}]
    assert len(sent(caller, "vault")) == 2


async def test_what_a_tool_gave_may_go_back_to_that_tool_and_to_no_other(caller: Caller) -> None:
    first = "first = await tools.customers.page()\n"
    report = await caller.run(
        first + "result = [(await tools.customers.page(token=first['page_token']))['asked'], first['page_token']]"
    )
    assert report["result"][0] is True, report
    assert TOKEN.fullmatch(report["result"][1])
    report = await caller.run(first + "await tools.mail.send(to='x', subject='', body='', token=first['page_token'])")
    assert "SECRET in 'token'" in report["error"]["message"]


async def test_what_left_for_tools_is_in_the_audit_with_run_recipient_type_and_count(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    token = (await caller.run(ROWS + "result = rows[3]['email']"))["result"]
    report = await caller.run(
        ROWS
        + "for row in rows:\n    await tools.mail.send(to=row['email'], subject='', body='')\n"
        + "for n in range(5):\n    await tools.mail.send(to='x', subject='', body=sanitize_pii(rows[3]['email']))\n"
        + f"x = restore_pii({token!r})\n"
        + "try:\n    await tools.mail.send(to=rows[2]['api_key'], subject='', body='')\nexcept ToolError:\n    pass"
    )
    assert report["success"], report
    await anyio.sleep(2 * PAUSE_SECONDS)  # lines are written so long after their calls
    command = ["pii", "audit", "--home", str(caller.home), "--json", "--limit", "1000"]
    assert await anyio.to_thread.run_sync(main, command) == 0
    lines = [line for line in json.loads(capsys.readouterr().out)["audit"] if line["run"] == report["run_id"]]
    told = [(line["action"], line["destination"], line["type"], line["count"]) for line in lines]
    assert len(told) == len(set(told))
    assert ("send", "mail.send", "EMAIL", COUNT) in told
    assert ("restore", "mail.send", "EMAIL", 5) in told
    assert ("restore", "code", "EMAIL", 1) in told
    assert ("hide", "code", "EMAIL", 5) in told
    assert ("refuse", "mail.send", "SECRET", 1) in told


async def test_hiding_in_a_loop_is_no_call_of_the_budget(caller: Caller) -> None:
    code = ROWS + "tokens = {sanitize_pii(rows[n % 9]['email']) for n in range(300)}\nresult = len(tokens)"
    report = await caller.run(code)
    assert report["result"] == 9, report


async def test_the_instructions_say_in_two_sentences_what_code_has_and_the_model_sees(
    caller: Caller, tmp_path: Path
) -> None:
    said = caller.client.instructions or ""
    assert "Code holds real personal data, and you see a token such as [EMAIL_" in said
    assert "A token that you write in code or in context_vars is its value there" in said
    async with in_this_process(tmp_path, {"SEALAB_PRIVACY": "tools"}) as plain:
        added = said.removeprefix((plain.client.instructions or "").partition("\n\nAttached")[0])
        assert "real personal data" not in (plain.client.instructions or "")
    assert added.count(". ") + added.count(".\n") <= 3, added


async def test_a_token_among_the_arguments_of_a_skill_is_its_value(caller: Caller) -> None:
    token = (await caller.run(ROWS + "result = rows[4]['email']"))["result"]
    skill = "async def find(address: str) -> list:\n    rows = (await tools.customers.list_customers())['customers']\n"
    skill += "    return [row['id'] for row in rows if row['email'] == address]"
    assert (await caller.run(f"save_skill('find', {skill!r})"))["success"]
    answer = await caller.told("run_skill", name="find", arguments={"address": token})
    assert answer["result"] == [4], answer


async def test_what_a_tool_gives_packed_is_learned_when_code_has_it(caller: Caller) -> None:
    report = await caller.run("""
import gzip
handle = (await tools.customers.packed())["handle"]
names = gzip.decompress(read_file(handle, encoding=None)).decode()
print(names.splitlines()[3])
""")
    assert TOKEN.fullmatch(report["output"].strip()), report["error"]


async def test_a_number_with_digits_around_it_goes_to_no_tool_that_may_not_have_it(caller: Caller) -> None:
    for glued in ("'9' + card + '9'", "f'{card}{7:010d}'", "''.join(map(str, rows[1].values()))"):
        code = ROWS + f"card = str(rows[1]['card'])\nawait tools.vault.send(to='x', subject='', body={glued})"
        report = await caller.run(code)
        assert report["privacy"]["left"][0]["values"]["CARD"] == 1, glued
    assert not sent(caller, "vault")


RECORDS = """
lines = [f"{n:04d}{row['iban'].replace(' ', ''):<34}{n * 100:012d}{row['card']}{row['phone'].strip('+').replace(' ', '')}EUR\\n"
         for n, row in enumerate(rows)]
"""


@pytest.mark.parametrize(
    "shows",
    [
        "print(''.join(lines))",
        "write_file('bank.dat', ''.join(lines))\nprint(open('bank.dat').read())",
        "result = [line.encode().hex() for line in lines] + [int(str(row['card']) + '0007') for row in rows]",
        "print(*(f\"{row['iban'].replace(' ', '')}{5:010d}\" for row in rows))",
        "print(*(''.join(map(str, row.values())) for row in rows))",
    ],
)
async def test_a_record_of_fixed_width_shows_no_number_that_a_tool_gave(caller: Caller, shows: str) -> None:
    seen = (await caller.call("execute_code", code=ROWS + RECORDS + shows)).model_dump_json()
    for row in customers(COUNT):
        for value in (str(row["card"]), row["iban"], row["iban"].replace(" ", "")):
            assert value not in seen
            assert value.encode().hex() not in seen


async def test_a_record_of_fixed_width_is_read_from_the_workspace_without_its_numbers(caller: Caller) -> None:
    await caller.call("execute_code", code=ROWS + RECORDS + "write_file('bank.dat', ''.join(lines))")
    seen = (await caller.call("read_workspace_file", filename="bank.dat")).model_dump_json()
    written = (caller.home / "workspace" / "bank.dat").read_text()
    for row in customers(COUNT):
        assert str(row["card"]) in written
        assert str(row["card"]) not in seen
        assert row["iban"].replace(" ", "") not in seen
    assert TOKEN.search(seen)
