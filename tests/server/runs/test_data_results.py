"""Results of data work as a client gets them: tables with their files, what is displayed, figures, what sessions hold."""

from __future__ import annotations

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
    read = await caller.call("read_workspace_file", filename=shown["file"])
    assert read.structured_content is not None
    assert "label" in read.structured_content["content"]
    saved = await caller.call(
        "save_skill",
        name="bytes_of",
        code="def bytes_of(name: str) -> int:\n    '''Count the bytes of a file.'''\n"
        "    return len(read_file(name, encoding=None))",
    )
    assert not saved.is_error, saved.content
    used = await caller.run(f"skills.bytes_of({shown['file']!r})", isolation="process")
    assert used["result"] == written["size"]


async def test_an_array_is_read_by_the_name_of_its_file(caller: Caller) -> None:
    report = await caller.run("import numpy as np\nnp.arange(5000)", isolation="process")
    shown = report["result"]
    assert isinstance(shown, dict)
    read = await caller.call("read_workspace_file", filename=shown["file"])
    assert read.structured_content is not None
    assert "shape" in read.structured_content["content"]
    assert read.structured_content["truncated"]


async def test_a_wide_table_that_is_cut_in_the_text_says_so(caller: Caller) -> None:
    code = "import numpy as np\nnp.save('wide.npy', np.arange(12_000.0).reshape(40, 300) / 7)"
    assert (await caller.run(code, isolation="process"))["success"]
    read = await caller.call("read_workspace_file", filename="wide.npy")
    assert read.structured_content is not None
    text = read.content[0].text  # type: ignore[union-attr]
    assert len(text) < len(read.structured_content["content"])
    assert text.endswith("… [more follows in `content`; code reads the file itself]")


async def test_a_file_that_is_no_table_though_its_name_says_so_is_told(caller: Caller) -> None:
    await caller.call("write_workspace_file", filename="broken.npy", content="no array")
    read = await caller.call("read_workspace_file", filename="broken.npy")
    assert read.is_error
    said = read.content[0].text  # type: ignore[union-attr]
    assert "cannot be read as a table" in said
    assert "base64" in said


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


async def test_a_figure_is_shown_with_what_it_shows_in_words(caller: Caller) -> None:
    code = """
import matplotlib.pyplot as plt
plt.bar(["n", "s"], [3, 4.5])
plt.title("Sales")
plt.ylabel("amount")
plt.show()
"""
    answer = await caller.client.call_tool("execute_code", {"code": code, "isolation": "process"})
    assert answer.structured_content is not None
    (image,) = answer.structured_content["images"]
    assert image["shows"].startswith('title "Sales"; y "amount"; 2 bars (n 3, s 4.5)')
    assert image["shows"] in answer.content[0].text
    assert answer.content[1].type == "image"


async def test_the_statistics_say_what_each_session_holds(caller: Caller) -> None:
    code = "import numpy as np\nbig = np.zeros((1000, 500))\nsmall = [1, 2, 3]\n_own = 1\ndef f(): pass"
    await caller.run(code, session="numbers", isolation="process", memory_mb=700)
    await caller.run("words = ['a' * 1000] * 2000", session="plain")
    statistics = (await caller.call("get_execution_stats")).structured_content
    assert statistics is not None
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
