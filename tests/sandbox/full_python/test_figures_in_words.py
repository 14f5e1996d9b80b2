"""What figures show in words, how large they are drawn, and charts of libraries that draw in a browser."""

from __future__ import annotations

import pytest

from sealab.sandbox.host.pool import Pool
from sealab.sandbox.job import Outcome, Status

from . import conftest
from .conftest import needs, size_of

PLOT = "import matplotlib.pyplot as plt, numpy as np, pandas as pd\n"


async def run(pool: Pool, code: str) -> Outcome:
    outcome = await conftest.run(pool, code, memory_mb=1000)
    assert outcome.status is Status.OK, outcome
    assert len(outcome.captions) == len(outcome.figures)
    return outcome


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "plt.plot([1, 2, 4], label='trend'); plt.title('Growth'); plt.xlabel('day'); plt.legend()",
            'title "Growth"; x "day"; "trend": line of 3 points, x 0 to 2, y 1 to 4; legend "trend"',
        ),
        ("plt.bar(['n', 's'], [3, 4.5])", "2 bars (n 3, s 4.5)"),
        ("plt.barh(['n', 's'], [3, 4.5])", "2 bars (n 3, s 4.5)"),
        ("plt.scatter([1, 2], [10, 20000])", "2 points, x 1 to 2, y 10 to 20,000"),
        ("plt.pie([1, 3], labels=['a', 'b'])", 'pie of 2 parts ("a": 25 %, "b": 75 %)'),
        ("plt.imshow(np.eye(4)); plt.colorbar()", "picture of 4 x 4 values from 0 to 1"),
        ("plt.plot(pd.date_range('2024-01-01', periods=3), [1, 2, 3])", "x 2024-01-01 to 2024-01-03"),
        (
            "pd.Series(range(90), index=pd.date_range('2024-01-01', periods=90)).plot()",
            "line of 90 points, x 2024-01-01 to 2024-03-30, y 0 to 89",
        ),
        (
            "pd.Series(range(90), index=pd.date_range('2024-01-01', periods=90)).resample('ME').sum().plot()",
            "line of 3 points, x 2024-01-01 to 2024-03-01",
        ),
        ("plt.plot([1, 10]); plt.yscale('log')", "y axis (log) from"),
        ("plt.hist([1, 1, 2], bins=2)", "2 bars (2, 1), side by side from 1 to 2;"),
        (
            "plt.boxplot([[1, 2, 3, 4, 5], [7]], tick_labels=['a', 'b'])",
            '2 boxes ("a" 1 to 5, quartiles 2 and 4, median 3; "b" 7 to 7, quartiles 7 and 7, median 7); x axis',
        ),
        ("pd.DataFrame({'v': [1, 2, 3]}).boxplot()", "1 box (1 to 3, quartiles 1.5 and 2.5, median 2)"),
        ("plt.imshow(np.arange(160_000).reshape(400, 400))", "picture of 400 x 400 values from 0 to 159,999"),
        ("for n in range(10): plt.plot([n], label=str(n))\nplt.legend()", '"7" and 2 more'),
        ("plt.plot([1, np.nan, 3])", "y 1 to 3"),
        ("plt.figure()", "Nothing is drawn in it."),
    ],
)
async def test_a_figure_says_its_titles_axes_series_and_their_extent(science: Pool, code: str, said: str) -> None:
    (caption,) = (await run(science, f"{PLOT}{code}\nNone")).captions
    assert said in caption


async def test_panels_are_told_one_by_one_under_the_title_of_all(science: Pool) -> None:
    code = "f, (a, b) = plt.subplots(1, 2)\na.plot([1]); a.set_title('left'); b.set_title('right'); f.suptitle('Both')"
    (caption,) = (await run(science, PLOT + code)).captions
    assert caption.startswith('"Both". Panel 1: title "left"')
    assert 'Panel 2: title "right"' in caption


async def test_a_large_figure_is_drawn_as_large_as_a_model_looks_at_it_and_says_so(science: Pool) -> None:
    outcome = await run(science, f"{PLOT}plt.figure(figsize=(20, 10), dpi=300).gca().plot([1])")
    width, height = size_of(outcome.figures[0])
    assert width * height <= 1600 * 750
    assert abs(width / height - 2) < 0.01
    assert f"(Drawn with {width} x {height} of 6000 x 3000 pixels" in outcome.captions[0]


async def test_many_figures_share_a_budget_and_each_is_still_seen(science: Pool) -> None:
    outcome = await run(science, f"{PLOT}for n in range(10):\n    plt.figure(figsize=(15, 10))")
    sizes = [width * height for width, height in map(size_of, outcome.figures)]
    assert len(sizes) == 10
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) / 750 < 8_000
    assert min(sizes) / 750 > 150


async def test_a_figure_that_is_displayed_or_the_result_is_shown_once_and_named_by_its_number(science: Pool) -> None:
    code = "first, second = plt.figure(), plt.figure(figsize=(2, 1))\ndisplay('before', second)\nfirst"
    outcome = await run(science, PLOT + code)
    assert outcome.displayed == ["before", {"image": 1}]
    assert outcome.result == {"image": 2}
    assert [size_of(each) for each in outcome.figures] == [(200, 100), (640, 480)]


async def test_what_drawing_returns_is_no_noise(science: Pool) -> None:
    outcome = await run(science, f"{PLOT}pd.DataFrame({{'a': [1]}}).plot(title='T')")
    assert str(outcome.result).startswith("<Axes")
    assert outcome.notes == {}


@pytest.mark.parametrize(
    ("library", "chart", "page"),
    [
        ("plotly", "import plotly.express as px\nchart = px.bar(x=['a'], y=[1])", "chart.write_html('bar.html')"),
        (
            "altair",
            "import altair as alt\nchart = alt.Chart(alt.Data(values=[{'v': 1}])).mark_bar().encode(y='v:Q')",
            "chart.save('bar.html')",
        ),
    ],
)
async def test_a_chart_whose_images_need_a_browser_is_kept_as_a_page_and_the_report_says_so(
    science: Pool, library: str, chart: str, page: str
) -> None:
    await needs(science, library)
    code = f"{chart}\nchart.show()\ndisplay(chart)\n{page}\nlen(open('bar.html').read()) > 1000"
    outcome = await run(science, code)
    assert (outcome.result, outcome.figures) == (True, ())
    assert outcome.notes["images"].count("not shown as images") == 1
    assert (await run(science, "1")).notes == {}
    assert "not shown as images" in (await run(science, chart + "\nchart")).notes["images"]
