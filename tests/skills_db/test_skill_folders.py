"""Folders and archives of others: nothing leads outside, nothing too large or binary comes in."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest

from sealab.skills_db.errors import SkillRefused
from sealab.skills_db.skill_folders import found

MANIFEST = b"---\nname: a\ndescription: d\n---\n"


def skill(folder: Path, **files: bytes) -> Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(MANIFEST)
    (folder / "scripts" / "a.py").write_bytes(b"def a(): pass\n")
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("place", ["", ".claude/skills", "skills", ".agents/skills"])
def test_skills_are_found_where_agents_keep_them(tmp_path: Path, place: str) -> None:
    skill(tmp_path / place / "a")
    assert found(tmp_path) == {"a": {"SKILL.md": MANIFEST, "scripts/a.py": b"def a(): pass\n"}}


def test_a_skill_may_be_named_by_its_folder_its_manifest_or_its_script(tmp_path: Path) -> None:
    folder = skill(tmp_path / "a")
    assert found(folder) == found(folder / "SKILL.md")
    (alone,) = found(folder / "scripts" / "a.py").values()
    assert isinstance(alone, dict)
    assert alone["scripts/a.py"] == b"def a(): pass\n"


def test_a_link_in_a_skill_is_refused_and_a_linked_skill_is_no_skill(tmp_path: Path) -> None:
    folder = skill(tmp_path / "in" / "a")
    secret = tmp_path / "secret"
    secret.write_text("s")
    (folder / "leak.md").symlink_to(secret)
    (refused,) = found(tmp_path / "in").values()
    assert isinstance(refused, SkillRefused)
    assert "symbolic link" in str(refused)
    (tmp_path / "in" / "b").symlink_to(skill(tmp_path / "elsewhere"))
    assert found(tmp_path / "in").keys() == {"a"}


def test_pipes_large_and_many_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(skill(tmp_path / "in" / "pipe") / "p")
    skill(tmp_path / "in" / "large", big=b"x" * 1_000_001)
    skill(tmp_path / "in" / "many", **{f"f{number}": b"" for number in range(200)})
    told = {name: str(why) for name, why in found(tmp_path / "in").items() if isinstance(why, SkillRefused)}
    assert told.keys() == {"pipe", "large", "many"}
    assert "not a regular file" in told["pipe"]
    assert "larger" in told["large"]
    assert "200 files" in told["many"]


def archive(path: Path, *entries: tuple[str, bytes], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, data)
    return path


@pytest.mark.parametrize("prefix", ["", "a/", "top/.claude/skills/a/"])
def test_an_archive_is_read_wherever_its_skills_lie(tmp_path: Path, prefix: str) -> None:
    path = archive(tmp_path / "a.zip", (f"{prefix}SKILL.md", MANIFEST), (f"{prefix}scripts/a.py", b"x = 1\n"))
    assert found(path) == {"a": {"SKILL.md": MANIFEST, "scripts/a.py": b"x = 1\n"}}


@pytest.mark.parametrize(
    "name", ["../x.py", "/etc/x", "a/../../x", "a\\..\\x", "C:/x", "a/\x07b", "/".join("abcdefghijklmnop")]
)
def test_paths_that_lead_outside_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SkillRefused, match=r"outside|no skill"):
        found(archive(tmp_path / "a.zip", ("a/SKILL.md", MANIFEST), (name, b"x")))


def test_links_bombs_and_repeated_names_in_an_archive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillRefused, match="not a regular file"):
        found(archive(tmp_path / "l.zip", ("a/SKILL.md", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777))
    (bomb,) = found(archive(tmp_path / "b.zip", ("a/SKILL.md", MANIFEST), ("a/big.txt", b"0" * 2_000_000))).values()
    assert isinstance(bomb, SkillRefused)
    with pytest.warns(UserWarning, match="Duplicate"):
        path = archive(tmp_path / "d.zip", ("a/SKILL.md", MANIFEST), ("a/SKILL.md", b"other"))
    with pytest.raises(SkillRefused, match="twice"):
        found(path)


def test_what_is_no_archive_or_holds_no_skill_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    for source in (tmp_path / "x.zip", tmp_path / "missing", tmp_path):
        with pytest.raises(SkillRefused):
            found(source)


def test_an_archive_that_is_broken_inside_or_names_no_file_is_refused(tmp_path: Path) -> None:
    nameless = tmp_path / "nameless.zip"
    with zipfile.ZipFile(nameless, "w") as archive:
        archive.writestr(".", MANIFEST)
    with pytest.raises(SkillRefused, match="not imported"):
        found(nameless)
    broken = tmp_path / "broken.zip"
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(broken, "w", method) as archive:
            archive.writestr("a/SKILL.md", MANIFEST * 100)
        data = bytearray(broken.read_bytes())
        data[40:80] = b"\xff" * 40
        broken.write_bytes(data)
        with pytest.raises(SkillRefused, match="cannot be read"):
            found(broken)
