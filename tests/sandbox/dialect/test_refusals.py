"""All that the dialect refuses of a program comes in one answer."""

from __future__ import annotations

from textwrap import dedent

import pytest

from sealab.sandbox.dialect.compiling import compile_program
from sealab.sandbox.dialect.refusals import REFUSALS_MAX
from sealab.sandbox.errors import Refused
from sealab.sandbox.report.failures import describe_refusal


def refused(source: str) -> Refused:
    with pytest.raises(Refused) as caught:
        compile_program(dedent(source))
    return caught.value


def test_every_refusal_of_a_program_is_told_with_its_line_and_what_to_write():
    source = """\
    import json, numpy, subprocess
    from os import system
    import os
    class Meta(EnumMeta):
        def f(self):
            return self.__globals__
    def g():
        try:
            import yaml
        except* ValueError:
            return os.system("ls")
    """
    refusal = refused(source)
    assert (refusal.line, refusal.module) == (1, "numpy")
    found = [(other.line, other.message) for other in refusal.others]
    assert found == [
        (1, "module 'subprocess' is not available here"),
        (2, "cannot import name 'system' from 'os'"),
        (4, "the metaclass 'EnumMeta' cannot be a base class"),
        (6, "the attribute '__globals__' leads into the interpreter"),
        (8, "`except*` is not part of this dialect"),
        (9, "module 'yaml' is not available here"),
        (11, "module 'os' has no attribute 'system' here"),
    ]
    told = describe_refusal(refusal, dedent(source))
    first, *others = told.message.split("\n")
    assert first == "module 'numpy' is not available here"
    assert told.line == 1
    assert [line.partition(":")[0] for line in others] == [f"Line {line}" for line, _ in found]
    assert all(". " in line or "; " in line for line in others)


def test_one_refusal_is_told_as_it_is():
    told = describe_refusal(refused("import json\nimport numpy"), "")
    assert told.message == "module 'numpy' is not available here"


def test_what_may_fail_is_no_refusal():
    refusal = refused("try:\n    import numpy\nexcept ImportError:\n    numpy = None\nimport socket")
    assert (refusal.module, refusal.others) == ("socket", ())


def test_a_message_is_told_once_and_not_more_than_fits():
    source = "import numpy\nimport numpy\n" + "\n".join(f"import strange{n}" for n in range(50))
    refusal = refused(source)
    assert len(refusal.others) == REFUSALS_MAX - 1
    assert len(describe_refusal(refusal, source).message) <= 2100


def test_a_name_that_is_a_variable_too_is_no_module():
    refusal = refused("import os\nos = object()\nos.system\nimport numpy")
    assert refusal.others == ()
