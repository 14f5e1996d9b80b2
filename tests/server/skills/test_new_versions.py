"""A skill that is saved again: what it keeps, what it breaks, what it changes; and that tests leave no files behind."""

from __future__ import annotations

from typing import Any

import pytest

from ..conftest import Caller, in_process_server

served = in_process_server(
    {"SEALAB_ALLOWED_ISOLATION": "restricted,process", "SEALAB_WORKERS_MAX": "1", "SEALAB_WORKERS_SPARE": "1"}
)

DOUBLE = "def double(x: int) -> int:\n    return 2 * x\n"
TRIPLE = "def double(x: int) -> int:\n    return 3 * x\n"


async def save(served: Caller, name: str, code: str, **more: Any) -> dict[str, Any]:
    return await served.told("save_skill", name=name, code=code, **more)


@pytest.mark.parametrize("passes", [True, False])
async def test_tests_change_no_file_of_the_user(served: Caller, passes: bool) -> None:
    await served.call("write_workspace_file", filename="mine.csv", content="a,b\n")
    tests = f"""
import os
write_file("mine.csv", read_file("mine.csv") + "1,2")
open("new.txt", "w").write("x")
assert count("mine.csv") == 2 and sorted(os.listdir()) == ["mine.csv", "new.txt"], os.listdir()
assert [each["name"] for each in list_files()] == ["mine.csv", "new.txt"]
os.remove("mine.csv")
delete_file("new.txt")
assert {passes}
"""
    saving = {"name": "count", "code": "def count(p):\n    return len(open(p).readlines())", "tests": tests}
    if passes:
        await served.told("save_skill", **saving)
    else:
        assert "'assert False': AssertionError" in await served.refusal("save_skill", **saving)
        nested = await served.run("save_skill(**saving)", context_vars={"saving": saving})
        assert "'assert False': AssertionError" in nested["error"]["message"]
    listed = await served.told("list_workspace_files")
    assert [(each["name"], each["size"]) for each in listed["files"]] == [("mine.csv", 4)]
    await served.call("delete_skill", name="count")
    await served.call("delete_workspace_file", filename="mine.csv")


async def test_files_that_tests_need_are_given_with_them_and_kept_with_the_skill(served: Caller) -> None:
    code = "def rows(p):\n    return open(p).read()"
    tests = "open('out.txt', 'w').write('x')\nassert rows('in/a.csv') == 'a,b'"
    save_it = "save_skill('rows', code, tests=tests, files={name: 'a,b'})"
    given = {"code": code, "tests": tests, "name": "in/a.csv"}
    assert (await served.run(save_it, context_vars=given))["success"]
    wrong = "assert rows('in/a.csv') == 'a,b'\nassert rows('in/a.csv') == 'c'"
    assert "line 2, \"assert rows('in/a.csv') == 'c'\"" in await served.refusal(
        "save_skill", name="rows", code=code, tests=wrong
    )
    again = await save(served, "rows", code + "  # again")
    assert again["version"] == 2
    assert (await served.told("list_workspace_files"))["files"] == []
    report = await served.run(save_it, context_vars={**given, "name": "../a"})
    assert "component '..'" in report["error"]["message"]
    await served.call("delete_skill", name="rows")


async def test_a_version_keeps_tests_tags_and_description_unless_it_gives_others(served: Caller) -> None:
    await save(served, "double", DOUBLE, tests="assert double(2) == 4", tags=["maths"], description="Doubles.")
    saved = await save(served, "double", DOUBLE.replace("2 * x", "x + x"))
    assert (saved["version"], saved["description"], saved["warnings"]) == (2, "Doubles.", [])
    assert saved["changed"] == "Since version 1: the same signature, other code; passes the tests of version 1."
    kept = await served.told("load_skill", name="double")
    assert (kept["metadata"]["tests"], kept["metadata"]["tags"]) == ("assert double(2) == 4", ["maths"])
    documented = 'def double(x: int, y: int) -> int:\n    """Double, twice."""\n    return 2 * x\n'
    saved = await save(served, "double", documented, tags=["new"], tests="assert double(1, 1) == 2", force=True)
    assert saved["description"] == "Double, twice."
    assert saved["changed"] == (
        "Since version 2: double(x: int) -> int is now double(x: int, y: int) -> int; callers must give y; "
        "other description; other tags; other tests; 1 tests of before fail."
    )
    await served.call("delete_skill", name="double")


async def test_what_new_code_breaks_is_named_before_anything_is_saved(served: Caller) -> None:
    await save(served, "twofold", DOUBLE.replace("double", "twofold"), tests="assert twofold(2) == 4")
    await save(served, "quadruple", "def quadruple(x):\n    return skills.twofold(skills.twofold(x))", tests="assert quadruple(1) == 4")  # fmt: skip
    await save(served, "octuple", "from skills import quadruple\ndef octuple(x):\n    return quadruple(2 * x)", tests="assert octuple(1) == 8")  # fmt: skip
    await save(served, "untested", "def untested(x):\n    return skills.twofold(x)")
    for more in ({}, {"tests": "assert twofold(2) == 6"}):
        said = await served.refusal("save_skill", name="twofold", code=TRIPLE.replace("double", "twofold"), **more)
        of_own = "version 1" if more else "twofold"
        assert f"The tests of {of_own} failed in line 1, 'assert twofold(2) == 4': AssertionError" in said
        assert "The tests of quadruple failed in line 1" in said
        assert "The tests of octuple failed in line 1" in said
        assert "Nothing was saved." in said
        assert "force=true" in said
    assert (await served.told("load_skill", name="twofold"))["version"] == 1
    report = await served.run(
        "save_skill('twofold', code, tests='assert twofold(2) == 6')",
        context_vars={"code": TRIPLE.replace("double", "twofold")},
    )
    assert "The tests of octuple failed in line 1" in report["error"]["message"]
    saved = await save(
        served, "twofold", TRIPLE.replace("double", "twofold"), tests="assert twofold(2) == 6", force=True
    )
    assert (saved["version"], len([each for each in saved["warnings"] if "test" in each])) == (2, 4)
    assert "Not tested with it: untested, which has no tests." in saved["warnings"]
    for name in ("octuple", "quadruple", "untested", "twofold"):
        await served.call("delete_skill", name=name)


async def test_given_tests_must_pass_though_it_is_forced(served: Caller) -> None:
    await save(served, "duplicate", DOUBLE.replace("double", "duplicate"), tests="assert duplicate(2) == 4")
    said = await served.refusal(
        "save_skill",
        name="duplicate",
        code=TRIPLE.replace("double", "duplicate"),
        tests="assert duplicate(2) == 5",
        force=True,
    )
    assert "line 1, 'assert duplicate(2) == 5'" in said
    broken = await served.refusal(
        "save_skill",
        name="duplicate",
        code=TRIPLE.replace("double", "duplicate") + "raise ValueError('top')",
        force=True,
    )
    assert "ValueError: top" in broken
    saved = await save(served, "duplicate", TRIPLE.replace("double", "duplicate"), force=True)
    assert saved["warnings"][-1:] == [
        "The tests of duplicate failed in line 1, 'assert duplicate(2) == 4': AssertionError."
    ]
    assert (await served.told("load_skill", name="duplicate"))["metadata"]["tests"] == "assert duplicate(2) == 4"
    await served.call("delete_skill", name="duplicate")


async def test_a_save_says_which_constants_became_parameters(served: Caller) -> None:
    script = "rate = 2.5\ntotal = 0\nfor day in days:\n    total += rate\nresult = total\n"
    answer = await served.call("save_skill", name="pay", code=script)
    assert answer.structured_content["constants"] == {"parameters": ["rate"], "fixed": {"total": "changed later"}}
    assert "constants that are parameters: rate\nno parameter: total (changed later)" in answer.content[0].text
    ran = await served.run("n = 5\nbase = 10\nn + base")
    saved = await save(served, "from_it", "n", from_run=ran["run_id"])
    assert saved["constants"] == {"parameters": ["n"], "fixed": {"base": "not named in code"}}


async def test_a_test_that_calls_it_wrongly_is_told_the_signature(served: Caller) -> None:
    said = await served.refusal("save_skill", name="double", code=DOUBLE, tests="assert double(1, 2) == 2")
    assert "but 2 were given. Its signature is double(x: int) -> int." in said


TICKETS = '''
def clean_tickets(path: str) -> list[str]:
    """Clean up the titles of tickets in a file: strip blanks, drop empty ones."""
    return [line.strip() for line in open(path) if line.strip()]
'''
TESTS = "write_file('t.txt', ' a\\n\\nb ')\nassert clean_tickets('t.txt') == ['a', 'b']"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tickets_cleaned", TICKETS.replace("clean_tickets", "tickets_cleaned").replace("line", "line  ")),
        ("clean_titles", TICKETS.replace("def clean_tickets", "async def clean_titles").replace("line", "row")),
        (
            "read_tickets",
            '''
def read_tickets(file: str) -> list[str]:
    """Read the cleaned titles of all tickets in a file."""
    text = open(file).read()
    return list(filter(None, map(str.strip, text.split(chr(10)))))
''',
        ),
    ],
)
async def test_a_new_skill_that_does_what_another_does_is_answered_with_that_one(
    served: Caller, name: str, code: str
) -> None:
    await save(served, "clean_tickets", TICKETS, tests=TESTS)
    said = await served.refusal("save_skill", name=name, code=code)
    assert "The skill clean_tickets does this already (version" in said
    assert "skills.clean_tickets(path: str) -> list[str]" in said
    assert "no skill" in await served.refusal("load_skill", name=name)
    saved = await save(served, name, code, force=True)
    assert any("clean_tickets does this already" in each for each in saved["warnings"])
    await served.call("delete_skill", name=name)


async def test_a_new_skill_that_is_only_told_alike_is_saved(served: Caller) -> None:
    await save(served, "clean_tickets", TICKETS, tests=TESTS)
    other = 'def count_tickets(path: str) -> int:\n    """Count the tickets in a file."""\n    return len(open(path).readlines())'
    assert (await save(served, "count_tickets", other))["version"] == 1


async def test_code_that_writes_a_saved_skill_again_is_told_once_which_it_is(served: Caller) -> None:
    await save(served, "clean_tickets", TICKETS, tests=TESTS)
    report = await served.run(TICKETS + "\n1")
    assert report["hint"] == (
        "There is a skill that does this: call skills.clean_tickets(path: str) -> list[str] instead of writing it."
    )
    swapped = (
        TICKETS.replace("clean_tickets", "tickets_clean") + "\ndef count(path):\n    return 2\nskills.count_tickets\n1"
    )
    assert "skills.clean_tickets(path: str)" in (await served.run(swapped))["hint"]
    assert "hint" not in await served.run("def clean_tickets(rows):\n    return rows\n1")


async def test_a_program_that_runs_for_the_third_time_is_told_how_to_keep_it(served: Caller) -> None:
    code = "words = ['a', 'b']\n'-'.join(words)\n"
    assert [each.get("hint") for each in [await served.run(code), await served.run(code)]] == [None, None]
    third = await served.call("execute_code", code=code + "\n")
    assert f'save_skill("NAME", from_run="{third.structured_content["run_id"]}")' in third.content[0].text
    assert "hint" not in await served.run(code)
    other = "words = ['c', 'b']\n'-'.join(words)\n"
    for expected in (
        None,
        None,
        "This program is the skill joined, and ran for the third time: call skills.joined(…).",
    ):
        report = await served.run(other)
        assert report.get("hint") == expected
        await save(served, "joined", "", from_run=report["run_id"])
