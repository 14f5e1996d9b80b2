"""In which encoding a text is written is found out by its bytes."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.reading.encodings import SAMPLE_BYTES, Encoding, encoding_of, marked

WORDS = "customer_name;email\r\nZoë Krüger;zoe@corp.example\r\n"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "cp1252"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=80))
def test_a_text_comes_back_from_the_encoding_that_is_found(encoding: str, text: str) -> None:
    data = (WORDS + text + "\n" + WORDS).encode(encoding)
    found = encoding_of(data)
    assert found is not None
    assert data.decode(found) == WORDS + text + "\n" + WORDS
    told = marked(data)
    assert told is not None
    assert data.removeprefix(told.mark).decode(told.name) == WORDS + text + "\n" + WORDS


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200))
def test_what_is_utf_8_is_read_as_that(text: str) -> None:
    assert encoding_of(text.encode()) in {"utf-8", "utf-8-sig"}


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 4,
        os.urandom(4000),
        b"\x00" * 5000,
        b"\x7fELF" + b"\2\1\1" + b"\0" * 9 + bytes(range(256)),
    ],
)
def test_what_is_no_text_is_none(data: bytes) -> None:
    assert encoding_of(data) is None


def test_a_sample_may_end_within_a_character() -> None:
    data = "é".encode() * SAMPLE_BYTES
    assert encoding_of(data[: SAMPLE_BYTES - 1]) == "utf-8"


def test_a_file_is_read_on_to_see_whether_all_of_it_is_utf_8_and_is_where_it_was_then() -> None:
    file = io.BytesIO(b"x" * 2 * SAMPLE_BYTES + b"\xe9")
    assert marked(file.getvalue()[:SAMPLE_BYTES], file) == Encoding("cp1252")
    assert file.tell() == 0
    mixed = io.BytesIO("é".encode() + b"x" * 2 * SAMPLE_BYTES + b"\xe9")
    assert marked(mixed.getvalue()[:SAMPLE_BYTES], mixed) == Encoding("utf-8")
