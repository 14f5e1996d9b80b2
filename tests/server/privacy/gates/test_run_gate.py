"""Under PRIVACY=auto the model's client sees no personal data, whatever a program does with it; tools get all of it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult

from ...conftest import in_this_process
from ..crm import UPSTREAM, customers

COUNT = 200
AUTO = {"SEALAB_PRIVACY": "auto", "SEALAB_PRIVACY_MODE": "fast", "SEALAB_OUTPUT_MAX_CHARS": "100000"}
PERSONAL = ("customer_name", "email", "phone", "card", "iban", "ssn", "api_key")
VALUES = {
    form for row in customers(COUNT) for key in PERSONAL for form in (str(row[key]), json.dumps(row[key]).strip('"'))
}
TOKEN = re.compile(r"\[[A-Z_]+_[0-9a-hjkmnp-tv-z]{10}\]")


@dataclass
class Model:
    """A model's side of a connection, with all that it ever saw."""

    client: Client
    home: Path
    sent: Path
    seen: list[str] = field(default_factory=list)

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments, progress_callback=self.progress)
        self.seen.append(result.model_dump_json())
        return result

    async def run(self, code: str, **arguments: Any) -> dict[str, Any]:
        report = (await self.call("execute_code", code=code, **arguments)).structured_content
        assert report is not None
        return report

    async def progress(self, _done: float, _total: float | None, message: str | None) -> None:
        self.seen.append(message or "")

    def leaked(self) -> set[str]:
        """Return the raw values that were seen, in any of the ways in which JSON may write them."""
        seen = "\n".join(self.seen)
        while "\\\\" in seen:
            seen = seen.replace("\\\\", "\\")
        return {value for value in VALUES if value in seen}


@pytest.fixture(scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Model]:
    home, sent = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("sent") / "mails.jsonl"
    python = {"command": sys.executable, "approve": "never"}
    servers = {
        "customers": {**python, "args": [str(UPSTREAM), "customers", str(COUNT)]},
        "mail": {**python, "args": [str(UPSTREAM), "mail", str(sent)], "restore": True},
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with in_this_process(home, AUTO) as caller:
        yield Model(caller.client, home, sent)


@pytest.fixture(autouse=True)
def nothing_seen_yet(model: Model) -> None:
    model.seen.clear()


ROWS = 'rows = (await tools.customers.list_customers())["customers"]\n'


async def test_code_filters_customers_of_one_server_and_mails_them_by_another(model: Model) -> None:
    report = await model.run(
        ROWS
        + """
chosen = [row for row in rows if row["balance"] >= 0]
for row in chosen:
    body = f"Dear {row['customer_name']}, call {row['phone']}; {row['card']} {row['iban']} {row['ssn']}"
    print(await tools.mail.send(to=row["email"], subject="hello", body=body))
result = {"count": len(chosen), "first": chosen[:20]}
"""
    )
    assert report["success"], report
    assert report["result"]["count"] == COUNT
    assert not model.leaked()
    assert len(set(TOKEN.findall(json.dumps(report["result"])))) >= 20 * len(PERSONAL) - 40
    assert report["privacy"]["hidden"]["EMAIL"] == COUNT
    mails = [json.loads(line) for line in model.sent.read_text(encoding="utf-8").splitlines()]
    for row, mail in zip(customers(COUNT), mails, strict=True):
        assert mail["to"] == row["email"]
        assert all(str(row[key]) in mail["body"] for key in PERSONAL if key not in {"email", "api_key"})


PRINTS = """
import json
from dataclasses import dataclass
for row in rows: print(row)
for row in rows: print(row['customer_name'], row['email'], row['phone'])
for row in rows: print(row['customer_name'])
print(json.dumps(rows))
for row in rows:
    for key in ('customer_name', 'email', 'phone', 'iban', 'ssn', 'api_key'):
        value = row[key]
        print(value[:3], end=''); print(value[3:7], end=''); print(value[7:])
print('name;card'); [print(f"{row['customer_name']};{row['card']}") for row in rows]
print(rows[0]['customer_name'].upper(), rows[0]['email'].upper())
print(await tools.customers.as_text())
@dataclass
class C:
    customer_name: str
    card: int
print([C(r['customer_name'], r['card']) for r in rows])
"""
GIVES = """
import json
result = [
    [row['customer_name'] for row in rows],
    {row['email']: {'who': {'name': [row['customer_name']], 'cards': {'x': row['card']}}} for row in rows},
    repr(rows), json.dumps(rows, indent=2, ensure_ascii=False), {row['email'] for row in rows},
    tuple((row['ssn'], row['iban']) for row in rows), '|'.join(row['customer_name'] for row in rows),
    await tools.customers.as_text(),
]
"""


@pytest.mark.parametrize(
    "code",
    [
        PRINTS,
        GIVES,
        "raise ValueError(rows[3])",
        'raise ValueError(f\'{rows[3]["customer_name"]} and {rows[4]["card"]}\')',
        "def f(row):\n    assert False, row['customer_name'] + ' ' + row['ssn']\nf(rows[0])",
        "print({row['customer_name']: row['card'] for row in rows}); undefined_name",
        "rows[0]['no such key']",
        "[][int(rows[0]['card'])]",
        "try:\n    await tools.customers.fail_on(number=5)\nexcept ToolError as error:\n    print(error)\n    raise",
    ],
)
async def test_nothing_personal_reaches_the_model_however_code_shows_it(model: Model, code: str) -> None:
    report = await model.run(ROWS + "rows = rows[:12]\n" + code)
    assert report["success"] is (code in {PRINTS, GIVES}), report["error"]
    assert not model.leaked()
    assert TOKEN.search("".join(model.seen))


async def test_a_tool_that_there_is_not_is_told_of_without_the_values_in_its_name(model: Model) -> None:
    report = await model.run(
        ROWS
        + """
for row in rows[:20]:
    for name in (row["customer_name"], "customers." + row["email"], row["ssn"], row["api_key"], "x " * 300 + row["email"]):
        try:
            await call_tool(name)
        except ToolError:
            pass
"""
    )
    assert len(report["tool_calls"]) == 20
    assert report["truncated"]["tool_calls"]["total"] == 101
    assert report["tool_calls"][0]["tool"] == "customers.list_customers"
    assert not model.leaked()


async def test_files_hold_values_and_show_tokens(model: Model) -> None:
    lines = "'\\n'.join(f\"{row['id']},{row['customer_name']},{row['email']},{row['card']}\" for row in rows)"
    await model.run(ROWS + f"write_file('people.csv', 'id,customer_name,email,card\\n' + {lines})")
    real = (model.home / "workspace" / "people.csv").read_text(encoding="utf-8")
    assert all(str(row[key]) in real for row in customers(COUNT) for key in ("customer_name", "email", "card"))

    whole = (await model.call("read_workspace_file", filename="people.csv")).structured_content
    assert whole is not None
    parts = ""
    for offset in range(0, len(real), 997):
        part = await model.call("read_workspace_file", filename="people.csv", offset=offset, limit=997)
        assert part.structured_content is not None
        parts += part.structured_content["content"]
    assert parts == whole["content"]
    refused = await model.call("read_workspace_file", filename="people.csv", encoding="base64")
    assert refused.is_error
    await model.run("print(read_file('people.csv')); result = read_file('people.csv').splitlines()[5:9]")
    await model.run(ROWS + "write_file(rows[0]['email'] + '.txt', 'x'); raise FileExistsError(rows[0]['email'])")
    await model.call("list_workspace_files")
    assert not model.leaked()


async def test_a_token_for_a_files_name_finds_the_file(model: Model) -> None:
    report = await model.run(ROWS + "result = write_file(rows[1]['email'] + '.txt', 'kept')")
    token_name = report["result"]["filename"]
    assert TOKEN.match(token_name)
    assert (model.home / "workspace" / f"{customers(COUNT)[1]['email']}.txt").exists()
    read = (await model.call("read_workspace_file", filename=token_name)).structured_content
    assert read is not None
    assert read["content"] == "kept"
    assert read["filename"] == token_name
    assert (await model.call("delete_workspace_file", filename=token_name)).structured_content == {
        "filename": token_name,
        "deleted": True,
    }
    missing = await model.call("read_workspace_file", filename=token_name)
    assert missing.is_error
    assert not model.leaked()


async def test_what_code_reads_by_open_is_hidden_as_what_it_reads_by_read_file(model: Model) -> None:
    rows = "".join(f"{row['id']},{row['customer_name']},{row['email']}\n" for row in customers(COUNT))
    folder = model.home / "workspace"
    (folder / "people").mkdir(exist_ok=True)
    (folder / "seen.csv").write_text("id,customer_name,email\n" + rows, encoding="utf-8")
    (folder / "people" / str(customers(COUNT)[3]["email"])).write_text("")
    report = await model.run("""
import csv, os, shutil
from pathlib import Path
print(open('seen.csv').read())
print(open('seen.csv', 'rb').read().decode())
for line in open('seen.csv'): print(line.split(',')[1])
f = open('seen.csv', 'rb', buffering=0)
while piece := f.read(501): print(piece.decode().split(',')[1:2])
for row in csv.DictReader(open('seen.csv')): print(row['customer_name'])
for name in os.listdir('people'): print(name); print([name.partition('@')])
shutil.copy('seen.csv', 'copy.csv')
result = [each.split(',')[1] for each in Path('seen.csv').read_text().splitlines()]
""")
    assert report["success"], report["error"]
    await model.run("raise ValueError(open('copy.csv').readlines()[5])")
    assert not model.leaked()


async def test_tokens_that_are_written_by_open_reach_the_file_as_values(model: Model) -> None:
    report = await model.run(ROWS + "result = rows[2]['email']")
    token = report["result"]
    code = f"""
with open("for-them.txt", "w") as f:
    for n in range(3000):
        f.write("line " * 50 + {token!r} + "\\n")
    told = f.tell()
with open("for-them.txt", "a") as f:
    f.write({token!r})
with open({token!r} + ".txt", "x") as f:
    f.write("x")
result = told
"""
    report = await model.run(code)
    assert report["success"], report
    email = str(customers(COUNT)[2]["email"])
    content = (model.home / "workspace" / "for-them.txt").read_text()
    assert content.count(email) == 3001
    assert "[EMAIL" not in content
    assert report["result"] == len(content) - len(email)
    assert (model.home / "workspace" / f"{email}.txt").read_text() == "x"
    assert not model.leaked()


async def test_what_the_model_writes_with_tokens_reaches_files_and_tools_as_values(model: Model) -> None:
    row = customers(COUNT)[2]
    report = await model.run(ROWS + "result = [rows[2]['email'], rows[2]['customer_name'], rows[2]['card']]")
    email, name, card = report["result"]
    await model.call("write_workspace_file", filename="note.json", content=json.dumps({"to": email, "card": card}))
    written = json.loads((model.home / "workspace" / "note.json").read_text(encoding="utf-8"))
    assert written == {"to": row["email"], "card": row["card"]}

    await model.run(f"await tools.mail.send(to={email!r}, subject='to you', body={f'Dear {name}'!r})")
    mail = json.loads(model.sent.read_text(encoding="utf-8").splitlines()[-1])
    assert (mail["to"], mail["body"]) == (row["email"], f"Dear {row['customer_name']}")
    assert not model.leaked()


async def test_values_compare_with_a_token_in_the_code_in_its_variables_and_with_hidden_values(model: Model) -> None:
    shown = (await model.run(ROWS + "result = rows[3]['customer_name']"))["result"]
    report = await model.run(
        ROWS
        + f"""
written = {shown!r}
result = [
    [row["id"] for row in rows if row["customer_name"] == written],
    [row["id"] for row in rows if row["customer_name"] in given["names"]],
    [row["id"] for row in rows if sanitize_pii(row["customer_name"]) == sanitize_pii(written)],
]
print(written, written.upper())
""",
        context_vars={"given": {"names": [shown]}},
    )
    name = customers(COUNT)[3]["customer_name"]
    assert report["result"] == [[row["id"] for row in customers(COUNT) if row["customer_name"] == name]] * 3
    assert report["privacy"]["values"] == 2
    assert not model.leaked()


async def test_the_model_gets_no_value_back_and_is_told_what_to_do(model: Model) -> None:
    token = (await model.run(ROWS + "result = rows[0]['ssn']"))["result"]
    refused = await model.call("restore_pii", text=token)
    assert refused.is_error
    assert "write_file" in refused.model_dump_json()
    await model.run(f"write_file('for-the-user.txt', restore_pii({token!r}))")
    assert (model.home / "workspace" / "for-the-user.txt").read_text() == customers(COUNT)[0]["ssn"]
    assert not model.leaked()


async def test_nothing_that_is_kept_of_a_run_holds_a_value(model: Model) -> None:
    code = ROWS + "print(rows * 2); result = rows * 2"
    report = await model.run(code + f"  # for {customers(COUNT)[0]['email']}")
    assert report["truncated"]["output"]["total"] > report["truncated"]["output"]["shown"]
    kept = list((model.home / "workspace.runs").rglob("*"))
    whole = b"".join(path.read_bytes() for path in kept if path.is_file())
    assert len(whole) > 100_000
    database = b"".join(path.read_bytes() for path in model.home.glob("sealab.db*"))
    for row in customers(COUNT):
        for key in PERSONAL:
            assert str(row[key]).encode() not in whole
            assert str(row[key]).encode() not in database
    part = await model.call(
        "read_workspace_file", filename=f".runs/{report['run_id']}/output.txt", offset=50_000, limit=3000
    )
    assert TOKEN.search(part.model_dump_json())
    assert not model.leaked()


async def test_the_statistics_count_what_the_vault_holds(model: Model) -> None:
    await model.call("execute_code", code="print('jo.nobody@corp.example', 'al.nobody@corp.example')")
    statistics = (await model.call("get_execution_stats")).structured_content
    assert statistics is not None
    assert statistics["vault"]["types"]["EMAIL"] >= 2


async def test_what_code_says_of_its_progress_and_which_calls_it_made_has_tokens(model: Model) -> None:
    report = await model.run(
        ROWS
        + "for number, row in enumerate(rows[:5], 1):\n    progress(number / 5, row['email'] + row['customer_name'])\n"
        + "await call_tool(rows[0]['email'] + '.send')\n"
    )
    assert not report["success"]
    assert report["error"]["calls"].values()
    assert any("EMAIL" in seen for seen in model.seen[:-1])
    assert not model.leaked()


async def test_a_table_in_any_form_has_tokens(model: Model) -> None:
    for form in ("json", "toon", "markdown"):
        report = await model.run(
            ROWS + "result = [{'n': n, 'mail': r['email']} for n, r in enumerate(rows[:20])]", format=form
        )
        assert "EMAIL" in str(report["result"])
    assert not model.leaked()
