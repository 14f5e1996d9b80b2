"""Which files a text of SQL may read, and where that cannot be said."""

from __future__ import annotations

import pytest

from sealab.sandbox.full_python.reads.native_reads import computes_names, names_in


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from 'people.csv'", "people.csv"),
        ('from "of people.csv" p', "of people.csv"),
        ("from people.csv", "people.csv"),
        ("-- it's\nfrom 'people.csv'", "people.csv"),
        ("/* don't */ from read_csv('people.csv')", "people.csv"),
        ("from read_csv($$people.csv$$)", "people.csv"),
        ("from read_csv($of$people.csv$of$)", "people.csv"),
        ("from 'of o''neil.csv'", "of o'neil.csv"),
        ("from read_parquet(['a.parquet', 'b/*.parquet'])", "b/*.parquet"),
    ],
)
def test_a_name_is_found_however_it_is_quoted(text: str, name: str) -> None:
    assert name in set(names_in(text))


@pytest.mark.parametrize(
    "text",
    [
        "from read_csv('people' || '.csv')",
        "from READ_PARQUET (concat('a', '.parquet'))",
        "from read_csv(['a.csv', 'b' || '.csv'])",
        "from read_text(getvariable('f'))",
        "from query_table('people' || '.csv')",
        "from query('from ''people.csv''')",
        "from read_csv(e'peopl\\x65.csv')",
        "create macro m(n) as table from read_csv(n || '.csv')",
        "set file_search_path = 'data'",
        "execute s('people' || '.csv')",
        "from glob('peo' || '*')",
    ],
)
def test_sql_that_computes_a_name_may_read_any_file(text: str) -> None:
    assert computes_names(text)


@pytest.mark.parametrize(
    "text",
    [
        "select * from t where name = 'people' || '.csv'",
        "from read_csv('people.csv', header = true)",
        "from read_csv( 'a.csv' )",
        "from read_csv(?, delim = ',')",
        "from read_csv($1)",
        "from read_csv($file)",
        "from read_parquet(['a.parquet', 'b.parquet'])",
        "from read_csv($$people.csv$$)",
        "select count(*), replace(e, 'x', 'y') from t",
    ],
)
def test_sql_whose_names_stand_in_it_reads_no_other(text: str) -> None:
    assert not computes_names(text)


def test_a_long_text_is_read_in_time_in_proportion_to_it() -> None:
    hostile = "read_csv(" * 20_000 + "['a'," * 20_000 + "$a$" * 20_000 + "e'" * 20_000
    assert computes_names(hostile)
    assert len(list(names_in(hostile))) < len(hostile)
