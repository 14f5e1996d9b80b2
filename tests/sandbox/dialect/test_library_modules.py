"""Modules of the standard library that run as guest code, used as programs use them."""

from __future__ import annotations

import sys

import pytest

from sealab.sandbox.errors import Refused
from sealab.sandbox.guest.guest import GUEST

from ..guest_code import run
from ..sealed import gives_what_python_gives

pytestmark = pytest.mark.usefixtures("modules_are_run_anew")


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("dumps(lambda: 1)", "PicklingError"),
        ("dumps(i for i in [])", "TypeError"),
        ("dumps(threading.Lock())", "TypeError"),
        ("dumps(io.StringIO())", "TypeError"),
        ("loads(b'')", "EOFError"),
        (r"loads(b'\x80\x04cos\nsystem\n(S\'true\'\ntR.')", "UnpicklingError"),
        (r"loads(b'\x80\x04sealab\n[0, [[\"name\", \"subprocess\", \"run\"]]]\n.')", "ModuleNotFoundError"),
        (r"loads(b'\x80\x04sealab\n[0, [[\"name\", \"json\", \"codecs\"]]]\n.')", "AttributeError"),
        (r"loads(b'\x80\x04sealab\n[0, [[\"name\", \"builtins\", \"len.__globals__\"]]]\n.')", "SecurityError"),
        (r"loads(b'\x80\x04sealab\n[0, [')", "UnpicklingError"),
    ],
)
def test_pickle_refuses_what_cannot_be_written_and_reads_no_more_than_a_program_could(what: str, error: str) -> None:
    source = f"""
    import io, pickle, threading
    try:
        pickle.{what}
    except Exception as error:
        result = type(error).__name__
    """
    assert run(source).value == error


def test_modules_are_imported_by_names_that_are_made_at_run_time() -> None:
    source = """
    import importlib, importlib.util
    from importlib.metadata import PackageNotFoundError, version
    seen = [importlib.import_module("json").dumps([1]), importlib.util.find_spec("numpy"), bool(importlib.util.find_spec("csv"))]
    for name in ("nope", "os.nope", "subprocess", "sealab", "sealab.sandbox", "_socket"):
        try:
            seen.append(importlib.import_module(name))
        except ImportError as error:
            seen.append(type(error).__name__)
    try:
        version("requests")
    except PackageNotFoundError as error:
        seen.append(str(error))
    seen
    """
    assert run(source).value == [
        *("[1]", None, True),
        *["ModuleNotFoundError"] * 6,
        "No package metadata was found for requests",
    ]


def test_small_modules_do_what_they_are_for() -> None:
    source = """
    import atexit, cmd, getopt, gettext, io, netrc, optparse, quopri, sched, shelve, signal, stat, time, tokenize, wave
    from http.cookies import SimpleCookie
    atexit.register(print, "at the end")
    seen = [getopt.getopt(["-a", "-b", "x", "rest"], "ab:"), gettext.ngettext("one", "many", 2), stat.filemode(0o100644)]
    options = optparse.OptionParser()
    options.add_option("-q", action="store_false", dest="loud", default=True)
    seen.append(options.parse_args(["-q", "z"])[1])
    scheduler = sched.scheduler(time.monotonic, time.sleep)
    scheduler.enter(0.002, 1, seen.append, ("second",))
    scheduler.enter(0.001, 1, seen.append, ("first",))
    scheduler.run()
    class Shell(cmd.Cmd):
        def do_hi(self, arg):
            seen.append(arg)
    Shell().onecmd("hi bob")
    seen.append([token.string for token in tokenize.generate_tokens(io.StringIO("a = 1").readline)][:3])
    sound = io.BytesIO()
    with wave.open(sound, "wb") as writer:
        writer.setnchannels(1), writer.setsampwidth(2), writer.setframerate(8000), writer.writeframes(bytes(200))
    sound.seek(0)
    with wave.open(sound) as reader:
        seen.append(reader.getnframes())
    cookie = SimpleCookie()
    cookie["a"] = "b"
    seen += [cookie.output(), quopri.encodestring("\\u00e9".encode()), signal.SIGTERM.value, signal.SIGINT.name]
    seen
    """
    ran = run(source)

    assert ran.value == [
        ([("-a", ""), ("-b", "x")], ["rest"]),
        *("many", "-rw-r--r--", ["z"], "first", "second", "bob", ["a", "=", "1"], 100, "Set-Cookie: a=b", b"=C3=A9"),
        *(15, "SIGINT"),
    ]
    assert ran.output == "at the end\n"


def test_what_a_module_of_the_library_needs_only_sometimes_is_an_error_when_it_is_used() -> None:
    source = """
    import email.utils, xml.sax.saxutils
    seen = [email.utils.quote('"'), xml.sax.saxutils.urllib.parse.quote("a b")]
    try:
        email.utils.socket.getfqdn()
    except (AttributeError, ImportError) as error:
        seen.append(str(error))
    seen
    """
    quoted, encoded, error = run(source).value  # type: ignore[misc]  # three

    assert (quoted, encoded) == ('\\"', "a%20b")
    if sys.version_info < (3, 13):  # from then on it is imported where it is used
        assert error.startswith("module 'socket' is not available here; there is no network")


def test_os_names_no_process_and_no_machine_and_messages_have_identifiers_all_the_same() -> None:
    source = """
    import email.utils, os
    told = []
    for name in ("getpid", "getppid"):
        try:
            getattr(os, name)()
        except AttributeError as error:
            told.append("uuid.uuid4()" in str(error))
    [[*told, tuple(os.uname()), len(os.times())], email.utils.make_msgid("own", "x.example")]
    """
    told, identifier = run(source).value  # type: ignore[misc]  # two
    assert told == [True, True, ("Linux", "", "", "", ""), 5]
    assert identifier.startswith("<")
    assert identifier.endswith(".own@x.example>")


def test_a_program_finds_itself_among_the_modules() -> None:
    source = """
    import importlib, inspect, sys
    class A: pass
    def f(): return 1
    own = sys.modules[__name__]
    own.added = 2
    [own is importlib.import_module("__main__"), own.f(), added, inspect.getmembers(own, inspect.isclass), __file__]
    """
    ran = run(source)
    assert ran.value[:3] == [True, 1, 2]  # type: ignore[index]  # a list
    assert [name for name, _class in ran.value[3]] == ["A"]  # type: ignore[index]  # as above
    assert ran.value[4] == "/workspace/main.py"  # type: ignore[index]  # as above


def test_a_brace_template_of_a_log_reaches_no_hidden_attribute() -> None:
    source = """
    import logging
    def f(): ...
    record = logging.makeLogRecord({"msg": "x", "fn": f})
    logging.Formatter("{fn.__globals__}", style="{").format(record)
    """
    with pytest.raises(AttributeError):
        run(source)


def test_unittest_runs_the_codes_own_cases_and_tells_on_standard_error() -> None:
    source = """
    import asyncio, unittest, logging, warnings
    class T(unittest.TestCase):
        def setUp(self): self.x = 1
        def test_passes(self): self.assertEqual(self.x, 1)
        def test_fails(self): self.assertEqual({"a": 1}, {"a": 2})
        def test_errors(self): 1 / 0
        @unittest.skip("why not")
        def test_skipped(self): ...
        def test_contexts(self):
            with self.assertRaises(ValueError) as caught: int("x")
            self.assertIn("invalid", str(caught.exception))
            with self.assertLogs("a") as logs: logging.getLogger("a").warning("w")
            self.assertEqual(logs.output, ["WARNING:a:w"])
            with self.assertWarns(DeprecationWarning): warnings.warn("old", DeprecationWarning)
    class A(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self): self.y = 2
        async def test_awaits(self):
            await asyncio.sleep(0)
            self.assertEqual(self.y, 2)
    ended = unittest.main(exit=False).result
    [ended.testsRun, len(ended.failures), len(ended.errors), len(ended.skipped), ended.wasSuccessful()]
    """
    ran = run(source)
    assert ran.value in ([6, 1, 1, 1, False], [5, 1, 1, 1, False])  # whether a skipped test counts as run has changed
    assert "FAILED (failures=1, errors=1, skipped=1)" in ran.stderr
    assert 'File "<code>", line 7, in T.test_errors' in ran.stderr
    assert "site-packages" not in ran.stderr
    assert "unittest/case" not in ran.stderr


def test_a_warning_is_shown_with_its_line_and_obeys_the_filters_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """\
import warnings
def old():
    warnings.warn("careful", DeprecationWarning, stacklevel=2)
for n in range(2):
    old()
warnings.filterwarnings("error", module="__main__", category=FutureWarning)
try:
    warnings.warn("soon", FutureWarning)
except FutureWarning as error:
    print(error)
"""
    monkeypatch.setitem(GUEST.sources, "<code>", source)
    ran = run(source)
    assert ran.stderr == "<code>:5: DeprecationWarning: careful\n  old()\n"
    assert ran.output == "soon\n"


def test_timeit_runs_its_statement_under_the_dialect() -> None:
    source = """
    import timeit
    seen = []
    timeit.timeit("seen.append(n)", setup="n = 4", number=3, globals=globals())
    seen
    """
    assert run(source).value == [4, 4, 4]
    with pytest.raises((Refused, NameError, AttributeError, ImportError)):
        run("import timeit\ntimeit.timeit(\"__import__('subprocess').run([])\", number=1)")


def test_a_log_record_says_which_line_and_which_thread_logged_it() -> None:
    source = """
    import logging, threading
    form = "%(filename)s:%(lineno)d:%(funcName)s:%(threadName)s %(message)s"
    logging.basicConfig(force=True, level="INFO", format=form)
    log = logging.getLogger("here")
    def noted(text):
        log.info(text)
    def told(text):
        log.info(text, stacklevel=2)
    class Own(logging.Logger):
        def own(self, text): self.info(text)
    noted("one")
    told("two")
    logging.LoggerAdapter(log, {}).info("three")
    thread = threading.Thread(target=noted, args=("four",), name="second")
    thread.start()
    thread.join()
    own = Own("own")
    own.addHandler(logging.getLogger().handlers[0])
    own.own("five")
    logging.info("six")
    """
    assert run(source).stderr.splitlines() == [
        "<code>:7:noted:MainThread one",
        "<code>:13:<module>:MainThread two",
        "<code>:14:<module>:MainThread three",
        "<code>:7:noted:second four",
        "<code>:11:own:MainThread five",
        "<code>:21:<module>:MainThread six",
    ]


def test_examples_pass_as_python_compares_them() -> None:
    source = '''
    """A module.

    >>> 1 + 1
    2
    """
    import doctest
    class NotYet(Exception): ...
    def f(x):
        """
        >>> f(2)
        4
        >>> f("a")
        Traceback (most recent call last):
            ...
        TypeError: can't multiply sequence by non-int of type 'str'
        >>> for i in range(2):
        ...     print(i)
        0
        1
        >>> list(range(20))  # doctest: +ELLIPSIS
        [0, 1, ..., 19]
        >>> print("a    b")  # doctest: +NORMALIZE_WHITESPACE
        a b
        >>> print("x\\\\n\\\\ny")
        x
        <BLANKLINE>
        y
        >>> raise NotYet("details differ")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        NotYet: others
        >>> 1 / 0  # doctest: +SKIP
        >>> from decimal import Decimal
        >>> Decimal("x")
        Traceback (most recent call last):
        decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]
        >>> y = f(3); y
        9
        >>> None
        """
        return x * x
    class K:
        """
        >>> K().m
        1
        """
        @property
        def m(self):
            """
            >>> K().m + 1
            2
            """
            return 1
        @staticmethod
        def s():
            """
            >>> K.s()
            3
            """
            return 3
    __test__ = {"more": ">>> f(1)\\n1"}
    tuple(doctest.testmod())
    '''
    ran = run(source)
    assert ran.output == ""
    assert ran.value == (0, 16)


def test_an_example_runs_under_the_dialect_and_on_variables_of_its_own_and_its_failure_is_told() -> None:
    source = '''
    import doctest
    n = 5
    def f(x):
        """
        >>> n
        5
        >>> n = 6
        >>> import subprocess
        >>> f.__globals__
        >>> f(1)
        2
        """
        return x
    [*doctest.testmod(), n]
    '''
    ran = run(source)
    assert ran.value == [3, 5, 5]
    told = 'File "<code>", line 11, in __main__.f\nFailed example:\n    f(1)\nExpected:\n    2\nGot:\n    1\n'
    assert told in ran.output
    assert "subprocess" in ran.output


AS_IN_PYTHON = {
    "argparse reads arguments and ends with 2 on wrong ones": """
    import argparse
    parser = argparse.ArgumentParser(prog="count", description="Count lines")
    parser.add_argument("path", nargs="?", default="in.txt")
    parser.add_argument("-n", type=int, choices=[1, 2])
    parser.add_argument("--flag", action="store_true")
    add = parser.add_subparsers(dest="command").add_parser("add")
    add.add_argument("numbers", type=float, nargs="+")
    seen = [vars(parser.parse_args([])), vars(parser.parse_args(["f", "add", "1", "2.5"])), "Count lines" in parser.format_help()]
    try:
        parser.parse_args(["-n", "9"])
    except SystemExit as error:
        seen.append(error.code)
    seen
    """,
    "pickle gives back what it was given": """
    import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, pickle, uuid, zoneinfo
    class Color(enum.Enum):
        RED = 1
    @dataclasses.dataclass
    class Point:
        x: int
        tags: list = dataclasses.field(default_factory=list)
    @dataclasses.dataclass(frozen=True, slots=True)
    class Frozen:
        a: int
    class Private:
        def __init__(self): self._p = 3
        def __eq__(self, other): return self._p == other._p
    class Table(dict):
        pass
    Pair = collections.namedtuple("Pair", "x y")
    values = [1, -5, 10**40, 1.5, float("inf"), True, None, ..., "\\u00e9\\ud800", b"\\0\\xff", (1, (2,)), [[2]], {1: {2: 3}},
        {1, 2}, frozenset({3}), 1 + 2j, range(3), bytearray(b"x"), datetime.date(2024, 1, 2), datetime.timedelta(1, 2, 3),
        datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone.utc), decimal.Decimal("1.10"), fractions.Fraction(1, 3),
        datetime.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris")), uuid.UUID(int=5), collections.Counter("aab"),
        collections.OrderedDict(a=1), collections.defaultdict(list, {1: [2]}), collections.deque([1], 3), Color.RED,
        Point(1, [2]), Frozen(3), Private(), Table(a=1), Pair(1, 2), pathlib.PurePosixPath("a/b"), int, len, print, Point]
    wrong = [value for value in values if pickle.loads(pickle.dumps(value)) != value]
    wrong += [value for value in values if type(pickle.loads(pickle.dumps(value))) is not type(value)]
    cycle, shared = [1], [2]
    cycle.append(cycle)
    again, (first, second) = pickle.loads(pickle.dumps(cycle)), pickle.loads(pickle.dumps([shared, shared]))
    [wrong, again[1] is again, first is second]
    """,
    "pickle asks objects for their state and how they are made": """
    import copyreg, io, pickle
    class State:
        def __init__(self): self.open, self.kept = object(), 2
        def __getstate__(self): return {"kept": self.kept}
        def __setstate__(self, state): self.kept, self.open = state["kept"], None
    class Reduced:
        def __init__(self, a): self.a = a
        def __reduce__(self): return Reduced, (self.a + 1,)
    class Entered:
        def __init__(self, a): self.a = a
    copyreg.pickle(Entered, lambda obj: (Entered, (obj.a * 2,)))
    state, file = pickle.loads(pickle.dumps(State())), io.BytesIO()
    pickle.dump({"a": 1}, file)
    pickle.dump([2], file)
    file.seek(0)
    [state.kept, state.open, pickle.loads(pickle.dumps(Reduced(1))).a, pickle.loads(pickle.dumps(Entered(2))).a,
     pickle.load(file), pickle.load(file), repr(pickle.loads(pickle.dumps(ValueError("a", 1))))]
    """,
    "messages are written and read": """
    import email, email.utils
    from email import encoders, policy
    from email.header import decode_header
    from email.message import EmailMessage
    from email.mime.base import MIMEBase
    from email.mime.multipart import MIMEMultipart
    from email.mime.text import MIMEText
    from email.parser import BytesParser
    message = EmailMessage()
    message["Subject"], message["To"] = "H\\u00e4llo", 'x@y.z, "Q" <q@r.s>'
    message["Message-ID"] = email.utils.make_msgid()
    message.set_content("body\\n")
    message.add_alternative("<b>x</b>", subtype="html")
    message.add_attachment(b"data", maintype="application", subtype="octet-stream", filename="f.bin")
    read = email.message_from_string(message.as_string(), policy=policy.default)
    old = MIMEMultipart()
    old["Subject"] = "s"
    old.attach(MIMEText("\\u00e9", "plain", "utf-8"))
    part = MIMEBase("application", "octet-stream")
    part.set_payload(b"abc")
    encoders.encode_base64(part)
    old.attach(part)
    parsed = BytesParser(policy=policy.default).parsebytes(old.as_bytes())
    [read["subject"], [str(each) for each in read["to"].addresses], [each.get_content_type() for each in read.walk()],
     read.get_body(("plain",)).get_content(), [each.get_filename() for each in read.iter_attachments()],
     [each.get_content() for each in parsed.iter_parts()], email.utils.parseaddr("A <a@b>"),
     decode_header("=?utf-8?q?=C3=A9?=")[0][0].decode()]
    """,
    "xml and property lists are parsed": """
    import plistlib, xml.dom.minidom, xml.sax
    import xml.etree.ElementTree as ET
    from xml.dom import minidom
    from xml.sax.saxutils import escape, quoteattr
    root = ET.Element("a")
    ET.SubElement(root, "b").text = "x"
    seen = []
    class Handler(xml.sax.ContentHandler):
        def startElement(self, name, attributes):
            seen.append((name, dict(attributes)))
    xml.sax.parseString(b'<r k="1"><c/></r>', Handler())
    document = xml.dom.minidom.Document()
    document.appendChild(document.createElement("r")).setAttribute("k", "v")
    data = {"a": 1, "b": [1.5, True, b"x"]}
    [minidom.parseString(ET.tostring(root)).toprettyxml(indent="  "), seen, document.toxml(), escape("<a&"), quoteattr('"'),
     plistlib.loads(plistlib.dumps(data)) == data, plistlib.loads(plistlib.dumps(data, fmt=plistlib.FMT_BINARY)) == data]
    """,
    "an external entity is not read": """
    import xml.sax
    from xml.dom import minidom
    text = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>'
    seen = [minidom.parseString(text).documentElement.toxml()]
    class Handler(xml.sax.ContentHandler):
        def characters(self, text):
            seen.append(text)
    xml.sax.parseString(text, Handler())
    seen
    """,
    "loggers are set up from a dictionary and pass records on": """
    import io, logging, logging.config, logging.handlers, queue
    stream = io.StringIO()
    logging.config.dictConfig({
        "version": 1,
        "formatters": {"short": {"format": "%(levelname)s:%(name)s:%(message)s"}},
        "handlers": {
            "stream": {"class": "logging.StreamHandler", "formatter": "short", "stream": stream, "level": "INFO"},
            "memory": {"class": "logging.handlers.MemoryHandler", "capacity": 10, "target": "stream"},
        },
        "loggers": {
            "a.b": {"level": "DEBUG", "handlers": ["stream"], "propagate": False},
            "m": {"handlers": ["memory"], "propagate": False},
        },
    })
    logging.getLogger("a.b").info("x %d", 1)
    logging.getLogger("a.b").debug("not shown")
    logging.getLogger("m").warning("kept")
    before = stream.getvalue()
    logging.getLogger("m").error("passed on")
    items = queue.Queue()
    logger = logging.getLogger("q")
    logger.propagate = False
    logger.addHandler(logging.handlers.QueueHandler(items))
    with_handler = logging.StreamHandler(stream)
    listener = logging.handlers.QueueListener(items, with_handler)
    listener.start()
    logger.warning("queued")
    listener.stop()
    [before, stream.getvalue()[len(before):].split("\\n")]
    """,
    "mock objects record their calls and stand in for the codes own": """
    import asyncio
    from unittest import mock
    from unittest.mock import ANY, AsyncMock, MagicMock, Mock, PropertyMock, call, create_autospec, mock_open, patch, sentinel
    told = []
    def tried(function, *arguments):
        try:
            return function(*arguments)
        except (AssertionError, AttributeError, TypeError, ValueError) as error:
            return str(error)
    many = MagicMock()
    many.__len__.return_value = 5
    told += [len(many), bool(many), list(many), many.a.b(1, x=2) is many.a.b.return_value, repr(many.mock_calls[-1])]
    one = Mock(side_effect=[1, ValueError("no")])
    told += [one(7), tried(one), one.call_args_list == [call(7), call()], tried(one.assert_called_once_with, ANY)]
    class Sender:
        size = 3
        def send(self, to): return to
        async def fetch(self): return 1
        @property
        def kind(self): return "real"
    strict = Mock(spec=Sender)
    told += [tried(getattr, strict, "nothing"), tried(create_autospec(Sender).send), strict.send("x") is strict.send.return_value]
    with patch.object(Sender, "send", return_value="mocked"), patch.object(Sender, "size", 9):
        told += [Sender().send("x"), Sender.size]
    with patch.object(Sender, "kind", new_callable=PropertyMock, return_value="mocked"):
        told.append(Sender().kind)
    told += [Sender().send("x"), Sender.size, Sender().kind]
    options = {"a": 1}
    with patch.dict(options, b=2):
        told.append(dict(options))
    def name(): return "real"
    told.append(options)
    @patch(f"{__name__}.name", return_value="mocked")
    def asked(mocked): return name(), mocked.called
    told += [asked(), name()]
    with patch("builtins.open", mock_open(read_data="data")) as opened, patch("builtins.print") as printed:
        told.append(open("f").read())
        print("hidden")
    printed.assert_called_once_with("hidden")
    awaited = AsyncMock(return_value=4)
    async def main(): return await awaited(1), await create_autospec(Sender)().fetch() is None
    told += [asyncio.run(main()), awaited.await_count, sentinel.x is sentinel.x, mock.DEFAULT is not None]
    told
    """,
    "warnings are the codes own": """
    import warnings
    warnings.warn("careful")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning)
        warnings.warn("old", DeprecationWarning)
    warnings.filterwarnings("ignore", message="quiet")
    warnings.warn("quiet please")
    warnings.simplefilter("error")
    try:
        warnings.warn("raised")
    except UserWarning as error:
        print(error)
    [len(caught), caught[0].category.__name__, caught[0].lineno]
    """,
    "logging goes to standard error": """
    import logging
    logging.basicConfig(force=True, level="INFO", format="%(levelname)s %(name)s: %(message)s")
    log = logging.getLogger("out.err")
    log.info("%s and %(x)s" if False else "got %d", 3)
    log.debug("hidden")
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("failed")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("{levelname}|{message}|{who}", style="{"))
    logging.getLogger("out").addHandler(handler)
    logging.getLogger("out").propagate = False
    log.warning("w", extra={"who": "me"})
    """,
}


@pytest.mark.parametrize("program", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_a_program_gives_what_python_gives(program: str) -> None:
    gives_what_python_gives(program)


def test_what_guest_modules_take_from_the_library_does_what_it_does_there() -> None:
    gives_what_python_gives("""
    import ast, io, os.path, pkgutil
    pair = io.BufferedRWPair(io.BytesIO(b"here in"), io.BytesIO())
    got = bytearray(2)
    seen = [pair.readinto(got), got.decode(), pair.readinto1(memoryview(got)), got.decode(), pair.read(1).decode()]
    seen += [pair.read1(1).decode(), pair.peek().decode(), pair.write(b"out"), pair.readable(), pair.isatty()]
    seen += [os.path.relpath("/a/b", "/a/c/d"), os.path.relpath(b"/a", b"/a").decode(), os.path.abspath("/a/../b//c")]
    for name in ("json:loads", "json.dumps", "json:nope", "1.x", "nope"):
        try:
            seen.append(pkgutil.resolve_name(name).__name__)
        except (AttributeError, ImportError, ValueError) as error:
            seen.append(type(error).__name__)
    class Names(ast.NodeVisitor):
        def visit_Name(self, node):
            seen.append(node.id)
    Names().visit(ast.parse("a = b, 1"))
    seen += [type(node).__name__ for node in ast.walk(ast.parse("f(x)[0]"))]
    result = seen
    """)
