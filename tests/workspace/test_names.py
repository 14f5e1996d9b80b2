"""Names are judged by their letters."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sealab.workspace.errors import NameRefused
from sealab.workspace.names import Name, speakable


@pytest.mark.parametrize(
    "text",
    [
        "a.txt",
        "data/2024/table.csv",
        ".hidden",
        "...",
        "-rf",
        "~",
        "$HOME/x",
        "con",
        "%2e%2e/x",
        "héllo wörld.txt",
        "日本/語.md",
        "👩‍👩‍👧.png",
        "‥/．．/x",
        "a" * 255,
        "/".join(["d"] * 32),
    ],
)
def test_an_ordinary_or_odd_but_harmless_name_is_kept_letter_for_letter(text: str) -> None:
    assert str(Name.parse(text)) == text


def test_a_dot_and_a_slash_before_a_name_mean_nothing() -> None:
    assert Name.parse("./a/b.txt") == Name.parse("a/b.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (".", "'.'"),
        ("..", "'..'"),
        ("a/../b", "'..'"),
        ("a/./b", "'.'"),
        ("././a", "'.'"),
        (".//etc/passwd", "absolute"),
        ("./../a", "'..'"),
        ("./C:/x", "absolute"),
        ("a//b", "empty component"),
        ("a/", "empty component"),
        ("/etc/passwd", "absolute"),
        ("C:/x", "absolute"),
        ("c:x", "absolute"),
        ("a\\..\\b", "backslash"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x7fb", "control character"),
        ("a\x85b", "control character"),
        ("a\u2028b", "control character"),
        ("a\udcffb", "surrogate"),
        ("a" * 256, "too long"),
        ("é" * 128, "too long"),
        ("a/" * 32 + "f", "33 components"),
        ("a" * 1025, "1025 characters"),
        ("é/" * 400 + "f", "1201 bytes"),
        (".sealab-part-00", "belong to sealab"),
        ("a/.SEALAB-part-00", "belong to sealab"),
    ],
)
def test_a_name_that_could_mislead_is_refused_and_the_message_says_why_and_what_to_do(text: str, said: str) -> None:
    with pytest.raises(NameRefused) as caught:
        Name.parse(text)
    message = str(caught.value)
    assert said in message
    assert message.count(". ") == 1, "one sentence for what was wrong, one for what to do"
    assert len(message) < 400
    assert message.isprintable()


def test_a_name_of_five_million_letters_is_not_echoed() -> None:
    with pytest.raises(NameRefused) as caught:
        Name.parse("x" * 5_000_000)
    assert len(str(caught.value)) < 200


class _LyingText(str):
    __slots__ = ()

    def split(self, *_: object) -> list[str]:  # type: ignore[override]  # lying is the point
        return ["ok.txt"]


@pytest.mark.parametrize("value", [None, 3, b"a.txt", ["a"], _LyingText("../../x")])
def test_only_an_exact_string_is_a_name(value: object) -> None:
    with pytest.raises(NameRefused, match="plain string"):
        Name.parse(value)


@pytest.mark.parametrize("text", ["", ".", "./"])
def test_the_workspace_itself_is_a_folder_but_no_file(text: str) -> None:
    assert Name.parse_folder(text).parts == ()
    with pytest.raises(NameRefused):
        Name.parse(text)


def test_a_folder_may_end_with_a_slash() -> None:
    assert Name.parse_folder("a/b/").parts == ("a", "b")


@pytest.mark.parametrize("text", ["/", "//", "a//", "../", "/a/"])
def test_a_folder_is_judged_like_a_file(text: str) -> None:
    with pytest.raises(NameRefused):
        Name.parse_folder(text)


@pytest.mark.parametrize("text", [".runs", ".runs/a", ".RUNS/a", ".ru\u200cns/a", "．runs"])
def test_every_spelling_that_a_file_system_could_take_for_the_reserved_folder_is_reserved(text: str) -> None:
    assert Name.parse(text).reserved


@pytest.mark.parametrize("text", ["runs/a", ".runs2", "a/.runs"])
def test_other_names_are_not_reserved(text: str) -> None:
    assert not Name.parse(text).reserved


@example("./:")
@given(st.text(st.sampled_from("a./\\~:\0\n \u202e\udc80é%"), max_size=40) | st.text(max_size=40))
@settings(deadline=None)
def test_whatever_passes_has_only_plain_bounded_components(text: str) -> None:
    try:
        name = Name.parse(text)
    except NameRefused:
        return
    assert str(name) == text.removeprefix("./")
    assert 1 <= len(name.parts) <= 32
    for part in name.parts:
        assert part not in {"", ".", ".."}
        assert not set(part) & set("/\\\0\n")
        assert len(part.encode()) <= 255


@given(st.text(st.sampled_from("aZ09_-. /:~\\\né"), max_size=40) | st.text(max_size=20))
@example("/".join("d" * 33))
@example(".sealab-part-1")
@example("a" * 256)
@settings(deadline=None)
def test_what_is_speakable_is_what_can_be_parsed(text: str) -> None:
    try:
        Name.parse(text)
    except NameRefused:
        assert not speakable(text)
    else:
        assert speakable(text)
