"""Profile a table of comma-separated values."""

import csv
import io
import statistics


def csv_profile(text: str, delimiter: str | None = None, sample: int = 3) -> dict:
    """Profile a CSV table: for each column its type, gaps, distinct values and range.

    Args:
        text: The table as text, its first line the column names; read_file(name) gives one.
        delimiter: What separates columns; found out when not given.
        sample: How many of the most frequent values to show of each column.

    Returns:
        {rows, columns: [{name, type, missing, distinct, min?, max?, mean?, top}], problems}
    """
    if not text.strip():
        return {"rows": 0, "columns": [], "problems": ["the table is empty"]}
    first = text.lstrip("\ufeff")
    if delimiter is None:
        head = first.splitlines()[0]
        delimiter = max(",;\t|", key=head.count)
    rows = list(csv.reader(io.StringIO(first), delimiter=delimiter))
    names, body = rows[0], [row for row in rows[1:] if row]
    ragged = [number for number, row in enumerate(body, 2) if len(row) != len(names)]
    problems = [f"{len(ragged)} rows have another number of columns, the first is line {ragged[0]}"] if ragged else []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        problems.append(f"columns of the same name: {', '.join(twice)}")
    columns = []
    for index, name in enumerate(names):
        values = [row[index].strip() for row in body if index < len(row)]
        present = [value for value in values if value]
        columns.append({"name": name, "missing": len(body) - len(present), **_described(present, sample)})
    return {"rows": len(body), "columns": columns, "problems": problems}


def _described(values: list[str], sample: int) -> dict:
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    top = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:sample]
    column = {"type": "empty", "distinct": len(counts), "top": [{"value": value, "count": n} for value, n in top]}
    if not values:
        return column
    numbers = [number for number in map(_number, values) if number is not None]
    if len(numbers) == len(values):
        whole = all(number == int(number) for number in numbers)
        column["type"] = "integer" if whole else "number"
        low, high = min(numbers), max(numbers)
        column |= {"min": int(low) if whole else low, "max": int(high) if whole else high}
        column["mean"] = round(statistics.fmean(numbers), 6)
    elif all(value.lower() in {"true", "false", "yes", "no"} for value in values):
        column["type"] = "boolean"
    else:
        column["type"] = "text"
        column |= {"min": min(values), "max": max(values)}
    return column


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number - number == 0 else None


# What follows runs the skill from a command line; it was added by sealab and is no part of it.
if __name__ == "__main__":
    import json as _json
    import sys as _sys

    _words, _given, _usage = _sys.argv[1:], {}, 'Give the arguments as one JSON object, or each as --NAME VALUE, where a value that is no text is JSON: csv_profile(text: str, delimiter: str | None = None, sample: int = 3) -> dict'
    if not _words and True:
        print(_usage)
    else:
        try:
            if len(_words) == 1:
                _given = _json.loads(_words[0])
            for _option, _text in zip(_words[::2], _words[1::2], strict=len(_words) != 1):
                _name = _option.removeprefix("--").replace("-", "_")
                _given[_name] = _text if _name in ['text'] else _json.loads(_text)
        except ValueError:
            raise SystemExit(_usage) from None
        print(_json.dumps(csv_profile(**_given), default=repr, ensure_ascii=False))
