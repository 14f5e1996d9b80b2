"""`sealab skills` as its user types it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sealab.server.use_cases.skills.files import EXAMPLES

from ..command_line import Ended, sealab

CODE = '''
from typing import Literal
def greet(name: str, times: int = 1, tone: Literal["low", "high"] = "low", tags: list[str] | None = None, loud: bool = False, end="") -> str:
    """Greet somebody.

    :param name: Who it is.
    """
    return " ".join([("HELLO " if loud else "hello ") + name] * times) + tone + json.dumps(tags) + end
'''


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("home")
    (root / "greet.py").write_text(CODE)
    (root / "greet_tests.py").write_text("assert greet('a') == 'hello alownull'\n")
    done = skills(root, "save", "greet", str(root / "greet.py"), "--tests", str(root / "greet_tests.py"), "--tag", "t")
    assert done.returncode == 0, done.stderr
    return root


def skills(home: Path, *arguments: str) -> Ended:
    return sealab("skills", arguments[0], "--home", str(home), *arguments[1:])


def told(home: Path, *arguments: str) -> Any:
    return skills(home, *arguments, "--json").told


def run(home: Path, *arguments: str, stdin: str = "") -> Ended:
    return sealab("skills", "run", *arguments, "--home", str(home), stdin=stdin)


def test_help_is_made_from_the_signature(home: Path) -> None:
    done = run(home, "greet", "--help")
    assert done.returncode == 0
    for part in (
        "--name STRING",
        "Who it is. (required)",
        "(default: 1)",
        "{low,high}",
        "--loud, --no-loud",
        "Greet somebody",
    ):
        assert part in done.stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "printed"),
    [
        (["--name", "Bo"], "", "hello Bolownull"),
        (["--name=Bo", "--times", "2", "--tone", "high", "--loud"], "", "HELLO Bo HELLO Bohighnull"),
        (["--name", "Bo", "--tags", '["x"]'], "", 'hello Bolow["x"]'),
        (["--name", "Bo", "--tags", "-"], '["y"]', 'hello Bolow["y"]'),
        (["--name", "-"], "Bo", "hello Bolownull"),
        (["--name", "Bo", "--end", "1"], "", "hello Bolownull1"),
        (["--arguments", "-"], '{"name": "Bo", "times": 1}', "hello Bolownull"),
    ],
)
def test_parameters_are_options(home: Path, arguments: list[str], stdin: str, printed: str) -> None:
    done = run(home, "greet", *arguments, stdin=stdin)
    assert (done.returncode, json.loads(done.stdout)) == (0, printed), done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["greet"], 2, "needs the argument name"),
        (["greet", "--name", "x", "--times", "two"], 2, "--times cannot be 'two': it takes a whole number."),
        (["greet", "--name", "x", "--tone", "mid"], 2, "Choose from low, high"),
        (["greet", "--nam", "x"], 2, "nam"),
        (["greet", "--name", "x", "--times", "1.5"], 2, "argument times"),
        (["greet", "--name", "x", "--tags", "[" * 60_000], 2, "argument tags of greet cannot be"),
        (["greet", "--arguments", "[" * 60_000], 2, "--arguments cannot be"),
        (["gret", "--name", "x"], 2, "no skill 'gret'"),
        ([], 2, "No skill is named"),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(home: Path, arguments: list[str], code: int, said: str) -> None:
    done = run(home, *arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_report_is_printed_as_json_and_its_status_is_the_exit_code(home: Path, tmp_path: Path) -> None:
    (tmp_path / "boom.py").write_text("def boom():\n    raise ValueError('x')\n")
    assert skills(home, "save", "boom", str(tmp_path / "boom.py")).returncode == 0
    done = run(home, "boom", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["line"] == 2
    assert told(home, "delete", "boom") == {"name": "boom", "deleted_versions": 1}
    assert told(home, "delete", "boom", "--restore") == {"name": "boom", "restored_versions": 1}
    assert told(home, "delete", "boom")["deleted_versions"] == 1
    assert told(home, "delete", "boom", "--purge") == {"name": "boom", "purged_versions": 1}


def test_skills_are_listed_shown_and_tested(home: Path) -> None:
    assert [each["name"] for each in told(home, "list", "--tag", "t")["skills"]] == ["greet"]
    assert told(home, "show", "greet")["code"] == CODE
    report = told(home, "test", "greet")
    assert (report["passed"], report["failed"], report["tests"][0]["tested"]) == (1, 0, True)


def test_a_failed_save_is_told_and_stores_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("assert True\nassert greet('b') == 'x'\n")
    refusal = skills(home, "save", "other", str(home / "greet.py"), "--tests", str(tmp_path / "t.py")).refusal(1)
    assert "no function other" in refusal
    assert [each["name"] for each in told(home, "list")["skills"]].count("other") == 0


def test_a_skill_in_the_place_of_the_folder_is_told_from_one(home: Path, tmp_path: Path) -> None:
    refusal = sealab("skills", "export", "greet", str(tmp_path / "out"), "--home", str(home)).refusal()
    assert "greet is a skill, and the folder comes first. Use `sealab skills export DIR NAME`." in refusal


def test_what_is_exported_is_imported_again_as_the_same_and_runs_alone(home: Path, tmp_path: Path) -> None:
    exported = told(home, "export", str(tmp_path / "out"), "greet")
    folder = Path(exported["skills"]["greet"])
    assert folder == tmp_path / "out" / "greet"
    (again,) = told(home, "import", str(tmp_path / "out"))["skills"]
    assert (again["name"], again["created"]) == ("greet", False)
    archive = tmp_path / "skills.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.rglob("*.*"):
            file.write(path, f"greet/{path.relative_to(folder)}")
    other = tmp_path / "other-home"
    (new,) = told(other, "import", str(archive))["skills"]
    assert (new["name"], new["version"], new["created"]) == ("greet", 1, True)
    assert (
        told(other, "show", "greet")["metadata"]["content_hash"]
        == told(home, "show", "greet")["metadata"]["content_hash"]
    )
    script = str(folder / "scripts" / "greet.py")
    plain = subprocess.run([sys.executable, "-I", script, '{"name": "Bo"}'], capture_output=True, text=True, check=True)
    assert json.loads(plain.stdout) == "hello Bolownull"
    ran = sealab("run", script, "--home", str(home))
    assert ran.returncode == 0, ran.stderr


def test_import_reads_the_skills_of_other_agents_and_runs_nothing(home: Path, tmp_path: Path) -> None:
    place = tmp_path / ".claude" / "skills" / "word-count"
    (place / "scripts").mkdir(parents=True)
    (place / "SKILL.md").write_text("---\nname: word-count\ndescription: Counts words.\n---\n# How\n")
    (place / "scripts" / "count.py").write_text("def word_count(text: str) -> int:\n    return len(text.split())\n")
    (place / "tests").mkdir()
    (place / "tests" / "word_count.py").write_text("write_file('ran.txt', 'x')\nassert False\n")
    (tmp_path / ".claude" / "skills" / "talk").mkdir()
    (tmp_path / ".claude" / "skills" / "talk" / "SKILL.md").write_text(
        "---\nname: talk\ndescription: d\n---\nSay hi.\n"
    )
    mean = tmp_path / ".claude" / "skills" / "table-mean"  # a function of its name, which only full Python can have
    (mean / "scripts").mkdir(parents=True)
    (mean / "SKILL.md").write_text("---\nname: table-mean\ndescription: d\n---\nRun it.\n")
    (mean / "scripts" / "table_mean.py").write_text(
        "import odd_module\ndef table_mean(): ...\nif __name__ == '__main__': table_mean()\n"
    )
    whole, talk, count = told(home, "import", str(tmp_path))["skills"]
    assert (whole["name"], whole["refused"], whole["scripts"]) == ("table_mean", None, ["table_mean_script"])
    skills(home, "delete", "table_mean")
    assert (talk["name"], talk["brought"], talk["scripts"]) == ("talk", {"files": 1}, [])
    said = json.loads(run(home, "talk").stdout)
    assert said.startswith("[SKILL.md of the skill talk, which others wrote: no word of the user.]")
    assert said.endswith("Say hi.\n")
    assert "[imported, written by others] d" in skills(home, "list", "talk").stdout
    assert "It has SKILL.md." in run(home, "talk", "--read", "other.md").stderr
    assert (count["name"], count["version"], count["refused"]) == ("word_count", 1, None)
    assert not (home / "workspace" / "ran.txt").exists()
    assert json.loads(run(home, "word_count", "--text", "a b c").stdout) == 3
    assert skills(home, "test", "word_count").returncode == 1
    skills(home, "delete", "word_count")


def test_a_name_that_is_taken_gets_a_number_or_asks_and_a_second_import_changes_nothing(tmp_path: Path) -> None:
    for place, text in (("one/talk", "Say hi."), ("two/deep/er/talk", "Say ho.")):
        (tmp_path / "from" / place).mkdir(parents=True)
        (tmp_path / "from" / place / "SKILL.md").write_text(f"---\nname: talk\ndescription: d: e\n---\n{text}\n")
        (tmp_path / "from" / place / "logo.png").write_bytes(b"\x89PNG\r\n\0")
    home, other = tmp_path / "home", tmp_path / "other"
    first = [
        (each["name"], each["version"], each["created"])
        for each in told(home, "import", str(tmp_path / "from"))["skills"]
    ]
    assert first == [("talk", 1, True), ("talk_2", 1, True)]
    told(home, "export", str(tmp_path / "out"))
    for source in (tmp_path / "from", tmp_path / "out"):
        again = [
            (each["name"], each["version"], each["created"]) for each in told(home, "import", str(source))["skills"]
        ]
        assert again == [("talk", 1, False), ("talk_2", 1, False)]
    moved = told(other, "import", str(tmp_path / "out"))["skills"]
    assert [(each["name"], each["brought"]) for each in moved] == [
        (name, {"files": 1, "assets": 1}) for name, _, _ in first
    ]
    for name, _, _ in first:
        hashes = {told(place, "show", name)["metadata"]["content_hash"] for place in (home, other)}
        assert len(hashes) == 1
    (tmp_path / "greet.py").write_text("def greet() -> int:\n    return 1\n")
    assert told(home, "import", str(tmp_path / "greet.py"))["skills"][0]["version"] == 1
    (tmp_path / "greet.py").write_text("def greet() -> int:\n    return 2\n")
    asked = skills(home, "import", str(tmp_path / "greet.py"))
    assert asked.returncode == 1
    assert "There is another skill greet. With --update this becomes its version 2" in asked.stderr
    assert told(home, "import", str(tmp_path / "greet.py"), "--update")["skills"][0]["version"] == 2


def test_an_imported_file_puts_nothing_on_the_shelf_of_all_tenants_and_changes_nothing_there(tmp_path: Path) -> None:
    folder = tmp_path / "from" / "pay"
    (folder / "scripts").mkdir(parents=True)
    tags = 'metadata:\n  sealab-tags: ["Shared", "money"]\n'
    (folder / "SKILL.md").write_text(f"---\nname: pay\ndescription: Pays.\n{tags}---\n# How\n")
    (folder / "scripts" / "pay.py").write_text("def pay() -> str:\n    return 'theirs'\n")
    home = tmp_path / "home"
    done = skills(home, "import", str(tmp_path / "from"), "--json")
    (imported,) = json.loads(done.stdout)["skills"]
    assert (imported["version"], imported["left_out"]) == (1, ["Shared"])
    assert "its tag 'Shared' was left out" in done.stderr
    assert told(home, "show", "pay")["metadata"]["tags"] == ["money"]
    (tmp_path / "pay.py").write_text("def pay() -> str:\n    return 'ours'\n")
    assert skills(home, "save", "pay", str(tmp_path / "pay.py"), "--tag", "shared").returncode == 0
    done = skills(home, "import", str(tmp_path / "from"), "--json")
    (refused,) = json.loads(done.stdout)["skills"]
    assert "on the shelf of all tenants" in refused["refused"]
    assert json.loads(run(home, "pay").stdout) == "ours"


def test_the_examples_come_when_asked_for_and_pass_their_tests_offline(tmp_path: Path) -> None:
    imported = told(tmp_path, "import", "--examples")["skills"]
    assert len(imported) == 7
    assert all(each["refused"] is None and each["version"] == 1 for each in imported)
    report = told(tmp_path, "test")
    assert (report["passed"], report["failed"]) == (7, 0), report
    assert all(each["tested"] for each in report["tests"])
    told(tmp_path, "export", str(tmp_path / "out"))
    for path in EXAMPLES.rglob("*.*"):
        assert (tmp_path / "out" / path.relative_to(EXAMPLES)).read_bytes() == path.read_bytes()


def test_a_call_that_was_not_recorded_fails_the_test_by_name(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "now-there"
    (folder / "scripts").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "SKILL.md").write_text("---\nname: now-there\ndescription: d\n---\n")
    code = "async def now_there(zone: str) -> str:\n    return (await tools.time.get_current_time(timezone=zone))['datetime']\n"
    (folder / "scripts" / "now_there.py").write_text(code)
    recorded = [{"tool": "time.get_current_time", "arguments": {"timezone": "UTC"}, "answer": {"datetime": "2026"}}]
    (folder / "tests" / "recordings.json").write_text(json.dumps(recorded))
    (folder / "tests" / "now_there.py").write_text("assert await now_there('UTC') == '2026'\n")
    assert skills(home, "import", str(folder)).returncode == 0
    assert skills(home, "test", "now_there").returncode == 0
    tests = "try:\n    await now_there('Mars')\nexcept Exception:\n    pass\n"
    (folder / "tests" / "now_there.py").write_text(tests)
    assert skills(home, "import", str(folder), "--update").returncode == 0
    refusal = skills(home, "test", "now_there").refusal(1)
    assert "time.get_current_time" in refusal
    assert "Mars" in refusal
    assert "not recorded" in refusal


def test_a_backup_brings_everything_back(home: Path, tmp_path: Path) -> None:
    assert told(home, "backup", str(tmp_path / "b.zip"))["skills"] >= 1
    restored = told(tmp_path / "new", "restore", str(tmp_path / "b.zip"))
    assert restored["skills"] >= 1
    assert told(tmp_path / "new", "show", "greet")["code"] == CODE


def test_every_command_has_help() -> None:
    for command in ("list", "show", "save", "run", "test", "delete", "purge", "export", "import", "backup", "restore"):
        done = sealab("skills", command, "--help")
        assert (done.returncode, command in done.stdout) == (0, True) or command == "run", done.stderr
