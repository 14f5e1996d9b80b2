"""Looks at files as models do before they work on them, and at what the model read for what it must not know."""

from __future__ import annotations

from .made_data import People

LOOK = r"""
def _look():
    import gzip, os, sqlite3, zipfile
    for folder, _, names in sorted(os.walk(".")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if "/.runs" in path:
                continue
            print("==", path)
            if name.endswith((".parquet", ".xlsx")):
                import pandas
                reader = pandas.read_parquet if name.endswith(".parquet") else pandas.read_excel
                print(reader(path).head().to_string())
            elif name.endswith(".db"):
                connection = sqlite3.connect(path)
                for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
                    print(connection.execute(f"select * from {table} limit 5").fetchall())
                connection.close()
            elif name.endswith(".zip"):
                with zipfile.ZipFile(path) as archive:
                    print(archive.read(archive.namelist()[0])[:600].decode())
            elif name.endswith(".gz"):
                with gzip.open(path, "rt") as file:
                    print(file.read(600))
            else:
                with open(path, "rb") as file:
                    start = file.read(600)
                print(start.decode("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace"))

_look()
"""
"""Prints the first rows or bytes of every file in the current folder."""


def raw_in(shown: str, people: People) -> list[str]:
    """Return which values of a task's people stand in what the model read: whole names, last names, mails, phones."""
    text = shown.casefold()
    found = []
    for n in range(People.EACH):
        person = people[n]
        digits = person.phone.removeprefix("+44 ").replace(" ", "")
        values = (person.name, person.name.split()[1], person.email, person.phone, digits)
        found += [value for value in values if value.casefold() in text]
    return found
