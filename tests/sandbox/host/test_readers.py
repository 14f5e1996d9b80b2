"""Readers: confined, ended at their deadline, and never shared."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sealab.sandbox.confine import default_level
from sealab.sandbox.errors import ReadFailed, ReadOverran
from sealab.sandbox.host.readers import Readers
from sealab.sandbox.job import Owner
from sealab.sandbox.wire.zygote_config import ReaderCode

from ...waiting import wait_until

ONE, OTHER = Owner("", "one"), Owner("", "other")


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    code = ReaderCode("tests.sandbox.host.reader_functions", {"greeting": "hello "})
    with Readers(code, required=default_level(), memory_mb=64) as made:
        yield made


def read(readers: Readers, function: str, data: bytes = b"", *, owner: Owner = ONE, once: bool = True) -> bytes:
    return readers.read(function, data, timeout_seconds=20, owner=owner, once=once)


def test_a_reader_runs_a_function_with_its_options(readers: Readers) -> None:
    assert read(readers, "greets", b"you") == b"hello you"
    assert read(readers, "greets", b"x" * 5_000_000) == b"hello " + b"x" * 5_000_000


def test_one_that_may_be_kept_is_its_owners_alone_and_others_are_used_once(readers: Readers) -> None:
    assert read(readers, "seen", b"a", once=False) == b"a"
    assert read(readers, "seen", b"b", once=False) == b"a b"
    assert read(readers, "seen", b"c", once=False, owner=OTHER) == b"c"
    assert read(readers, "seen", b"d") == b"d"
    assert read(readers, "seen", b"e", once=False) == b"a b e"


def test_one_that_does_not_end_is_killed_at_its_deadline_and_the_next_is_another(readers: Readers) -> None:
    with pytest.raises(ReadOverran, match="longer than it may"):
        readers.read("never_ends", b"", timeout_seconds=0.2, owner=ONE, once=False)
    assert read(readers, "greets", b"you", once=False) == b"hello you"


def test_one_that_takes_too_much_memory_ends(readers: Readers) -> None:
    with pytest.raises(ReadOverran, match="more memory"):
        read(readers, "takes_memory", str(1 << 30).encode())


def test_what_a_function_raises_and_that_one_dies_is_said(readers: Readers) -> None:
    with pytest.raises(ReadFailed) as raised:
        read(readers, "fails", b"not so")
    assert (raised.value.kind, raised.value.message) == ("ValueError", "not so")
    with pytest.raises(ReadFailed, match="ended in the middle"):
        read(readers, "dies")


def test_it_sees_no_file_and_no_environment(readers: Readers) -> None:
    with pytest.raises(ReadFailed) as raised:
        read(readers, "reads_a_file", __file__.encode())
    assert raised.value.kind == "FileNotFoundError"
    assert read(readers, "environment") == b"{}"


def test_a_file_is_read_piece_by_piece_and_only_read(readers: Readers, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one\ntwo\n" * 3)
    with (tmp_path / "file").open("rb") as file:
        assert list(readers.read_file("lines", file.fileno(), timeout_seconds=20)) == [b"one\n", b"two\n"] * 3
        with pytest.raises(ReadFailed) as raised:
            list(readers.read_file("writes", file.fileno(), b"more", timeout_seconds=20))
        assert raised.value.kind == "OSError"
        first = next(readers.read_file("lines", file.fileno(), timeout_seconds=20))
    assert first == b"one\n"


def test_a_file_that_takes_too_long_delays_nobody(readers: Readers, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    with (tmp_path / "file").open("rb") as file, pytest.raises(ReadOverran):
        list(readers.read_file("never_ends_in_a_file", file.fileno(), timeout_seconds=0.2))
    assert read(readers, "greets", b"you") == b"hello you"


def test_a_caller_whose_readers_never_end_delays_no_other_and_they_end_with_its_run(readers: Readers) -> None:
    ended = threading.Event()

    def check() -> None:
        if ended.is_set():
            raise InterruptedError

    def never_ends() -> None:
        readers.read("never_ends", b"", timeout_seconds=1000, owner=ONE, check=check)

    with ThreadPoolExecutor(8) as threads:
        begun = [threads.submit(never_ends) for _ in range(8)]
        wait_until(lambda: readers._turns.taken_by(ONE) == readers._of_one_caller and readers._turns.waiting)
        assert read(readers, "greets", b"you", owner=OTHER) == b"hello you"
        ended.set()
        assert [type(each.exception()) for each in begun] == [InterruptedError] * 8
    wait_until(lambda: not readers._turns.running)
