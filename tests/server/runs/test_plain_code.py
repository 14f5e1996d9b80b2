"""Code is run without what a message has around it."""

from __future__ import annotations

import time

import pytest

from sealab.server.use_cases.runs.request import CodeRequest, plain_code

from ..conftest import Caller

FENCE = "```"


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (f"{FENCE}\nx = 3\nx\n{FENCE}\n", "\nx = 3\nx\n"),
        (f"Here is the code:\n\n{FENCE}python\nx\n{FENCE}\nIt says x.", "\n\n\nx\n"),
        (f"Solution: this\n{FENCE}py\nx\n{FENCE}", "\n\nx\n"),
        (f"  {FENCE}python\n  x\n  {FENCE}", "\nx\n"),
        (f"{FENCE}python\n    x\n    y\n{FENCE}", "\nx\ny\n"),
        (f"{FENCE}python\nx{FENCE}", "\nx"),
        (f"{FENCE}python\nx", "\nx"),
        (f"\ufeff{FENCE}\r\nx\r\n{FENCE}\r\n", "\nx\n"),
        (f"{FENCE}\ns = '''\n{FENCE}\na\n{FENCE}\n'''\n{FENCE}", f"\ns = '''\n{FENCE}\na\n{FENCE}\n'''\n"),
        (f"x = 1\nprint(x)\n{FENCE}\n", "x = 1\nprint(x)\n"),
        ("    x = 1\n\n    if x:\n        y\n", "x = 1\n\nif x:\n    y\n"),
        ("# said\n    x\n    y", "# said\nx\ny"),
        ("\n\tx\n# said\n\ty", "\nx\n# said\ny"),
        ("\ufeffx\r\ny\rz", "x\ny\nz"),
    ],
)
def test_code_is_taken_out_of_what_is_around_it_with_each_line_under_its_number(given: str, plain: str) -> None:
    assert CodeRequest(given).code == plain
    assert plain_code(plain) == plain


@pytest.mark.parametrize(
    "code",
    [
        f"text = '''\n{FENCE}python\nx\n{FENCE}\n'''",
        f'text = """\\\n{FENCE}\nx\n{FENCE}\n"""\nprint(text)',
        f"import os\n{FENCE}python\nos\n{FENCE}",
        f"{FENCE}python\nx\n{FENCE}\nprint(x)",
        f"x = '{FENCE}'",
        "  # a comment\nx = 1",
        "if x:\n    y",
        "",
    ],
)
def test_code_that_may_be_meant_as_it_is_stays_so(code: str) -> None:
    assert plain_code(code) == code


def test_what_is_around_code_is_found_in_linear_time() -> None:
    for piece in (FENCE, f"{FENCE}\n", f"x{FENCE}", f"\n{FENCE} x", " ", "\t\n"):
        code = f"{FENCE}\n{piece * 100_000}x"
        began = time.thread_time()
        plain_code(code)
        assert time.thread_time() - began < 5, "0.1 s on a slow machine; 100 s where it is quadratic"


async def test_an_error_names_the_line_that_was_sent(in_process_caller: Caller) -> None:
    assert (await in_process_caller.run(f"Here it is:\n{FENCE}python\nx = 1\n1 / 0\n{FENCE}"))["error"]["line"] == 4


OF_OTHER_SERVICES = {
    "a notebook's display": (
        (
            "from IPython.display import HTML, Markdown, clear_output, display\nimport IPython\n"
            "clear_output(wait=True)\nshown = HTML('<b>'), Markdown(data='*')\n"
            "IPython.display.display(*shown)\n[*shown, IPython.get_ipython()]"
        ),
        ["<b>", "*", None],
    ),
    "a loop within a loop": (
        (
            "import nest_asyncio; nest_asyncio.apply()\nimport asyncio\nasync def five(): return 5\n"
            "[asyncio.run(five()), asyncio.get_event_loop().run_until_complete(five())]"
        ),
        [5, 5],
    ),
    "files in /mnt/data": (
        (
            "import os\nfrom pathlib import Path\nwrite_file('/mnt/data/own/a.txt', '1')\n"
            "with open('/mnt/data/own/b.txt', 'w') as file: file.write(read_file('/mnt/data/own/a.txt') + '2')\n"
            "[Path('own/b.txt').read_text(), sorted(os.listdir('/mnt/data/own')), os.path.exists('/mnt/database'), "
            "[each['name'] for each in list_files('/mnt/data/own')]]"
        ),
        ["12", ["a.txt", "b.txt"], False, ["own/a.txt", "own/b.txt"]],
    ),
}


@pytest.mark.parametrize(("code", "result"), OF_OTHER_SERVICES.values(), ids=OF_OTHER_SERVICES.keys())
async def test_code_that_was_written_for_another_service_means_the_same_here(
    in_process_caller: Caller, code: str, result: object
) -> None:
    report = await in_process_caller.run(code)
    assert report["result"] == result, report["error"]
    assert report["isolation"] == "restricted"
