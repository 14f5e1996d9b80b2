"""What full Python reads by itself, and what code unpacks, is hidden as what any other code reads."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sealab.server.privacy.gates import read_gate

from ....sandbox.science import VARIABLE, science_python
from ...conftest import Caller, in_process_server
from .people import person

ENVIRONMENT = {
    "SEALAB_PRIVACY": "auto",
    "SEALAB_PRIVACY_MODE": "fast",
    "SEALAB_ALLOWED_ISOLATION": "restricted,process",
    "SEALAB_WORKERS_SPARE": "1",
    **({"SEALAB_PROCESS_PYTHON": os.environ[VARIABLE]} if os.environ.get(VARIABLE) else {}),
}


def table(name: str) -> str:
    return f"customer_name,mobile\n{name},+49 30 9018{len(name)}1\n"


caller = in_process_server(ENVIRONMENT)


def in_zip(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("inner/people.csv", content)
    return file.getvalue()


def in_database(folder: Path, name: str) -> bytes:
    path = folder / "made.db"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE customers (customer_name TEXT, mobile TEXT)")
        database.execute("INSERT INTO customers VALUES (?, '')", (name,))
    database.close()
    return path.read_bytes()


async def shown(caller: Caller, code: str, isolation: str, *names: str) -> None:
    """Look that code which prints names in turn shows a token for each."""
    report = await caller.run(code, isolation=isolation)
    assert report["success"], report
    assert not [name for name in names if name in json.dumps(report)]
    lines = [line.strip("'[]") for line in report["output"].splitlines()]
    assert [line.startswith("PERSON_") for line in lines] == [True] * len(names), report


PLAIN = {
    "open": "print(open('{path}').read().splitlines()[1].split(',')[0])",
    "a folder's own name": "import os; os.chdir('/workspace'); print(open('{name}').read().splitlines()[1].split(',')[0])",
    "a descriptor": "import os; print(os.read(os.open('{path}', os.O_RDONLY), 999).decode().splitlines()[1].split(',')[0])",
    "beside a folder": (
        "import os; at = os.open('/workspace', os.O_RDONLY)\n"
        "print(os.read(os.open('{name}', os.O_RDONLY, dir_fd=at), 999).decode().splitlines()[1].split(',')[0])"
    ),
    "a link": "import os; os.symlink('{path}', '/tmp/x'); print(open('/tmp/x').read().splitlines()[1].split(',')[0])",
    "pathlib": "import pathlib; print(pathlib.Path('{path}').read_text().splitlines()[1].split(',')[0])",
    "a thread": (
        "import concurrent.futures as c\nwith c.ThreadPoolExecutor() as pool:\n"
        "    print(pool.submit(lambda: open('{path}').read()).result().splitlines()[1].split(',')[0])"
    ),
    "a task": (
        "import asyncio\ndef read(): return open('{path}').read()\n"
        "print((await asyncio.gather(asyncio.to_thread(read)))[0].splitlines()[1].split(',')[0])"
    ),
}


async def test_what_full_python_opens_by_itself_is_learned_before(caller: Caller) -> None:
    code = ""
    for number, way in enumerate(PLAIN.values()):
        (caller.home / "workspace" / f"plain{number}.csv").write_text(table(person(number)), encoding="utf-8")
        code += way.format(path=f"/workspace/plain{number}.csv", name=f"plain{number}.csv") + "\n"
    await shown(caller, code, "process", *map(person, range(len(PLAIN))))


UNPACKED = ".decode().splitlines()[1].split(',')[0])"
PACKED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip": (gzip.compress, f"import gzip; print(gzip.open('PATH').read(){UNPACKED}"),
    "bz2": (bz2.compress, f"import bz2; print(bz2.decompress(open('PATH', 'rb').read()){UNPACKED}"),
    "lzma": (lzma.compress, f"import lzma; print(lzma.decompress(open('PATH', 'rb').read()){UNPACKED}"),
    "zip": (in_zip, f"import zipfile; print(zipfile.ZipFile('PATH').read('inner/people.csv'){UNPACKED}"),
    "zip in gzip": (
        lambda data: gzip.compress(in_zip(data)),
        (
            "import gzip, io, zipfile\n"
            f"print(zipfile.ZipFile(io.BytesIO(gzip.open('PATH').read())).read('inner/people.csv'){UNPACKED}"
        ),
    ),
    "the beginning of what is cut": (
        lambda data: gzip.compress(data + os.urandom(4000).hex().encode())[:-2000],
        f"import zlib; print(zlib.decompressobj(31).decompress(open('PATH', 'rb').read()){UNPACKED}",
    ),
    "utf-16": (
        lambda data: data.decode().encode("utf-16"),
        "print(open('PATH', 'rb').read().decode('utf-16').splitlines()[1].split(',')[0])",
    ),
}


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_what_code_unpacks_is_learned_before(caller: Caller, isolation: str) -> None:
    code, names = "", [person(20 + 2 * number + (isolation == "process")) for number in range(len(PACKED))]
    for number, (name, (pack, way)) in enumerate(zip(names, PACKED.values(), strict=True)):
        (caller.home / "workspace" / f"packed{number}").write_bytes(pack(table(name).encode()))
        code += way.replace("PATH", f"/workspace/packed{number}") + "\n"
    await shown(caller, code, isolation, *names)


@pytest.mark.parametrize("isolation", ["restricted", "process"])
async def test_what_code_selects_of_a_database_is_learned_before(
    caller: Caller, tmp_path: Path, isolation: str
) -> None:
    name = person(60 + (isolation == "process"))
    (caller.home / "workspace" / "people.db").write_bytes(in_database(tmp_path, name))
    where = (
        "'/workspace/people.db'" if isolation == "restricted" else "'file:/workspace/people.db?immutable=1', uri=True"
    )
    code = (
        f"import sqlite3\nprint(sqlite3.connect({where}).execute('SELECT customer_name FROM customers').fetchone()[0])"
    )
    await shown(caller, code, isolation, name)


async def test_bytes_that_code_reads_with_the_helper_and_unpacks_are_learned_too(caller: Caller) -> None:
    name = person(70)
    (caller.home / "workspace" / "helped.gz").write_bytes(gzip.compress(table(name).encode()))
    await shown(
        caller,
        f"import gzip; print(gzip.decompress(read_file('helped.gz', encoding=None)){UNPACKED}",
        "restricted",
        name,
    )


async def test_a_file_that_cannot_be_learned_within_the_runs_time_is_not_opened(caller: Caller) -> None:
    lines = "".join(f"Person {n} of Quastenberg,{n}\n" for n in range(400_000))
    (caller.home / "workspace" / "long.csv").write_text("customer_name,mobile\n" + lines, encoding="utf-8")
    report = await caller.run("print(open('/workspace/long.csv').read(200))", isolation="process", timeout_seconds=1)
    (caller.home / "workspace" / "long.csv").unlink()
    assert not report["success"]
    assert "of Quastenberg" not in json.dumps(report)


async def test_tables_keep_their_index_and_are_hidden(caller: Caller) -> None:
    science_python()
    name = person(80)
    (caller.home / "workspace" / "table.csv").write_text(table(name), encoding="utf-8")
    read = "import pandas\ntable = pandas.read_csv('/workspace/table.csv')\n"
    token = (await caller.run(read + "result = table", isolation="process"))["result"][0]["customer_name"]
    for index, expected in (
        ("table.set_index('customer_name')[[]]", [{"customer_name": token}]),
        ("table.set_index('customer_name').rename_axis(None)[[]]", [{"index": token}]),
        (
            "table.assign(index=1).set_index('customer_name').rename_axis(None)[['index']]",
            [{"index_": token, "index": 1}],
        ),
        (
            "table.groupby(['customer_name', 'mobile']).size().to_frame('n').droplevel(1)",
            [{"customer_name": token, "n": 1}],
        ),
        ("table.groupby('customer_name').size()", {token: 1}),
        ("table[['customer_name']]", [{"customer_name": token}]),
    ):
        report = await caller.run(f"{read}result = {index}", isolation="process")
        assert report["result"] == expected, report


async def test_the_texts_of_figures_are_tokens(caller: Caller) -> None:
    science_python()
    name = person(90)
    (caller.home / "workspace" / "figure.csv").write_text(table(name), encoding="utf-8")
    code = """
import pandas, matplotlib.pyplot as plt
who = pandas.read_csv('/workspace/figure.csv')['customer_name'][0]
who = who if real else sanitize_pii(who)
plt.figure(figsize=(9, 4)); plt.bar([who], [1]); plt.title(f'of {who}'); plt.annotate(who, (0, 0))
plt.show()
"""
    pictures = []
    for real in (True, False):
        answer = await caller.call("execute_code", code=code, isolation="process", context_vars={"real": real})
        pictures += [base64.b64decode(each.data) for each in answer.content if each.type == "image"]
    assert len(pictures) == 2
    # matplotlib lays a text out by the one that it was given, so only the ink is compared.
    inks = [await ink(caller, each) for each in pictures]
    assert abs(inks[0] - inks[1]) < 0.02 * inks[1], inks


async def ink(caller: Caller, picture: bytes) -> float:
    """Count what is drawn in a picture, by how dark it is."""
    code = "import io, base64, matplotlib.image as image\nresult = float((1 - image.imread(io.BytesIO(base64.b64decode(data)))[..., :3]).sum())"
    report = await caller.run(code, isolation="process", context_vars={"data": base64.b64encode(picture).decode()})
    assert report["success"], report
    return float(report["result"])


async def test_text_in_any_encoding_is_learned_whichever_way_it_is_read(caller: Caller) -> None:
    code, ways = (
        "",
        (
            ("utf-8", "read_file(NAME, encoding=None).decode()"),
            ("latin-1", "read_file(NAME, encoding=None).decode('latin-1')"),
            ("latin-1", "read_file(NAME, encoding='latin-1')"),
            ("utf-16", "read_file(NAME, encoding='utf-16')"),
            ("utf-16-be", "read_file(NAME, encoding='utf-16-be')"),
            ("latin-1", "open(NAME, encoding='latin-1').read()"),
            ("utf-8", "__import__('base64').b64decode(read_file(NAME, encoding='base64')).decode()"),
        ),
    )
    for number, (encoding, way) in enumerate(ways, 100):
        text = f"customer_name,mobile\n{person(number)},é\n"
        (caller.home / "workspace" / f"coded{number}.csv").write_bytes(text.encode(encoding))
        code += f"print(({way.replace('NAME', repr(f'coded{number}.csv'))}).splitlines()[1].split(',')[0])\n"
    await shown(caller, code, "restricted", *map(person, range(100, 107)))


async def test_a_text_in_another_encoding_is_refused_by_the_name_of_that(caller: Caller) -> None:
    for encoding, said in (("latin-1", "cp1252"), ("utf-16-le", "utf-16-le"), ("utf-16", "utf-16")):
        (caller.home / "workspace" / "coded.csv").write_bytes("Straße,é\n".encode(encoding) * 9)
        report = await caller.run("read_file('coded.csv')")
        assert f"By its bytes it is in {said}: read it with encoding={said!r}." in report["error"]["message"], report
        report = await caller.run(f"result = read_file('coded.csv', 2, 4, encoding={said!r})")
        assert report["result"] == "raße"


def test_of_files_that_a_run_learned_those_are_forgotten_that_were_read_longest_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read_gate, "LEARNED_FILES_MAX", 3)
    learned = read_gate.LearnedFiles()
    for number in range(100):
        learned.add(f"file {number}")
    assert len(learned) == 3
    assert [number for number in range(100) if learned.has(f"file {number}")] == [97, 98, 99]
    assert learned.has("file 97")
    learned.add("another")
    assert learned.has("file 97"), "it was asked for after the others"
    assert not learned.has("file 98")
