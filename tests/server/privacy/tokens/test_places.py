"""What a value becomes where its token stands: what was valid before is so after, and says the value itself."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.server.privacy.token_texts import mentions_in, spliced
from sealab.server.privacy.tokens.places import DoesNotFit, Put, placed
from sealab.skills_db.vault_entries import Value, VaultEntry

T = "[PERSON_9g5ddg3tce]"
ODD = [
    "Siobhán O'Brien",
    'Ann "Nan" Roe',
    "Roe, Jane & Sons <jane@roe.example>",
    "a\nb",
    "$(echo a) `echo b`; x",
    "-- '; #%&=+ ",
]
values = st.one_of(
    st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
)


def put(text: str, value: str, hint: str = "") -> str:
    entry = VaultEntry(1, "9g5ddg3tce", Value("PERSON", value), None)
    puts = [Put(mention.start, mention.end, entry) for mention in mentions_in(text)]
    assert puts
    return spliced(text, placed(text, puts, hint))


def attributes(text: str) -> list[Any]:
    said: list[Any] = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
            said.extend(value for _name, value in attrs)

        def handle_data(self, data: str) -> None:
            said.append(data)

    reader = Reader()
    reader.feed(text)
    reader.close()
    return said


def rows(query: str) -> list[Any]:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table people (name text)")
        if query.lower().startswith("insert"):
            database.execute(query)
            query = "select name from people where 1 = 1"
        return [row[0] for row in database.execute(query)]


QUERY = "https://crm.example/find?name={T}&page=2#top"
READ: dict[str, tuple[str, str, Callable[[str], Any], Callable[[str], Any]]] = {
    "json": ('{"a": ["x {T}", 1]}', "", lambda text: json.loads(text)["a"][0], lambda value: f"x {value}"),
    "json in json": (
        json.dumps({"a": json.dumps({"b": T})}).replace(T, "{T}"),
        "",
        lambda text: json.loads(json.loads(text)["a"])["b"],
        lambda value: value,
    ),
    "csv": (
        "name,n\n{T},1\nx,2\n",
        "",
        lambda text: list(csv.reader(io.StringIO(text, newline="")))[1],
        lambda value: [value, "1"],
    ),
    "csv by its name": (
        "{T},1\n",
        "people.csv",
        lambda text: next(csv.reader(io.StringIO(text, newline=""))),
        lambda value: [value, "1"],
    ),
    "attribute": ('<p>Hi</p><a title="x {T}">y</a>', "", lambda text: attributes(text)[1], lambda value: f"x {value}"),
    "attribute without quotes": ("<input value={T}>", "", lambda text: attributes(text)[0], lambda value: value),
    "text of html": ("<b>{T}</b>", "", lambda text: "".join(attributes(text)), lambda value: value),
    "url": (
        QUERY,
        "",
        lambda text: parse_qs(urlsplit(text).query, keep_blank_values=True)["name"],
        lambda value: [value],
    ),
    "url in prose": (
        f"see {QUERY} for it",
        "",
        lambda text: parse_qs(urlsplit(text[4:-7]).query)["name"],
        lambda value: [value],
    ),
    "url in an attribute": (
        f'<a href="{QUERY}">x</a>',
        "",
        lambda text: parse_qs(urlsplit(attributes(text)[0]).query)["name"],
        lambda value: [value],
    ),
    "url without a path": (
        "find?name={T}&page=2",
        "",
        lambda text: parse_qs(urlsplit(text).query)["name"],
        lambda value: [value],
    ),
    "form": ("a=1&name={T}", "", lambda text: parse_qs(text)["name"], lambda value: [value]),
    "shell, single": ("grep -i 'x {T}' a.txt", "", lambda text: shlex.split(text)[2], lambda value: f"x {value}"),
    "shell, double": (
        'mail -s "x {T}" a',
        "",
        lambda text: re.sub(r"\\([$`])", r"\1", shlex.split(text)[2]),  # which `shlex` leaves
        lambda value: f"x {value}",
    ),
    "shell, bare": (
        "find --name={T} -x",
        "command",
        lambda text: shlex.split(text)[1],
        lambda value: f"--name={value}",
    ),
    "json in the shell": (
        """curl -d '{"name": "{T}"}' localhost""",
        "",
        lambda text: json.loads(shlex.split(text)[2])["name"],
        lambda value: value,
    ),
}


@pytest.mark.parametrize("place", READ)
@given(value=values)
def test_what_was_valid_is_valid_and_says_the_value(place: str, value: str) -> None:
    text, hint, read, expected = READ[place]
    assert read(put(text.replace("{T}", T), value, hint)) == expected(value)


@pytest.mark.parametrize("value", ODD)
def test_the_shell_itself_reads_the_value_as_one_word(value: str) -> None:
    text = put(f"printf '%s|' {T} \"x {T}\" '{T}' a={T}", value)
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == f"{value}|x {value}|{value}|a={value}|"


@given(value=values.filter(lambda value: "\\" not in value))
def test_a_literal_of_sql_is_one_literal(value: str) -> None:
    assert rows(put(f"SELECT '{T}' AS n FROM (SELECT 1) WHERE 1 = 1", value)) == [value]
    assert rows(put(f"INSERT INTO people VALUES ('{T}')", value)) == [value]
    for query in ("SELECT '{T}'", "VALUES ('{T}')", "-- one\nSELECT n FROM (SELECT '{T}' AS n) WHERE 1=1"):
        assert rows(put(query.replace("{T}", T), value)) == [value]
    for part in ("WHERE n = '{T}'", "CALL add_person('{T}')", "EXEC dbo.Add @n = N'{T}'", "n = '{T}' AND x = 1"):
        assert put(part.replace("{T}", T), value) == part.replace("{T}", value.replace("'", "''"))
    if value == json.dumps(value, ensure_ascii=False)[1:-1]:
        assert rows(put(f"""SELECT json_extract('{{"n": "{T}"}}', '$.n') FROM (SELECT 1) WHERE 1""", value)) == [value]


@pytest.mark.parametrize(
    ("text", "value", "where"),
    [
        (f"SELECT 1 FROM t WHERE n = {T}", "x' OR 1=1 --", "SQL outside of quotes"),
        (f"SELECT 1 FROM t WHERE 1=1 -- {T}", "x\ny", "a comment"),
        (f"SELECT '{T}' FROM t WHERE 1=1", "a\\", "a literal of SQL"),
        (f"<script>var a = '{T}'</script>", "O'Brien", "a script"),
        (f"<a onclick=\"go('{T}')\">x</a>", "O'Brien", "a script"),
        (f"<!-- {T} --><b>x</b>", "a --> b", "a script, a style or a comment"),
        (f'name = "{T}"', 'Ann "Nan" Roe', "quotes that it has itself"),
        (f"python -c \"print('{T}')\"", "O'Brien", "quotes that it has itself"),
        (f"<b {T}=1>x</b>", "a b", "outside of quotes"),
        (f"cat <<EOF > a | b\n{T}\nEOF", "$(id)", "this part of a command"),
        (f'echo "$(date {T})"', "a; id", "this part of a command"),
        (f"https://{T}/x", "Jane Roe", "the name of a host"),
    ],
)
def test_where_a_value_has_no_writing_the_place_is_named(text: str, value: str, where: str) -> None:
    with pytest.raises(DoesNotFit, match=where) as caught:
        put(text, value, "command" if text.startswith("cat") else "")
    assert caught.value.entry is not None
    assert "Roe" in put(text, "Roe")


@pytest.mark.parametrize(
    "text",
    [
        f"Dear {T}, see <https://x.example> & the [list]: 1 < 2, it's {T}.",
        f"Select a committee.\nFrom: Jane <{T}>\n/etc/{T}/x and/or 'so'",
        f"Hi {T},\nthanks, Bob",
        T,
    ],
)
def test_prose_gets_values_as_they_are(text: str) -> None:
    assert put(text, 'Ann "Nan" O\'Brien & Co') == text.replace(T, 'Ann "Nan" O\'Brien & Co')


def test_the_brackets_of_a_link_in_markdown_stay() -> None:
    assert put(f"- {T}(https://x.example/{T}), {T}(x)", "Roe") == "- [Roe](https://x.example/Roe), Roe(x)"


def test_a_long_page_is_read_once() -> None:
    page = "".join(f'<p class="a">{T} said <a href="/x?n={T}">{n}</a></p>\n' for n in range(300))
    assert put(page, "O'Brien").count('href="/x?n=O%27Brien"') == 300


class Counted(str):  # noqa: SLOT000 - it counts
    """A text that counts the characters that are copied out of it."""

    copied = 0

    def __getitem__(self, at: Any) -> str:
        part = str.__getitem__(self, at)
        self.copied += len(part)
        return part


def test_the_work_for_mentions_grows_with_a_text_and_not_faster() -> None:
    copied = []
    for count in (100, 400):
        text = Counted("x-1234567890 [EMAIL_9g5ddg3t " * count)
        assert len(mentions_in(text)) >= count
        copied.append(text.copied)
    assert 0 < copied[1] <= 4.4 * copied[0]
    assert [mention.start for mention in mentions_in(f" <({T[1:-1]})> ")] == [0]
