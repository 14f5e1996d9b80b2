"""Warnings, bars of progress and the end of memory, as full Python tells them."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

import pytest

from sealab.sandbox.full_python.reads import native_reads
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Json, Status

from ..conftest import failure
from .conftest import needs, run


async def test_a_warning_is_told_once_with_the_codes_own_line(pool: Pool) -> None:
    code = """
import warnings
def odd(n):
    warnings.warn("odd\\n value", stacklevel=1)
for n in range(5):
    odd(n)
warnings.warn("other", FutureWarning)
"""
    outcome = await run(pool, code)
    assert outcome.stderr == "UserWarning (line 4): odd value\nFutureWarning (line 7): other\n"


async def test_each_call_of_a_session_is_warned_anew(pool: Pool) -> None:
    for _ in range(2):
        outcome = await run(pool, "import warnings\nwarnings.warn('old')", session="warned")
        assert outcome.stderr == "UserWarning (line 2): old\n"
    await pool.end_session("warned")


async def test_code_that_takes_its_warnings_itself_gets_them(pool: Pool) -> None:
    code = """
import warnings
with warnings.catch_warnings(record=True) as taken:
    warnings.simplefilter("always")
    warnings.warn("mine")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    warnings.warn("none")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("raised")
except UserWarning as error:
    raised = str(error)
[str(each.message) for each in taken], raised
"""
    outcome = await run(pool, code)
    assert (outcome.result, outcome.stderr) == ([["mine"], "raised"], "")


async def test_code_that_was_written_for_a_notebook_displays_as_there(pool: Pool) -> None:
    code = """
from IPython.display import HTML, display, clear_output
import IPython
display({"a": 1}, HTML("<b>bold</b>"))
clear_output(wait=True)
IPython.get_ipython()
"""
    outcome = await run(pool, code)
    assert (outcome.status, outcome.displayed) == (Status.OK, [{"a": 1}, "<b>bold</b>"])


async def test_of_many_different_warnings_the_number_of_those_left_out_is_told(pool: Pool) -> None:
    outcome = await run(pool, "import warnings\nfor n in range(25):\n    warnings.warn(f'number {n}')")
    lines = outcome.stderr.splitlines()
    assert lines[19] == "UserWarning (line 3): number 19"
    assert lines[20:] == ["… 5 more different warnings"]


async def test_bars_of_tqdm_are_the_progress_of_the_run_and_write_nothing(science: Pool) -> None:
    await needs(science, "tqdm")
    told: list[Mapping[str, Json]] = []

    async def host(name: str, arguments: Mapping[str, Json]) -> Json:
        assert name == "progress"
        told.append(arguments)
        return None

    code = """
from tqdm.auto import tqdm
n = 0
for each in tqdm(range(4), desc="rows"):
    for inner in tqdm(range(100)):
        n += 1
n
"""
    outcome = await run(science, code, host)
    assert (outcome.result, outcome.output, outcome.stderr) == (400, "", "")
    assert told[0] == {"fraction": 0.0, "message": "rows: 0 of 4"}
    assert told[-1] == {"fraction": 1.0, "message": "rows: 4 of 4"}
    assert all("of 100" not in str(each["message"]) for each in told)


async def test_the_end_of_memory_tells_the_line_what_was_asked_for_and_what_is_held(science: Pool) -> None:
    code = "import numpy as np\nheld = np.ones(20_000_000)\nsmall = 1\nx = np.ones(1_000_000_000)"
    outcome = await run(science, code)
    assert outcome.status is Status.MEMORY
    assert outcome.error is not None
    assert outcome.error.line == 4
    assert "when line 4 asked for more: Unable to allocate 7.45 GiB" in outcome.error.message
    assert outcome.error.hint is not None
    assert "float32" in outcome.error.hint
    assert "Held are held (ndarray, 20000000 float64, 152 MB)." in outcome.error.hint
    assert outcome.error.hint.endswith("Or ask for more with memory_mb.")


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("pd.read_csv('x.csv', **more)", "usecols"),
        ("df.pivot_table(index='a', columns='b', **more)", "column of each value"),
        ("text = open('x').read()", "Loop over the open file"),
        ("rows = [n for n in more]", "generator"),
    ],
)
async def test_what_would_need_less_is_said_of_the_line(pool: Pool, line: str, advice: str) -> None:
    code = f"""
def end(*_, **__):
    raise MemoryError
class pd:
    read_csv = end
class df:
    pivot_table = end
class open:
    def __init__(self, *_): pass
    def read(self): raise MemoryError
class More:
    def keys(self): return []
    def __getitem__(self, key): raise KeyError(key)
    def __iter__(self): raise MemoryError
more = More()
{line}
"""
    outcome = await run(pool, code)
    assert outcome.status is Status.MEMORY
    assert advice in str(failure(outcome).hint)


async def test_a_library_that_ends_the_process_for_lack_of_memory_is_told_as_that(pool: Pool) -> None:
    code = "import os, signal\nos.write(2, b'memory allocation of 491520000 bytes failed\\n')\nos.abort()"
    outcome = await run(pool, code)
    assert outcome.status is Status.MEMORY
    assert "It asked for 491520000 bytes more." in failure(outcome).message


async def test_a_session_tells_what_it_holds(science: Pool) -> None:
    code = "import numpy as np, pandas as pd\ndf = pd.DataFrame({'a': np.zeros(100_000)})\nrows = [1] * 10\n_own = 2"
    held = (await run(science, code, session="held")).held
    assert [(each.name, each.kind, each.extent) for each in held] == [
        ("df", "DataFrame", "100,000 rows x 1 columns"),
        ("rows", "list", "10 items"),
    ]
    assert 800_000 <= held[0].bytes < 810_000
    assert [each.name for each in (await run(science, "del df", session="held")).held] == ["rows"]
    assert (await run(science, "x = 1")).held == ()
    await science.end_session("held")


async def test_code_is_not_told_that_fonts_are_looked_for(pool: Pool) -> None:
    code = """
import logging, os, sys
os.mkdir("/tmp/own")
sys.path.insert(0, "/tmp/own")
os.mkdir("/tmp/own/matplotlib")
open("/tmp/own/matplotlib/__init__.py", "w").close()
with open("/tmp/own/matplotlib/font_manager.py", "w") as file:
    file.write('''import logging
logging.getLogger(__name__).warning("Matplotlib is building the font cache; this may take a moment.")
logging.getLogger(__name__).warning("Font family 'Odd' not found.")
''')
import matplotlib.font_manager
"""
    outcome = await run(pool, code)
    assert (outcome.status, outcome.stderr) == (Status.OK, "Font family 'Odd' not found.\n")


async def test_a_search_for_pools_that_the_sandbox_cannot_make_does_not_end_the_code(pool: Pool) -> None:
    code = """
import os, sys
os.mkdir("/tmp/own")
sys.path.insert(0, "/tmp/own")
with open("/tmp/own/threadpoolctl.py", "w") as file:
    file.write('''class ThreadpoolController:
    def __init__(self):
        self.lib_controllers = []
        self._load_libraries()
    def _load_libraries(self):
        raise MemoryError
''')
import threadpoolctl
[threadpoolctl.ThreadpoolController().lib_controllers, threadpoolctl.__spec__.name, threadpoolctl.__file__]
"""
    outcome = await run(pool, code)
    assert (outcome.status, outcome.result) == (Status.OK, [[], "threadpoolctl", "/tmp/own/threadpoolctl.py"])


async def test_scikit_learn_finds_clusters_and_fits_many_trees_at_once(science: Pool) -> None:
    await needs(science, "sklearn")
    code = """
import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
points = np.vstack([np.random.default_rng(0).normal(centre, 0.1, (50, 2)) for centre in (0, 5)])
means = KMeans(n_clusters=2, n_init=3, random_state=0).fit(points)
trees = RandomForestClassifier(20, n_jobs=-1, random_state=0).fit(points, means.labels_)
sorted(np.round(means.cluster_centers_[:, 0]).tolist()), trees.score(points, means.labels_)
"""
    outcome = await run(science, code, memory_mb=2000)
    assert (outcome.result, outcome.stderr) == ([[-0.0, 5.0], 1.0], "")


def test_what_cannot_be_told_of_a_library_of_another_version_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GUEST, "tells_reads", True)
    with pytest.warns(UserWarning, match="What polars reads by itself is not looked through for personal data"):
        native_reads.changes()["polars"](ModuleType("polars"))


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('table["Price"]', "table has no column 'Price': did you mean 'price'?"),
        ('table[["price", "where"]]', "table has the columns 'price', 'sold on'."),
        ('table.groupby("where").sum()', "table has the columns 'price', 'sold on'."),
        ('table.sort_values("sold_on")', "table has no column 'sold_on': did you mean 'sold on'?"),
        ('table.merge(other, on="price")', "other has the columns 'where'."),
        ("table.amount_total", "table has the columns 'price', 'sold on'."),
    ],
)
async def test_the_hint_at_a_column_that_is_not_there_names_those_that_are(science: Pool, line: str, hint: str) -> None:
    code = f"""
import pandas as pd
table, other = pd.DataFrame({{"price": [1], "sold on": [2]}}), pd.DataFrame({{"where": [3]}})
{line}
"""
    outcome = await run(science, code)
    assert failure(outcome).hint == hint


async def test_a_row_that_is_not_there_is_no_matter_of_columns(science: Pool) -> None:
    outcome = await run(science, 'import pandas as pd\npd.Series([1], index=["a"])["b"]')
    assert failure(outcome).hint is None


async def test_a_long_warning_says_that_it_is_cut(pool: Pool) -> None:
    outcome = await run(pool, "import warnings\nwarnings.warn('x' * 600)")
    assert outcome.stderr.endswith("x …\n")
    assert len(outcome.stderr) < 550
