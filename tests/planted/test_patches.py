"""Every patch still applies: code that moves takes its patches along in the same commit."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.planted.copies import ROOT
from tests.planted.observer import Seen, seen
from tests.planted.patches import Patch, load
from tests.planted.selection import likely

PATCHES = load()


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_a_patch_applies_once_to_its_file(patch: Patch) -> None:
    patch.applied_to((ROOT / patch.file).read_text(encoding="utf-8"))


def test_every_patch_has_a_name_of_its_own_and_says_its_promise() -> None:
    assert [name for name, times in Counter(patch.name for patch in PATCHES).items() if times > 1] == []
    assert [patch.name for patch in PATCHES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", patch.name)] == []
    assert [patch.name for patch in PATCHES if not patch.promise.endswith(".")] == []
    texts = Counter((patch.file, patch.old, patch.new) for patch in PATCHES)
    assert [text for text, times in texts.items() if times > 1] == []


def test_every_folder_has_patches_and_all_together_many() -> None:
    folders = Counter(patch.file.partition("/")[0] for patch in PATCHES)
    assert set(folders) == {"server", "sandbox", "tools_registry", "skills_db", "workspace"}
    assert folders.total() >= 80


def test_a_test_during_which_the_process_ended_has_failed() -> None:
    lines = ['planted-observer:["began", "a"]', '.planted-observer:["ended", "a"]', 'planted-observer:["began", "b"]']
    assert seen(lines[:2]) == Seen(passed={"a"})
    assert seen(lines) == Seen(passed={"a"}, failures=["b"])
    assert seen([*lines, 'planted-observer:["failed", "b"]', 'planted-observer:["ended", "b"]']) == seen(lines)
    assert seen(['planted-observer:["broken", "tests/x.py"]']).broken == ["tests/x.py"]


def test_tests_named_like_a_promise_are_likely_to_catch_what_breaks_it() -> None:
    file = Path(__file__).relative_to(ROOT).as_posix()
    wanted = "A test during which the process ended has failed."
    assert likely(wanted, [file])[0] == f"{file}::test_a_test_during_which_the_process_ended_has_failed"
