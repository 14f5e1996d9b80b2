"""Skills as Agent Skills folders, and back."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skills_ref.parser import parse_frontmatter
from skills_ref.validator import validate

from sealab.skills_db.content import SkillDraft
from sealab.skills_db.errors import SkillRefused
from sealab.skills_db.skill_md import MANIFEST, PortableSkill, folder_name, portable, read, skill_name, written

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
SAID = TEXT.map(str.strip)
NAMES = st.one_of(
    st.from_regex(r"[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,6}){0,3}", fullmatch=True),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,63}", fullmatch=True),
    st.from_regex(r"[a-zäöüßéλя][a-zA-Z0-9äöüßéλя_]{0,20}", fullmatch=True),
)
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "license": SAID.filter(bool),
        "compatibility": SAID.filter(bool),
        "allowed-tools": SAID.filter(bool),
        "metadata": st.dictionaries(st.from_regex(r"[a-z][a-z.-]{0,10}", fullmatch=True), SAID, min_size=1, max_size=3),
        "body": TEXT.map(lambda text: "\n" + text.replace("\r", "")).filter(str.strip),
        "files": st.dictionaries(
            st.from_regex(r"references/[a-z]{1,8}\.md", fullmatch=True), TEXT, min_size=1, max_size=2
        ),
        "assets": st.dictionaries(
            st.from_regex(r"assets/[a-z]{1,8}\.png", fullmatch=True),
            st.binary(max_size=60).map(lambda data: base64.b64encode(b"\xff" + data).decode()),
            min_size=1,
            max_size=2,
        ),
    },
)
SKILLS = st.builds(
    PortableSkill,
    name=NAMES,
    code=TEXT,
    description=SAID,
    tags=st.lists(TEXT, max_size=4).map(tuple),
    tests=TEXT,
    recordings=st.none()
    | st.lists(st.fixed_dictionaries({"tool": TEXT, "arguments": st.just({}), "answer": TEXT}), max_size=2),
    extra=EXTRAS,
)


def in_folder(root: Path, skill: PortableSkill, draft: SkillDraft | None = None) -> Path:
    folder = root / folder_name(skill.name)
    for path, data in written(skill, draft).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


@given(SKILLS)
def test_a_skill_that_is_written_and_read_again_is_the_same(skill: PortableSkill) -> None:
    assert read(folder_name(skill.name), written(skill)) == skill


@given(SKILLS)
def test_the_reference_reader_understands_every_frontmatter(skill: PortableSkill) -> None:
    front, _body = parse_frontmatter(written(skill)["SKILL.md"].decode())
    assert front["name"] == folder_name(skill.name)
    assert front["metadata"]["sealab-name"] == skill.name
    if 0 < len(skill.description) <= 1024:
        assert front["description"] == skill.description


@given(name=NAMES)
def test_the_reference_validator_takes_every_folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = in_folder(tmp_path_factory.mktemp("skills"), PortableSkill(name=name, code="x = 1\n"))
    assert validate(folder) == []


def test_a_description_that_is_too_long_for_the_frontmatter_is_kept_whole() -> None:
    skill = PortableSkill(name="long_one", code="", description="word " * 500 + "end")
    files = written(skill)
    assert len(parse_frontmatter(files["SKILL.md"].decode())[0]["description"]) <= 1024
    assert read("long-one", files) == skill


@given(one=NAMES, other=NAMES)
def test_two_names_never_share_a_folder(one: str, other: str) -> None:
    assert (folder_name(one) == folder_name(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "folder"), [("csv_profile", "csv-profile"), ("a1_b2", "a1-b2"), ("slugify", "slugify")]
)
def test_plain_names_only_change_their_separator(name: str, folder: str) -> None:
    assert folder_name(name) == folder
    assert skill_name(folder) == name


@pytest.mark.parametrize("name", ["A_b", "a__b", "_a", "a_", "größe", "a_u12345678", "u00000000"])
def test_other_names_get_a_folder_of_their_own_that_is_valid(name: str) -> None:
    folder = folder_name(name)
    assert folder.isascii()
    assert folder == folder.lower()
    assert "--" not in folder
    assert not folder.startswith("-")
    assert re.fullmatch(r"(.*-)?u[0-9a-f]{8}", folder)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("pdf-tools", "pdf_tools"), ("3d-model", "skill_3d_model"), ("import", "import_skill"), ("My Skill!", "my_skill")],
)
def test_foreign_folders_become_python_names(folder: str, name: str) -> None:
    assert skill_name(folder) == name


def test_a_foreign_skill_brings_its_only_script_and_keeps_what_else_it_says() -> None:
    manifest = "---\nname: pdf-fill\ndescription: >\n  Fills\n  forms.\nlicense: MIT\nmetadata:\n  author: me\n---\n# How\n\nText.\n"
    skill = read(
        "pdf-fill", {"SKILL.md": manifest.encode(), "scripts/run.py": b"def pdf_fill(): pass\n", "ref.md": b"see"}
    )
    assert skill == PortableSkill(
        name="pdf_fill",
        code="def pdf_fill(): pass\n",
        description="Fills forms.",
        extra={"license": "MIT", "metadata": {"author": "me"}, "body": "# How\n\nText.\n", "files": {"ref.md": "see"}},
    )


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a.txt": b""}, "no SKILL.md"),
        ({"SKILL.md": b"---\nname: a\nno end"}, "frontmatter"),
        ({"SKILL.md": b"---\nname: [\n---\n"}, "YAML in line 3, column 1.*value of name in double quotes"),
        ({"SKILL.md": b"---\n- a\n---\n"}, "mapping"),
        ({"SKILL.md": b"---\na: &x [1]\nb: *x\n---\n"}, "aliases"),
        ({"SKILL.md": b"---\nname: a\n---\n"}, "neither instructions nor a Python script"),
        ({"SKILL.md": b"---\nmetadata:\n  sealab-name: a\n---\n"}, "no Python script"),
        ({"SKILL.md": b"---\nname: a\n---\n", "scripts/a.py": b"\xff\xfe"}, "not UTF-8"),
        ({"SKILL.md": b"---\nname: a\n---\n", "scripts/a.py": b"a\0b"}, "binary"),
        ({"SKILL.md": b"---\nname: a\n---\n", "scripts/a.py": b"#" * 1_000_001}, "larger"),
        ({"SKILL.md": b"---\nname: a\n---\n", "scripts/a.py": b"", "tests/recordings.json": b"{"}, "recordings"),
    ],
)
def test_what_is_no_skill_is_refused_with_the_reason(files: dict[str, bytes], told: str) -> None:
    with pytest.raises(SkillRefused, match=told):
        read("a", files)


@given(
    st.dictionaries(
        st.from_regex(r"(scripts|references|assets)/[a-z]{1,8}\.(md|py|txt|png)", fullmatch=True),
        st.one_of(TEXT.map(str.encode), st.binary(max_size=60)),
        max_size=5,
    ),
    SAID,
    NAMES,
)
def test_a_folder_of_others_comes_back_file_by_file(files: dict[str, bytes], body: str, name: str) -> None:
    files = {
        path: data.decode(errors="replace").replace("\0", "").encode() if path.endswith(".py") else data
        for path, data in files.items()
    }
    files["SKILL.md"] = f"---\nname: {folder_name(name)}\ndescription: d\n---\nSay {body}".encode()
    skill = read("any", files)
    assert (skill.code, skill.extra["origin"]) == ("", "others")
    assert written(skill) == files
    assert read("any", written(skill)) == skill


@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("description: Use it: when asked", "Use it: when asked"),
        ("description: `x` runs", "`x` runs"),
        ("description: *now*: do\n  and more", "*now*: do and more"),
        ("description:\tTabs\nlicense:\tMIT", "Tabs"),
        ("license: MIT", "The first paragraph."),
        ("description: [Internal]\nlicense: MIT: or not", '["Internal"]'),
    ],
)
def test_a_frontmatter_whose_meaning_is_plain_is_read(front: str, description: str) -> None:
    manifest = f"---\nname: a\n{front}\n---\n# Head\n\nThe first\nparagraph.\n\nMore.\n"
    assert read("a", {MANIFEST: manifest.encode()}).description == description


def test_a_folder_of_others_keeps_the_number_that_tells_it_from_one_of_its_name() -> None:
    files = {MANIFEST: b"---\nname: pdf\ndescription: d\n---\nHow.\n"}
    assert [read(folder, files).name for folder in ("pdf", "pdf-2", "other-2")] == ["pdf", "pdf_2", "pdf"]
    assert read("talk", {MANIFEST: b"Only\ntext.\n"}) == PortableSkill(
        name="talk", code="", description="Only text.", extra={"files": {MANIFEST: "Only\ntext.\n"}, "origin": "others"}
    )


def test_an_exported_script_runs_in_plain_python(tmp_path: Path) -> None:
    code = 'def shout(text: str, times: int = 2) -> str:\n    return re.sub("a", "A", text) * times\n'
    draft = SkillDraft(
        name="shout",
        code=code,
        signature="shout(text: str, times: int = 2) -> str",
        parameters={
            "type": "object",
            "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["text"],
        },
        extra={"entry": "shout"},
    )
    script = in_folder(tmp_path, portable(draft), draft) / "scripts" / "shout.py"
    run = [sys.executable, "-I", str(script)]
    said = subprocess.run([*run, '{"text": "banana"}'], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == "bAnAnAbAnAnA"
    said = subprocess.run([*run, "--text", "1", "--times", "3"], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == "111"
    said = subprocess.run(run, capture_output=True, text=True, check=True)
    assert "shout(text: str" in said.stdout
    for words in (["banana"], ["--text"], ["--text", "a", "--times"], ["--text", "a", "--times", "x"], ["--help"]):
        said = subprocess.run([*run, *words], capture_output=True, text=True, check=False)
        assert (said.returncode, said.stdout) == (1, "")
        assert said.stderr.startswith("Give the arguments as one JSON object, or each as --NAME VALUE")
    assert read("shout", written(portable(draft), draft)).code == code


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{own}: &{own} [{','.join([f'*{inner}'] * 10)}]\n"
    for inner, own in zip("abcdefghijkl", "bcdefghijklm", strict=True)
)


@pytest.mark.parametrize(
    "front",
    [
        f"metadata:\n  deep: 1\n{LAUGHS}", "description: &a [x]\nmetadata: {b: [*a]}\n", f"description: {'[' * 5000}\n",
        f"description: {'1:' * 20_000}1\n", "metadata: {date: 2001-99-99}\n",
        "metadata: {a: !!python/object/apply:os.getcwd []}\n",
    ],
    ids=range(6),
)  # fmt: skip
def test_a_hostile_frontmatter_is_refused_before_it_costs_anything(front: str) -> None:
    files = {MANIFEST: f"---\nname: a\n{front}---\n".encode(), "scripts/a.py": b"def a(): pass\n"}
    with pytest.raises(SkillRefused):
        read("a", files)


def test_hostile_metadata_of_ours_is_taken_for_a_text() -> None:
    front = f'---\nname: a\nmetadata:\n  sealab-tags: "{"[" * 100_000}"\n---\n'
    read("a", {MANIFEST: front.encode(), "scripts/a.py": b"def a(): pass\n"})
