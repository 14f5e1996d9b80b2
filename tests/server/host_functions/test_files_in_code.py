"""Files as code finds them: each program does here what it does in CPython, with the same files and the same errors."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sealab.sandbox.dialect import guest_modules
from sealab.sandbox.dialect.compiling import compile_program, run_program
from sealab.sandbox.dialect.namespace import new_namespace
from sealab.sandbox.errors import HostCallError
from sealab.sandbox.guest.guest import GUEST
from sealab.sandbox.guest.host_channel import value_of
from sealab.sandbox.job import Json
from sealab.server.base.host_call import for_worker
from sealab.server.use_cases.host_functions import file_calls
from sealab.server.use_cases.host_functions.broker import Calls, handlers_of
from sealab.server.use_cases.host_functions.workspace_calls import WorkspaceCalls
from sealab.workspace.store import Workspace

QUOTA = 20_000_000


class Code:
    """Runs programs over one workspace, each as a run of its own."""

    def __init__(self, folder: Path, quota: int = QUOTA) -> None:
        self.workspace = Workspace(folder, quota_bytes=quota)
        self.handlers = handlers_of(WorkspaceCalls(self.workspace)) | {**file_calls.handlers(self.workspace)}
        self.calls = Calls(self.handlers, budget=10)

    def run(self, source: str) -> object:
        """Return the value of a program's variable `result`. What it raises comes through."""
        loop = asyncio.new_event_loop()
        self.calls = Calls(self.handlers, budget=10)

        def call_host(name: str, arguments: Mapping[str, Json]) -> Json:
            sent = json.loads(json.dumps(arguments))
            try:
                return json.loads(json.dumps(loop.run_until_complete(for_worker(self.calls.answer)(name, sent))))
            except HostCallError as error:
                return value_of({"error": {"type": error.type, "message": error.message}})

        before = GUEST.call_host, GUEST.namespace, GUEST.write
        guest_modules.forget()
        GUEST.call_host, GUEST.namespace, GUEST.write = call_host, new_namespace(), lambda _text: None
        try:
            run_program(compile_program(textwrap.dedent(source)), GUEST.namespace)
            if guest_modules.is_loaded("io"):
                assert guest_modules.call("io", "flush_all") == []
            return GUEST.namespace.get("result")
        finally:
            loop.run_until_complete(self.calls.ended())
            loop.close()
            GUEST.call_host, GUEST.namespace, GUEST.write = before
            guest_modules.forget()
            with warnings.catch_warnings():  # of databases that the code left open; here its process goes on
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()


@pytest.fixture
def code(tmp_path: Path) -> Iterator[Code]:
    made = Code(tmp_path / "workspace")
    yield made
    made.workspace.close()


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


TRIED = """
def tried(call, *arguments, **keywords):
    try:
        found = call(*arguments, **keywords)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return found
"""

ALIKE = {
    "reading, writing and appending": """
        with open("a.txt", "w") as f:
            told = [f.write("one\\ntwo\\n"), f.name, f.mode, f.encoding, f.closed, f.tell(), f.readable(), f.writable()]
        with open("a.txt", "a") as f:
            told.append(f.tell())
            print("three", file=f)
        with open("a.txt") as f:
            told += [f.readline(), f.read(2), f.readlines(), f.read()]
        result = [told, open("a.txt").read(), list(open("a.txt", "rb")), f.closed]""",
    "reading and writing at once": """
        open("a", "w").write("0123456789")
        told = []
        with open("a", "r+") as f:
            told.append(f.read(3))
            f.seek(5)
            f.write("XY")
            f.seek(0)
            told.append(f.read())
            f.seek(0, 2)
            f.write("end")
            f.truncate(4)
        with open("a", "r+b") as f:
            told += [f.read(2), f.tell(), f.write(b"zz"), f.tell(), f.seek(1), f.read(), f.seek(-2, 2), f.read()]
        with open("b", "w+b") as f:
            told += [f.write(b"abc"), f.seek(0), f.read(), f.seek(10), f.write(b"x"), f.seek(0), f.read()]
        with open("c", "a+") as f:
            told += [f.write("c"), f.seek(0), f.read(), f.write("d"), f.seek(0), f.read()]
        result = told""",
    "lines and encodings": """
        open("l", "wb").write(b"a\\r\\nb\\rc\\nd")
        told = [open("l").read(), open("l", newline="").read(), open("l").readlines(), open("l", newline="\\r").readlines()]
        for newline in (None, "", "\\n", "\\r", "\\r\\n"):
            open("m", "w", newline=newline).write("x\\ny\\r\\n")
            told.append(list(open("m", "rb").read()))
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252", "utf-32"):
            with open("e", "w", encoding=encoding) as f:
                f.write("é\\n")
            with open("e", "a", encoding=encoding) as f:
                f.write("ü")
            told += [list(open("e", "rb").read()), open("e", encoding=encoding).read(), open("e", encoding=encoding).encoding]
        result = told""",
    "errors of text": TRIED
    + """
        open("bad", "wb").write(b"ab\\xff\\xfecd")
        told = [tried(open("bad").read), tried(open("bad", encoding="ascii").read)]
        for errors in ("replace", "ignore", "backslashreplace", "surrogateescape"):
            told.append(ascii(open("bad", errors=errors).read()))
        told.append(tried(open("o", "w", encoding="ascii").write, "é"))
        told.append(tried(open("o", "w", encoding="ascii", errors="xmlcharrefreplace").write, "é"))
        told.append(tried(open, "o", encoding="nonsense"))
        result = told""",
    "errors of opening": TRIED
    + """
        import os
        os.mkdir("folder")
        open("file", "w").close()
        told = []
        for arguments in (("none",), ("folder",), ("folder", "w"), ("no/file", "w"), ("file", "x"), ("file/x",), ("",),
                          ("file", "q"), ("file", "rw"), ("file", ""), ("file", "rbt"), ("file", "r+w"), ("a\\0b",)):
            told.append(tried(open, *arguments))
        for keywords in ({"mode": "rb", "encoding": "utf-8"}, {"mode": "rb", "newline": ""}, {"newline": "x"},
                         {"buffering": 0}, {"mode": 1}, {"encoding": 1}, {"mode": "rb", "errors": "strict"}):
            told.append(tried(open, "file", **keywords))
        told += [tried(open, 1.5), tried(open, None)]
        try:
            open("none")
        except OSError as error:
            told.append([error.errno, error.strerror, error.filename, error.filename2])
        try:
            os.rename("none", "other")
        except OSError as error:
            told.append([error.errno, error.strerror, error.filename, error.filename2, str(error)])
        result = told""",
    "closed files and wrong modes": TRIED
    + """
        f = open("a", "w")
        told = [tried(f.read), tried(f.write, b"x"), tried(next, f)]
        f.close()
        f.close()
        told += [tried(f.write, "x"), tried(f.read), tried(f.flush), tried(f.seek, 0), f.closed, tried(f.__enter__)]
        g = open("a", "rb")
        told += [tried(g.write, b"x"), g.read()]
        g.close()
        told += [tried(g.read), tried(g.tell)]
        h = open("a", "wb")
        told += [tried(h.read), tried(h.write, "x")]
        result = told""",
    "what is written is seen": """
        f = open("a", "w")
        f.write("held")
        told = [open("a").read()]
        f.flush()
        told.append(open("a").read())
        g = open("a")
        told += [g.read(), f.write("more"), f.flush(), g.read()]
        f.close()
        result = told""",
    "files in the hands of others": """
        import csv, io, json, os
        with open("t.csv", "w", newline="") as f:
            csv.writer(f).writerows([["a", "b"], [1, "x\\ny"]])
        with open("t.csv", newline="") as f:
            rows = list(csv.DictReader(f))
        with open("t.json", "w") as f:
            json.dump({"a": [1, 2]}, f)
        with open("t.json", "rb") as f:
            loaded = json.load(f)
        buffer = open("t.csv", "rb")
        text = io.TextIOWrapper(buffer, encoding="utf-8", newline="")
        raw = open("t.csv", "rb", buffering=0)
        got = bytearray(4)
        result = [rows, loaded, text.readline(), raw.readinto(got), list(got), raw.read(3), raw.seek(0, 2), raw.readall(),
                  buffer.seekable(), len(buffer.peek()), os.fstat(raw.fileno()).st_size]""",
    "a file without its name": """
        import os
        with open("a", "w+") as f:
            f.write("still here")
            f.flush()
            os.remove("a")
            f.seek(0)
            told = [f.read(), os.path.exists("a")]
        with open("b", "w") as f:
            f.write("kept")
            os.rename("b", "c")
        result = [told, open("c").read(), os.listdir()]""",
    "os and os.path": TRIED
    + """
        import os
        os.makedirs("d/e/f", exist_ok=True)
        os.makedirs("d/e/f", exist_ok=True)
        told = [tried(os.makedirs, "d/e"), tried(os.mkdir, "d"), tried(os.mkdir, "x/y"), tried(os.rmdir, "d")]
        for name in ("d/1", "d/e/2", "d/e/f/3"):
            with open(name, "w") as f:
                f.write(name)
        walked = [(here, sorted(folders), sorted(files)) for here, folders, files in os.walk("d")]
        upwards = [here for here, _, _ in os.walk("d", topdown=False)]
        pruned = []
        for here, folders, files in os.walk("d"):
            folders[:] = [each for each in folders if each != "f"]
            pruned.append(here)
        with os.scandir("d") as found:
            entries = sorted((each.name, each.path, each.is_dir(), each.is_file(), each.is_symlink()) for each in found)
        told += [tried(os.remove, "d/e"), tried(os.remove, "none"), tried(os.listdir, "none"), tried(os.listdir, "d/1"),
                 tried(os.rmdir, "d/1"), tried(os.stat, "none"), tried(os.chdir, "d/1"), tried(os.path.getsize, "none")]
        os.replace("d/1", "d/e/2")
        os.rename("d/e", "moved")
        os.chdir("moved")
        told += [sorted(os.listdir()), os.path.basename(os.getcwd()), open("2").read(), os.path.exists("../d"),
                 os.path.isfile("2"), os.path.isdir("f"), os.path.getsize("2"), os.path.relpath("f/3", ".."),
                 os.path.samefile("2", "f/../2"), os.path.islink("2"), os.access("2", os.R_OK), os.access("none", os.F_OK)]
        os.chdir("..")
        os.removedirs("d")
        os.renames("moved", "deep/er/moved")
        os.renames("deep/er/moved", "moved")
        told.append(os.path.exists("deep"))
        status = os.stat("moved/2")
        told += [status.st_size, status[6], status.st_mode & 0o170000, os.stat("moved").st_mode & 0o170000,
                 abs(status.st_mtime - os.path.getmtime("moved/2")) < 1, status.st_nlink]
        os.utime("moved/2", (1_000_000_000, 1_000_000_000))
        told += [os.path.getmtime("moved/2"), os.stat("moved/2").st_mtime_ns, os.truncate("moved/2", 2), open("moved/2").read()]
        import linecache
        told += [linecache.getline("moved/2", 1), linecache.getline("moved/2", 9), linecache.getlines("none")]
        fd = os.open("low", os.O_RDWR | os.O_CREAT | os.O_EXCL)
        told += [os.write(fd, b"abc"), os.lseek(fd, 1, os.SEEK_SET), os.read(fd, 9), os.close(fd), tried(os.read, 99, 1)]
        result = [told, walked, upwards, pruned, entries]""",
    "the environment": TRIED
    + """
        import os
        os.environ["A"] = "1"
        told = [os.environ["A"], os.getenv("A"), os.getenv("B_NONE"), os.environ.get("B_NONE", "x"), "A" in os.environ,
                tried(os.environ.__setitem__, "A", 1), os.environ.setdefault("C", "3"), os.environ.pop("A"),
                tried(os.environ.__getitem__, "A_NONE"), os.path.expandvars("$C/${C}/$D_NONE")]
        result = told""",
    "pathlib": TRIED
    + """
        from pathlib import Path
        base = Path("p")
        (base / "a" / "b").mkdir(parents=True)
        told = [tried((base / "a").mkdir), tried((base / "x" / "y").mkdir), (base / "a").mkdir(exist_ok=True),
                (base / "t.txt").write_text("text\\n"), (base / "b.bin").write_bytes(b"\\0\\1"), (base / "t.txt").read_text(),
                (base / "b.bin").read_bytes(), tried((base / "none").read_text), tried(base.read_text),
                tried((base / "t.txt").write_text, b"x")]
        (base / "a" / "one.py").touch()
        (base / "a" / "b" / "two.py").touch()
        (base / "a" / "b" / "two.py").touch(exist_ok=True)
        told.append(tried((base / "a" / "one.py").touch, exist_ok=False))
        for pattern in ("*", "*.py", "**/*.py", "a/*", "a/**/*.py", "*/b", "none/*", "[ab]*", "a/b/two.py", "**/b"):
            told.append(sorted(map(str, base.glob(pattern))))
        told += [sorted(map(str, base.rglob("*.py"))), sorted(map(str, base.rglob("b"))), sorted(p.name for p in base.iterdir()),
                 tried(lambda: list(Path("none").iterdir())), base.exists(), base.is_dir(), base.is_file(),
                 (base / "t.txt").stat().st_size, Path("none").exists(), Path.cwd().is_absolute(),
                 str((base / "t.txt").rename(base / "u.txt")), str((base / "u.txt").replace("v.txt")), Path("v.txt").read_text(),
                 tried(Path("none").unlink), Path("none").unlink(missing_ok=True), tried(base.rmdir),
                 Path("v.txt").resolve() == Path.cwd() / "v.txt", Path("v.txt").absolute().name, repr(Path("v.txt")),
                 Path("v.txt").samefile("p/../v.txt"), str(Path("a") / "b"), Path("v.txt") == Path("./v.txt"),
                 tried(lambda: list(Path("v.txt").glob("")))[0], sorted({Path("x"), Path("x"), Path("y")}) == [Path("x"), Path("y")]]
        with Path("v.txt").open("a") as f:
            f.write("more")
        result = [told, Path("v.txt").read_text(encoding="utf-8")]""",
    "shutil and glob": TRIED
    + """
        import glob, os, shutil
        os.makedirs("s/in")
        open("s/a.txt", "w").write("a")
        open("s/in/b.txt", "w").write("b")
        told = [shutil.copy("s/a.txt", "c.txt"), shutil.copy2("s/a.txt", "s/in"), shutil.copyfile("c.txt", "d.txt"),
                tried(shutil.copyfile, "c.txt", "c.txt")[0], tried(shutil.copy, "none", "x"), shutil.copytree("s", "t"),
                tried(shutil.copytree, "s", "t"), shutil.move("c.txt", "t"), shutil.move("t", "u"),
                sorted(glob.glob("u/**/*", recursive=True)), sorted(glob.glob("*.txt")), sorted(glob.glob("u/*/*.txt")),
                glob.glob("none*"), shutil.which("no-such-program"), tried(shutil.rmtree, "none"),
                shutil.rmtree("none", ignore_errors=True), shutil.rmtree("s"), os.path.exists("s"),
                tried(shutil.rmtree, "d.txt"), shutil.disk_usage(".").total > 0,
                repr(shutil.get_terminal_size((80, 24))), shutil.get_terminal_size().columns]
        result = told""",
    "archives": """
        import bz2, glob, gzip, io, lzma, os, shutil, tarfile
        os.mkdir("s")
        open("s/a.txt", "w").write("a" * 1000)
        told = []
        for module, name in ((gzip, "x.gz"), (bz2, "x.bz2"), (lzma, "x.xz")):
            with module.open(name, "wt", encoding="utf-8") as f:
                f.write("line 1\\nline 2\\n")
            with module.open(name, "rt") as f:
                told.append(f.readlines())
            told.append(module.decompress(open(name, "rb").read()))
            told.append(module.open(io.BytesIO(module.compress(b"memory"))).read())
        for mode in ("w", "w:gz", "w:bz2", "w:xz"):
            with tarfile.open("t.tar", mode) as tar:
                tar.add("s")
            with tarfile.open("t.tar") as tar:
                told += [sorted(tar.getnames()), tar.extractfile("s/a.txt").read(3)]
                tar.extractall("out")
            told.append(open("out/s/a.txt").read(2))
        told += [os.path.basename(shutil.make_archive("packed", "gztar", "s")), tarfile.is_tarfile("t.tar")]
        shutil.unpack_archive("packed.tar.gz", "unpacked")
        for name in glob.glob("*.*"):
            if name.endswith(("gz", "bz2", "xz", "tar")):
                os.remove(name)
        result = [told, os.listdir("unpacked")]""",
    "temporary files": """
        import os, tempfile
        with tempfile.TemporaryDirectory(prefix="p-") as folder:
            name = os.path.join(folder, "x")
            with open(name, "w") as f:
                f.write("temporary")
            told = [os.listdir(folder), open(name).read(), os.path.basename(folder).startswith("p-")]
        told.append(os.path.exists(folder))
        with tempfile.NamedTemporaryFile("w+", suffix=".txt") as f:
            f.write("named")
            f.flush()
            told += [open(f.name).read(), f.name.endswith(".txt")]
        told.append(os.path.exists(f.name))
        kept = tempfile.NamedTemporaryFile(delete=False)
        kept.write(b"kept")
        kept.close()
        told += [open(kept.name).read(), os.unlink(kept.name)]
        with tempfile.TemporaryFile() as f:
            told += [f.write(b"x"), f.seek(0), f.read()]
        fd, name = tempfile.mkstemp()
        with os.fdopen(fd, "w") as f:
            f.write("by number")
        told += [open(name).read(), os.remove(name)]
        with tempfile.SpooledTemporaryFile(max_size=4, mode="w+") as f:
            told += [f.write("more than four"), f.seek(0), f.read()]
        folder = tempfile.mkdtemp()
        told += [os.path.isdir(folder), os.rmdir(folder), os.path.isdir(tempfile.gettempdir())]
        result = told""",
    "temporary files that grow and go": TRIED
    + """
        import gc, os, tempfile
        before = set(os.listdir(tempfile.gettempdir()))
        with tempfile.TemporaryFile() as f:
            told = [f.write(b"0123456789" * 100_000), f.flush(), f.seek(999_990), f.read()]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as f:
            told += [f.write("é\\n" * 3), f.seek(0), f.readlines()]
        with tempfile.SpooledTemporaryFile(max_size=10) as f:
            told += [f.write(b"12345"), f._rolled, f.write(b"678901"), f._rolled, f.seek(0), f.read()]
        with tempfile.SpooledTemporaryFile(mode="w+") as f:
            told += [f.write("x"), f.rollover(), f.seek(0), f.read(), type(f.fileno()).__name__]
        f = tempfile.NamedTemporaryFile()
        name = f.name
        told += [f.write(b"a"), os.path.exists(name), f.close(), os.path.exists(name), f.closed]
        f = tempfile.NamedTemporaryFile(prefix=b"p", suffix=b".s")
        told += [type(f.name).__name__, os.path.basename(f.name)[:1], f.name[-2:]]
        f.close()
        f = tempfile.NamedTemporaryFile("w")
        name = f.name
        del f
        gc.collect()
        told.append(os.path.exists(name))
        folder = tempfile.TemporaryDirectory()
        os.makedirs(folder.name + "/a/b")
        open(folder.name + "/a/b/c", "w").close()
        told += [folder.cleanup(), os.path.exists(folder.name)]
        told.append(tried(tempfile.mkstemp, "a", b"b"))
        told.append(tried(tempfile.mkdtemp, dir="/tmp/none/none")[0])
        told.append(tempfile.mktemp(".x", "y").endswith(".x"))
        tempfile.tempdir = "."
        fd, name = tempfile.mkstemp(text=True)
        told += [os.write(fd, b"here"), os.close(fd), os.listdir(".") == [os.path.basename(name)], os.remove(name)]
        tempfile.tempdir = None
        told.append(set(os.listdir(tempfile.gettempdir())) - before)
        result = [repr(each) for each in told]""",
    "databases": TRIED
    + """
        import sqlite3
        db = sqlite3.connect("d.db")
        db.row_factory = sqlite3.Row
        cur = db.cursor()
        cur.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, amount REAL, data BLOB)")
        cur.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(1, "a", 1.5, b"x"), (2, "b", None, None)])
        told = [cur.rowcount, db.in_transaction, db.total_changes]
        db.commit()
        cur.execute("INSERT INTO t (name) VALUES (:name)", {"name": "c"})
        told += [cur.lastrowid, db.in_transaction]
        db.rollback()
        told += [[dict(row) for row in db.execute("SELECT * FROM t ORDER BY id")], db.in_transaction]
        row = db.execute("SELECT id, name AS n FROM t").fetchone()
        told += [row["N"], row[0], row.keys(), tuple(row), len(row), tried(row.__getitem__, "none")]
        told.append([each[0] for each in db.execute("SELECT id, name FROM t").description])
        for wrong in ("SELEC", "SELECT * FROM none", "INSERT INTO t VALUES (1, 'x', 1, 1)", "INSERT INTO t VALUES (5, NULL, 1, 1)",
                      "SELECT ?"):
            told.append(tried(db.execute, wrong))
        told.append(tried(db.execute, "SELECT ?", (object(),))[0])
        with db:
            db.execute("UPDATE t SET amount = ? WHERE id = ?", (9, 2))
        try:
            with db:
                db.execute("DELETE FROM t")
                raise KeyError("undone")
        except KeyError:
            pass
        db.create_function("twice", 1, lambda value: value * 2)
        class Total:
            def __init__(self): self.total = 0
            def step(self, value): self.total += value or 0
            def finalize(self): return self.total
        db.create_aggregate("total_of", 1, Total)
        db.create_collation("backwards", lambda one, two: (one < two) - (one > two))
        told += [tuple(db.execute("SELECT twice(name), twice(id) FROM t").fetchone()), db.execute("SELECT total_of(amount) FROM t").fetchone()[0],
                 [each[0] for each in db.execute("SELECT name FROM t ORDER BY name COLLATE backwards")],
                 db.execute("SELECT name FROM t").fetchmany(1)[0][0], list(db.iterdump())]
        db.executescript("CREATE TABLE u (x); INSERT INTO u VALUES (1); INSERT INTO u VALUES (2);")
        db.close()
        told.append(tried(db.execute, "SELECT 1"))
        with sqlite3.connect("d.db") as again:
            told += [again.execute("SELECT count(*), sum(x) FROM u").fetchall(), again.execute("SELECT name FROM t").fetchall()]
        again.close()
        import datetime
        memory = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
        memory.execute("CREATE TABLE w (d date)")
        memory.execute("INSERT INTO w VALUES (?)", (datetime.date(2024, 1, 2),))
        told += [memory.execute("SELECT d FROM w").fetchone(), memory.execute("SELECT json_extract('[1,2]', '$[1]')").fetchone(),
                 memory.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5) SELECT sum(i) FROM n").fetchone()]
        import os
        os.remove("d.db")
        result = told""",
    "connections to one database": """
        import os, sqlite3, threading
        main = sqlite3.connect("d.db")
        main.create_function("twice", 1, lambda value: value * 2)
        main.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
        main.commit()
        def work(number):
            db = sqlite3.connect("d.db")
            with db:
                db.executemany("INSERT INTO t (v) VALUES (?)", [(number,)] * 5)
            db.close()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        other = sqlite3.connect("d.db")
        told = [main.execute("SELECT count(*), sum(twice(v)) FROM t").fetchone(), main.total_changes]
        main.execute("UPDATE t SET v = 9 WHERE id = 1")
        told.append(other.execute("SELECT count(*) FROM t WHERE v = 9").fetchall())
        main.commit()
        told.append(other.execute("SELECT count(*) FROM t WHERE v = 9").fetchall())
        other.execute("DELETE FROM t WHERE id > 3")
        other.commit()
        told.append(main.execute("SELECT count(*) FROM t").fetchall())
        main.execute("CREATE TABLE u (x)")
        told.append(other.execute("SELECT name FROM sqlite_master ORDER BY 1").fetchall())
        alone = sqlite3.connect("d.db", isolation_level=None)
        alone.execute("INSERT INTO u VALUES (1)")
        told.append(main.execute("SELECT count(*) FROM u").fetchall())
        for db in (main, other, alone): db.close()
        os.remove("d.db")
        result = told""",
    "the null device": """
        import contextlib, os, pathlib
        with open(os.devnull, "w") as f, contextlib.redirect_stdout(f):
            print("gone")
        told = [f.closed, f.name]
        with open("/dev/null", "r+b") as f:
            told += [f.write(b"x"), f.seek(0), f.read(), f.readlines(), f.mode]
        told += [pathlib.Path(os.devnull).write_text("x"), open(os.devnull).read()]
        result = told""",
    "other modules that open": """
        import codecs, configparser, contextlib, hashlib, logging, os, xml.etree.ElementTree as ET
        open("s.ini", "w").write("[a]\\nb = 1\\n")
        parser = configparser.ConfigParser()
        told = [parser.read(["s.ini", "none.ini"]), parser["a"]["b"]]
        parser["a"]["c"] = "2"
        with open("s.ini", "w") as f:
            parser.write(f)
        ET.ElementTree(ET.fromstring("<a><b>é</b></a>")).write("x.xml", encoding="utf-8", xml_declaration=True)
        told += [open("s.ini").read(), open("x.xml", encoding="utf-8").read(), ET.parse("x.xml").getroot()[0].text]
        with codecs.open("c.txt", "w", "utf-8") as f:
            f.write("é\\r\\n")
        with open("c.txt", "rb") as f:
            told += [hashlib.file_digest(f, "sha256").hexdigest()]
        os.mkdir("in")
        with contextlib.chdir("in"):
            open("here", "w").close()
        logger = logging.getLogger("files")
        handler = logging.FileHandler("log.txt", mode="w")
        logger.addHandler(handler)
        logger.warning("logged")
        told.append(open("log.txt").read())
        handler.close()
        result = [told, os.listdir("in")]""",
}


@pytest.mark.parametrize("program", ALIKE)
def test_a_program_does_what_it_does_in_python(program: str, code: Code, tmp_path: Path) -> None:
    source = "\n".join(textwrap.dedent(part) for part in ALIKE[program].partition(TRIED))
    folder = tmp_path / "python"
    folder.mkdir()
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{source}\nimport builtins\nbuiltins.print(ascii(result))"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=50,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert ascii(code.run(source)) == run.stdout.strip()
    assert files_in(tmp_path / "workspace") == files_in(folder)


def test_what_a_run_leaves_open_is_written_at_its_end(code: Code, tmp_path: Path) -> None:
    code.run(
        "f = open('a', 'w')\nf.write('held')\ng = open('b', 'wb')\ng.write(b'bytes')\nh = open('c', 'w+')\nh.write('c')"
    )
    assert files_in(tmp_path / "workspace") == {"a": b"held", "b": b"bytes", "c": b"c"}
    assert code.calls.written == {"a": 4, "b": 5, "c": 1}


def test_files_open_whatever_code_put_in_the_place_of_a_module(code: Code, tmp_path: Path) -> None:
    told = code.run("""
        import json, sys
        sys.modules["io"] = json
        held = open("early.txt", "w")
        held.write("early")
        import io, os
        sys.modules["io"] = sys.modules["_sealab_files"] = json
        late = open("late.txt", "w")
        late.write("late")
        result = [io is json, sorted(os.listdir())]
        """)
    assert told == [True, ["early.txt", "late.txt"]]
    assert files_in(tmp_path / "workspace") == {"early.txt": b"early", "late.txt": b"late"}


def test_nothing_outside_the_workspace_is_there(code: Code) -> None:
    told = code.run("""
        import os, pathlib
        result = []
        for path in ("/etc/passwd", "../../etc/passwd", "/workspace/../etc/passwd", "/proc/self/environ", "/dev/zero",
                     "/workspace/../../x", "~/x", "/work"):
            for mode in ("r", "w", "a", "x", "r+"):
                try:
                    open(path, mode).close()
                    result.append([path, mode])
                except FileNotFoundError as error:
                    assert error.errno == 2 and error.filename == path
                except OSError as error:
                    result.append(type(error).__name__)
        result += [os.listdir("/"), os.path.exists("/etc"), dict(os.environ), os.path.isdir(pathlib.Path.home()),
                   os.path.exists("/tmp"), os.getcwd()]
        """)
    assert told == [["tmp", "workspace"], False, {}, True, True, "/workspace"]


def test_names_that_lie_are_taken_once_and_by_their_letters(code: Code, tmp_path: Path) -> None:
    told = code.run("""
        import os
        class Liar(str):
            def __eq__(self, other): return True
            def __hash__(self): return 1
            def startswith(self, *a): return True
            def __str__(self): return "/etc/passwd"
            def __contains__(self, other): return False
        class Path:
            asked = 0
            def __fspath__(self):
                Path.asked += 1
                return "good" if Path.asked == 1 else "/etc/passwd"
        class Odd:
            def __fspath__(self): return 7
        open(Path(), "w").write("one")
        open(Liar("liar"), "w").write("two")
        result = [Path.asked, sorted(os.listdir())]
        for wrong in (Odd(), object(), b"bytes\\xff", 0, 1, 5, -1, True):
            try:
                open(wrong)
                result.append("opened")
            except (TypeError, OSError) as error:
                result.append(type(error).__name__)
        """)
    assert told == [1, ["good", "liar"], "TypeError", "TypeError", "FileNotFoundError", *["OSError"] * 5]
    assert sorted(os.listdir(tmp_path / "workspace")) == ["good", "liar"]


def test_the_functions_behind_take_plain_values_alone(code: Code) -> None:
    told = code.run("""
        import _sealab_os
        class Text(str): pass
        class Number(int): pass
        result = []
        for call, *arguments in (
            (_sealab_os.open_file, Text("/workspace/a"), "r", 0), (_sealab_os.open_file, "/workspace/a", Text("r"), 0),
            (_sealab_os.open_file, "/workspace/a", "r", Number(1)), (_sealab_os.read_file_at, "/workspace/a", "1.1", 0, 1.5),
            (_sealab_os.write_file_at, "/workspace/a", "1.1", 0, bytearray(1), False), (_sealab_os.close_file, 1),
            (_sealab_os.rename_path, "/workspace/a", None), (_sealab_os.list_folder, b"/workspace"),
            (_sealab_os.set_modified, "/workspace/a", True),
        ):
            try:
                result.append(call(*arguments))
            except TypeError:
                result.append("TypeError")
        result += [_sealab_os.open_file("/etc/passwd", "r", 0)[0], _sealab_os.read_file_at("/workspace/a", "1.1", 0, 9)[0],
                   _sealab_os.open_file("/workspace/a", "q", 0)[0], _sealab_os.truncate_file("/workspace/a", "1.1", -1)[0]]
        """)
    assert told == ["TypeError"] * 9 + [2, 116, 22, 22]


def test_a_full_workspace_is_no_space_left_and_no_file_is_broken(tmp_path: Path) -> None:
    code = Code(tmp_path / "small", quota=300_000)
    told = code.run("""
        import errno
        with open("whole", "w") as f:
            f.write("x" * 100_000)
        f = open("part", "w")
        try:
            for n in range(10):
                f.write("y" * 99_999 + "\\n")
                f.flush()
        except OSError as error:
            told = [error.errno == errno.ENOSPC, str(error), n]
        try:
            f.close()
        except OSError as error:
            told.append(error.errno)
        result = [told, len(open("part").read()), open("whole").read() == "x" * 100_000, f.closed]
        """)
    assert told == [[True, "[Errno 28] No space left on device", 2, 28], 200_000, True, True]
    assert code.workspace.usage().used_bytes == 300_000
    code.workspace.close()


def test_two_runs_that_write_one_file_see_each_others_bytes(code: Code, tmp_path: Path) -> None:
    code.run("open('shared', 'w').write('first\\n')")
    code.run("""
        f = open("shared", "a")
        f.write("second\\n")
        f.flush()
        write_file = None
        g = open("shared", "a")
        g.write("third\\n")
        g.close()
        f.write("fourth\\n")
        """)
    assert (tmp_path / "workspace" / "shared").read_text() == "first\nsecond\nthird\nfourth\n"


def test_a_file_is_written_in_pieces_that_hold_whole_characters(code: Code, tmp_path: Path) -> None:
    code.run("""
        with open("long", "w", encoding="utf-8") as f:
            f.write("é" * 1_500_001)
            f.write("\\n")
        with open("bytes", "wb") as f:
            f.write(bytes(range(256)) * 20_000)
        assert open("bytes", "rb").read() == bytes(range(256)) * 20_000
        assert open("long", encoding="utf-8").read() == "é" * 1_500_001 + "\\n"
        """)
    assert (tmp_path / "workspace" / "long").read_text("utf-8") == "é" * 1_500_001 + "\n"
    assert (tmp_path / "workspace" / "bytes").stat().st_size == 5_120_000


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"a line of plain text\n" * 10, "utf-8"),
        (("übergänge\r\n" * 1000).encode(), "utf-8"),
        (b'{"a": "b"}' * 10, "base64"),  # its quotes would take more
        (b"", "utf-8"),
        (bytes(1000), "base64"),
        (bytes(range(256)) * 10, "base64"),
        ("é".encode()[:1], "base64"),
    ],
)
def test_bytes_travel_as_text_where_that_takes_less(data: bytes, encoding: str, code: Code, tmp_path: Path) -> None:
    answer = file_calls._content(data)
    assert answer["encoding"] == encoding
    assert len(json.dumps(answer["data"], ensure_ascii=False)) <= max(len(data) * 4 // 3 + 8, 8)
    (tmp_path / "workspace" / "f").write_bytes(data)
    assert code.run("result = open('f', 'rb').read().hex()") == data.hex()


def test_small_files_take_one_call_to_read_and_two_to_write(code: Code) -> None:
    code.run("for n in range(50):\n    with open(f'{n}', 'w') as f: f.write('x')")
    assert code.calls.file_calls == 100
    code.run("import os\nfor n in range(50):\n    with open(f'{n}') as f: f.read()")
    assert code.calls.file_calls == 50
    code.run("import os\nresult = [os.path.join(a, f) for a, _, c in os.walk('.') for f in c]")
    assert code.calls.file_calls == 1


def test_a_statement_takes_only_the_values_that_it_names(code: Code) -> None:
    told = code.run("""
        import sqlite3
        class Other:
            pass
        db = sqlite3.connect(":memory:")
        db.execute("create table t(a)")
        for other in ([1], {}, Other, Other()):
            db.execute("insert into t values(:a)", {"a": 1, "b": other})
            db.executemany("insert into t values(:a)", [{"a": 2, "b": other}])
        result = [db.execute("select count(*), sum(a) from t").fetchone()]
        for values in ({"a": [1]}, {"b": 1}):
            try:
                db.execute("insert into t values(:a)", values)
            except sqlite3.ProgrammingError as error:
                result.append(str(error))
        """)
    assert told[0] == (8, 12)
    assert told[1:] == ["type 'list' is not supported", told[2]]
    assert "You did not supply a value for binding" in told[2]


def test_a_database_reaches_nothing_but_itself(code: Code, tmp_path: Path) -> None:
    told = code.run("""
        import sqlite3
        db = sqlite3.connect(":memory:")
        result = []
        for sql in ("ATTACH '/etc/passwd' AS p", "ATTACH 'x.db' AS p", "DETACH main", "VACUUM INTO 'out.db'", "SELECT load_extension('x')",
                    "PRAGMA writable_schema=ON", "PRAGMA temp_store_directory='/tmp'", "CREATE VIRTUAL TABLE v USING dbstat",
                    "SELECT fts3_tokenizer('x', 'y')", "SELECT readfile('/etc/passwd')", "PRAGMA trusted_schema=ON"):
            try:
                db.execute(sql)
                result.append(sql)
            except sqlite3.Error as error:
                result.append(None)
        def again():
            db.close()
        db.create_function("again", 0, again)
        for sql in ("SELECT again()",):
            try:
                db.execute(sql).fetchall()
            except sqlite3.OperationalError:
                result.append("refused")
        result.append(db.execute("SELECT 1").fetchone())
        """)
    assert told == [None] * 11 + ["refused", (1,)]
    assert list((tmp_path / "workspace").iterdir()) == []


def test_a_database_stays_as_it_was_while_its_rows_are_fetched(code: Code) -> None:
    told = code.run("""
        import sqlite3
        one = sqlite3.connect("d.db")
        with one:
            one.execute("CREATE TABLE t (x)")
            one.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(1000)])
        two = sqlite3.connect("d.db")
        rows = two.execute("SELECT x FROM t")
        result = [rows.fetchone()]
        with one:
            one.execute("DELETE FROM t")
        result += [two.execute("SELECT count(*) FROM t").fetchone(), len(rows.fetchall())]
        result.append(two.execute("SELECT count(*) FROM t").fetchone())
        one.close()
        two.close()
        """)
    assert told == [(0,), (1000,), 999, (0,)]


def test_a_database_that_another_run_changed_is_not_overwritten(code: Code) -> None:
    code.run("""
        import sqlite3
        with sqlite3.connect("d.db") as db:
            db.execute("CREATE TABLE t (x)")
        db.close()
        """)
    told = code.run("""
        import sqlite3
        db = sqlite3.connect("d.db")
        db.execute("INSERT INTO t VALUES (1)")
        content = open("d.db", "rb").read()
        import os
        os.remove("d.db")
        open("d.db", "wb").write(content + bytes(4096))
        try:
            db.commit()
        except sqlite3.OperationalError as error:
            result = str(error)
        db._is_changed = False
        """)
    assert str(told).startswith("database is locked")
