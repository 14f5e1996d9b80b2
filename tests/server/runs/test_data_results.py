"""Results of data work as a client gets them: tables with their files, what is displayed, figures, what sessions hold."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from ...sandbox.science import science_python
from ..conftest import Caller, in_this_process


@pytest.fixture(scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Caller]:
    home = tmp_path_factory.mktemp("home")
    settings = {
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
        "SEALAB_PROCESS_PYTHON": science_python(),
        "SEALAB_MAX_MEMORY_MB": "2000",
    }
    async with in_this_process(home, settings) as caller:
        yield caller


async def test_the_report_describes_a_table_and_its_text_says_it_in_a_line(caller: Caller) -> None:
    code = "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None]}, index=['p', 'q'])"
    answer = await caller.client.call_tool("execute_code", {"code": code, "isolation": "process"})
    report = answer.structured_content
    assert report is not None
    (table,) = report["tables"]
    assert (table["name"], table["kind"], table["shape"], table["shown"]) == ("result", "pandas.DataFrame", [2, 2], 2)
    assert (table["index"], table["columns"][2]["nulls"]) == (["index"], 1)
    assert "result: pandas.DataFrame, 2 rows x 2 columns: index " in answer.content[0].text
    assert "truncated" not in report


def written_in(report: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the new files, as a run says them that changes the workspace by itself, or one that does not."""
    files = report["files"]
    return files["new"] if isinstance(files, dict) else files  # type: ignore[return-value]  # as the schema says


async def read(caller: Caller, filename: str, **slice_: int) -> tuple[dict[str, object], dict[str, object], str]:
    """Read a file of a table; return the answer, what its content says, and the text beside it."""
    answer = await caller.call("read_workspace_file", filename=filename, **slice_)
    assert answer.structured_content is not None, answer
    content = str(answer.structured_content["content"])
    return answer.structured_content, json.loads(content) if content.startswith("{") else {}, answer.content[0].text


async def test_a_table_that_is_read_shows_the_rows_asked_for_and_says_whether_more_follow(caller: Caller) -> None:
    code = """
import numpy as np, pandas as pd
rows = pd.DataFrame({"n": range(3000), "l": [[n] for n in range(3000)]})
rows.to_parquet("rows.parquet", row_group_size=700)
rows.to_feather("rows.feather")
rows.iloc[:, :1].to_excel("rows.xlsx", index=False)
np.save("rows.npy", np.arange(3000))
pd.DataFrame({"n": [1, None, 3]}, dtype="Int64").to_excel("few.xlsx", index=False)
"""
    assert (await caller.run(code, isolation="process"))["success"]
    for name in ("rows.parquet", "rows.feather"):
        answer, told, text = await read(caller, name)
        assert (told["rows"], [row["n"] for row in told["head"]]) == (3000, list(range(20)))  # type: ignore[attr-defined]
        assert (answer["truncated"], "offset=20, limit=20" in str(answer["read_with"])) == (True, True)
        assert text.endswith(f"{answer['read_with']}]")
        answer, told, _text = await read(caller, name, offset=1399, limit=3)
        assert [row["n"] for row in told["slice"]] == [1399, 1400, 1401]  # type: ignore[attr-defined]
        assert (answer["truncated"], "read_with" in answer) == (True, False)
        answer, told, _text = await read(caller, name, offset=2998)
        assert ([row["n"] for row in told["slice"]], answer["truncated"]) == ([2998, 2999], False)  # type: ignore[attr-defined]
        answer, told, _text = await read(caller, name, offset=5000)
        assert (told["slice"], answer["truncated"]) == ([], False)
        answer, told, _text = await read(caller, name, limit=0)
        assert (told["head"], answer["truncated"]) == ([], True)
    answer, told, _text = await read(caller, "rows.npy", offset=2999)
    assert (told["slice"], answer["truncated"]) == ([2999], False)
    answer, told, _text = await read(caller, "rows.xlsx", limit=2)
    assert (told["rows"], told["head"], answer["truncated"]) == (3000, [{"n": 0}, {"n": 1}], True)
    answer, told, _text = await read(caller, "few.xlsx")
    assert (told["rows"], answer["truncated"]) == (3, False)


async def test_of_a_table_too_wide_to_show_it_is_told_what_is_left_out_and_how_to_read_on(caller: Caller) -> None:
    code = """
import pandas as pd
pd.DataFrame({f"c{n}": ["x" * 900] * 60 for n in range(45)}).to_parquet("wide.parquet")
"""
    assert (await caller.run(code, isolation="process"))["success"]
    answer, told, _text = await read(caller, "wide.parquet")
    rows = told["head"]
    assert isinstance(rows, list)
    assert 1 <= len(rows) < 20
    assert answer["truncated"]
    assert f"offset={len(rows)}, limit=20" in str(answer["read_with"])
    assert told["left_out"] == "of 45 columns the rows show the first 30; texts are cut after 200 characters"
    assert len(str(answer["content"])) < 20_000


async def test_sheets_are_named_and_what_is_cut_is_no_table_or_cannot_be_a_slice_is_said(caller: Caller) -> None:
    code = """
import numpy as np, pandas as pd
with pd.ExcelWriter("two.xlsx") as book:
    pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="First", index=False)
    pd.DataFrame({"b": [2]}).to_excel(book, sheet_name="Second", index=False)
np.save("wide.npy", np.arange(12_000.0).reshape(40, 300) / 7)
np.arange(5000)
"""
    report = await caller.run(code, isolation="process")
    _answer, told, _text = await read(caller, "two.xlsx")
    assert (told["sheets"], told["sheet"], told["head"]) == (["First", "Second"], "First", [{"a": 1}])
    answer, _told, text = await read(caller, "wide.npy")
    assert len(text) < len(str(answer["content"]))
    assert text.endswith("… [cut here; the structured content has more]")
    answer, _told, _text = await read(caller, report["result"]["file"])
    assert "shape" in str(answer["content"])
    assert answer["truncated"]
    refused = await caller.call("read_workspace_file", filename="wide.npy", offset=-1)
    assert "count rows of a table" in refused.content[0].text
    await caller.call("write_workspace_file", filename="broken.npy", content="no array")
    broken = await caller.refusal("read_workspace_file", filename="broken.npy")
    assert "cannot be read as a table" in broken
    assert "base64" in broken


async def test_a_large_table_is_taken_by_its_name_by_the_next_call_by_reading_and_by_a_skill(caller: Caller) -> None:
    code = "import pandas as pd\npd.DataFrame({'n': range(4000), 'label': ['a', None] * 2000})"
    report = await caller.run(code, isolation="process")
    shown = report["result"]
    assert isinstance(shown, dict)
    assert (shown["rows"], len(shown["head"]), len(shown["tail"])) == (4000, 5, 5)
    (table,) = report["tables"]  # type: ignore[misc,attr-defined]
    assert table["file"] == shown["file"]
    (written,) = written_in(report)
    assert written["name"] == shown["file"]
    again = await caller.run(f"import pandas as pd\nint({shown['read_with']}.n.sum())", isolation="process")
    assert again["result"] == sum(range(4000))
    read = await caller.told("read_workspace_file", filename=shown["file"])
    assert "label" in read["content"]
    saved = await caller.call(
        "save_skill",
        name="bytes_of",
        code="def bytes_of(name: str) -> int:\n    '''Count the bytes of a file.'''\n"
        "    return len(read_file(name, encoding=None))",
    )
    assert not saved.is_error, saved.content
    used = await caller.run(f"skills.bytes_of({shown['file']!r})", isolation="process")
    assert used["result"] == written["size"]


async def test_what_is_displayed_is_in_the_report_and_in_its_text(caller: Caller) -> None:
    answer = await caller.client.call_tool("execute_code", {"code": "display({'a': 1})\ndisplay('two')\n3"})
    assert answer.structured_content is not None
    assert answer.structured_content["displayed"] == [{"a": 1}, "two"]
    assert answer.structured_content["result"] == 3
    text = answer.content[0].text
    assert text.index('displayed: {"a": 1}') < text.index('displayed: "two"')


async def test_what_is_displayed_at_length_is_cut_and_kept_whole(caller: Caller) -> None:
    report = await caller.run("display(['x' * 100] * 500)\n'end'")
    assert report["result"] == "end"
    cut = report["truncated"]["displayed"]  # type: ignore[index,call-overload]
    assert cut["shown"] < cut["total"]
    read = await caller.run(f"json.loads(read_file('.runs/{report['run_id']}/displayed.json'))[0][499]")
    assert read["result"] == "x" * 100


async def test_figures_come_as_images_beside_a_report_that_says_what_they_show_in_words(caller: Caller) -> None:
    code = """
import matplotlib.pyplot as plt
plt.bar(["n", "s"], [3, 4.5])
plt.title("Sales")
plt.ylabel("amount")
plt.show()
plt.plot([2, 1])
"""
    answer = await caller.client.call_tool("execute_code", {"code": code, "isolation": "process"})
    assert answer.structured_content is not None
    images = answer.structured_content["images"]
    shows = [each.pop("shows") for each in images]
    assert shows[0].startswith('title "Sales"; y "amount"; 2 bars (n 3, s 4.5)')
    assert shows[1].startswith("line of 2 points, x 0 to 1, y 1 to 2")
    assert all(each in answer.content[0].text for each in shows)
    shown = [content for content in answer.content if content.type == "image"]
    assert images == [{"mime_type": "image/png", "size": len(base64.b64decode(each.data))} for each in shown]
    assert [content.mime_type for content in shown] == ["image/png"] * 2
    assert all(base64.b64decode(each.data).startswith(b"\x89PNG") for each in shown)


async def test_the_statistics_say_what_each_session_holds(caller: Caller) -> None:
    code = "import numpy as np\nbig = np.zeros((1000, 500))\nsmall = [1, 2, 3]\n_own = 1\ndef f(): pass"
    await caller.run(code, session="numbers", isolation="process", memory_mb=700)
    await caller.run("words = ['a' * 1000] * 2000", session="plain")
    statistics = await caller.told("get_execution_stats")
    held = {each["name"]: each for each in statistics["sessions"]}
    numbers = held["numbers"]
    assert (numbers["isolation"], numbers["memory_mb"], numbers["calls"]) == ("process", 700, 1)
    assert [(each["name"], each["kind"]) for each in numbers["held"]] == [("big", "ndarray"), ("small", "list")]
    assert numbers["held"][0]["bytes"] == 4_000_000
    assert numbers["held"][0]["extent"] == "1000 x 500 float64"
    assert [(each["name"], each["extent"]) for each in held["plain"]["held"]] == [("words", "2000 items")]


async def test_a_run_out_of_memory_says_what_it_took_and_what_would_need_less(caller: Caller) -> None:
    code = "import pandas as pd\ndf = pd.DataFrame({'k': [1] * 30000, 'v': range(30000)})\ndf.merge(df, on='k')"
    report = await caller.run(code, isolation="process", memory_mb=300)
    assert report["status"] == "memory"
    error = report["error"]
    assert isinstance(error, dict)
    assert error["line"] == 3
    assert "used up its 300 MB of memory. It had taken " in error["message"]
    assert "when line 3 asked for more: Unable to allocate" in error["message"]
    assert "validate='m:1'" in error["hint"]


async def test_what_is_personal_is_hidden_in_tables_captions_and_what_is_displayed(tmp_path: Path) -> None:
    settings = {
        "SEALAB_ALLOWED_ISOLATION": "restricted,process",
        "SEALAB_PROCESS_PYTHON": science_python(),
        "SEALAB_PRIVACY": "auto",
    }
    code = """
import matplotlib.pyplot as plt, pandas as pd
mail = "anna.berg" + "@example.org"
display({"to": mail})
plt.plot([1, 2], label=mail)
plt.legend()
pd.DataFrame({mail: [1], "mail": [mail]})
"""
    async with in_this_process(tmp_path, settings) as private:
        answer = await private.client.call_tool("execute_code", {"code": code, "isolation": "process"})
    assert answer.structured_content is not None
    assert "anna.berg" not in str(answer.structured_content)
    assert "anna.berg" not in answer.content[0].text
    assert "[EMAIL_" in str(answer.structured_content["tables"])
    assert "[EMAIL_" in str(answer.structured_content["displayed"])
    assert "[EMAIL_" in str(answer.structured_content["images"][0]["shows"])
