def test_numbers_text_and_gaps():
    told = csv_profile("name,age,score\nAnn,30,1.5\nBob,,2\nAnn,40,3\n")
    assert told["rows"] == 3
    name, age, score = told["columns"]
    assert (name["type"], name["distinct"], name["top"][0]) == ("text", 2, {"value": "Ann", "count": 2})
    assert (age["type"], age["missing"], age["min"], age["max"], age["mean"]) == ("integer", 1, 30, 40, 35)
    assert (score["type"], score["min"]) == ("number", 1.5)


def test_the_delimiter_is_found_and_quotes_are_kept():
    told = csv_profile('a;b\n"x;y";1\n')
    assert told["columns"][0]["top"] == [{"value": "x;y", "count": 1}]


def test_ragged_rows_and_repeated_names_are_told():
    told = csv_profile("a,a\n1\n1,2\n")
    assert told["problems"] == [
        "1 rows have another number of columns, the first is line 2",
        "columns of the same name: a",
    ]


def test_infinite_and_empty_are_no_numbers():
    assert csv_profile("a\ninf\n")["columns"][0]["type"] == "text"
    assert csv_profile("  ")["problems"] == ["the table is empty"]
