"""Makes and reads the files that only a library can: parquet, feather, Excel, DuckDB.

    PYTHON table_files.py make|read ORDERS ANSWER

ORDERS is JSON, a list of `{"path", "kind", "sheets" or "query"}`; of `read`, ANSWER becomes the list of what they hold:
the rows by sheet, the first row the header, or why not. This file stands alone: another environment runs it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def make(order: dict) -> None:
    os.makedirs(os.path.dirname(order["path"]), exist_ok=True)
    if order["kind"] == "xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in order["sheets"].items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(order["path"])
        return
    import pyarrow as pa
    from pyarrow import feather, parquet

    header, *rows = order["sheets"][""]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(header)})
    writer = parquet.write_table if order["kind"] == "parquet" else feather.write_feather
    writer(table, order["path"])


def read(order: dict) -> object:
    if order["kind"] == "xlsx":
        import openpyxl

        book = openpyxl.load_workbook(order["path"], data_only=True)
        return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}
    if order["kind"] == "duckdb":
        import duckdb

        with duckdb.connect(order["path"], read_only=True) as database:
            return [list(row) for row in database.execute(order["query"]).fetchall()]
    from pyarrow import feather, parquet

    reader = parquet.read_table if order["kind"] == "parquet" else feather.read_table
    table = reader(order["path"])
    columns = [column.to_pylist() for column in table.columns]
    return {"": [table.column_names, *map(list, zip(*columns, strict=True))]}


def main() -> None:
    action, orders, answer = sys.argv[1:4]
    given = json.loads(Path(orders).read_text(encoding="utf-8"))
    found = []
    for order in given:
        if action == "make":
            make(order)
            continue
        try:
            found.append(read(order))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(found, file, default=str)


if __name__ == "__main__":
    main()
