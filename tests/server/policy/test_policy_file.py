"""The policy in force: that of the file, taken anew as a whole, and never none where there was one."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from sealab.server.errors import SettingsError
from sealab.server.identity import LOCAL_IDENTITY
from sealab.server.policy.policy_file import PolicyFile

from .test_decisions import call

GET = call("crm.get_one", writes=False)
PERMIT = '@id("all") permit(principal, action, resource);'
FORBID = '@id("none") forbid(principal, action, resource);'


def written(file: Path, text: str) -> PolicyFile:
    file.write_text(text)
    return PolicyFile(file)


def allows(policy: PolicyFile) -> bool:
    return policy.decide(LOCAL_IDENTITY, GET).allowed


def looked(policy: PolicyFile) -> PolicyFile:
    """Have it look as often as it takes for a version that stays the same."""
    policy.refresh()
    policy.refresh()
    return policy


def test_a_new_version_is_in_force_once_it_has_stayed_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT)
    assert allows(policy)
    policy.path.write_text(FORBID)
    policy.refresh()
    assert allows(policy)  # it could be half written
    with caplog.at_level(logging.WARNING):
        policy.refresh()
    assert not allows(policy)
    assert "A new version of the policy is in force: 1 rules." in caplog.text


def test_the_same_time_and_size_do_not_hide_a_change(tmp_path: Path) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT.replace("all", "one"))
    before = policy.path.stat()
    with policy.path.open("r+") as file:
        file.write(FORBID.replace('@id("none")', '@id("x")')[: before.st_size].ljust(before.st_size))
    os.utime(policy.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert policy.path.stat().st_size == before.st_size
    assert not allows(looked(policy))


def test_a_version_that_cannot_be_used_leaves_the_one_before_in_force_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = written(tmp_path / "p.cedar", f"{PERMIT}\n")
    policy.path.write_text(f"{FORBID}\n\npermit(;")
    with caplog.at_level(logging.ERROR):
        looked(policy)
        looked(policy)
    assert allows(policy)
    assert caplog.text.count("p.cedar:3: this is no rule") == 1
    assert policy.problem == "The new version of the policy cannot be used; the one before stays in force."
    policy.path.write_text(FORBID)
    assert not allows(looked(policy))
    assert policy.problem is None


def test_bytes_that_are_no_text_leave_the_one_before_in_force(tmp_path: Path) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT)
    policy.path.write_bytes(b"\n\xff\xfe")
    assert allows(looked(policy))
    assert policy.problem is not None


def test_without_its_file_everything_is_refused_until_it_is_back(tmp_path: Path) -> None:
    policy = written(tmp_path / "p.cedar", PERMIT)
    policy.path.unlink()
    policy.refresh()
    ruling = policy.decide(LOCAL_IDENTITY, GET)
    assert (ruling.allowed, ruling.why()) == (False, "the file or folder of the policy is not there")
    assert policy.is_missing
    policy.path.write_text(PERMIT)
    assert allows(looked(policy))
    assert not policy.is_missing


def test_a_folder_is_one_policy_of_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(PERMIT)
    (tmp_path / "notes.txt").write_text("no rule")
    policy = PolicyFile(tmp_path)
    assert allows(policy)
    (tmp_path / "b.cedar").write_text(FORBID)
    assert not allows(looked(policy))
    (tmp_path / "b.cedar").unlink()
    assert allows(looked(policy))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"permit(principal, action, resource)", "p.cedar:1: this is no rule"),
        (b"// ok\n\n\xff", "p.cedar:3: it is not UTF-8 text (byte 7)"),
        (None, "where there is no file and no folder"),
    ],
)
def test_a_policy_that_cannot_be_used_at_the_start_is_an_error(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "p.cedar").write_bytes(content)
    with pytest.raises(SettingsError, match="POLICY") as caught:
        PolicyFile(tmp_path / "p.cedar")
    assert said in str(caught.value)


def test_an_empty_policy_permits_nothing(tmp_path: Path) -> None:
    assert not allows(written(tmp_path / "p.cedar", ""))
