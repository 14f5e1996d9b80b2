"""Code is run without what a message has around it."""

from __future__ import annotations

import time

import pytest

from sealab.server.runs.request import CodeRequest, plain_code

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
        ("    x = 1\n\n    if x:\n        y\n", "x = 1\n\nif x:\n    y\n"),
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
