"""C code that calls guest code and then goes on: what it works with is not gone by then.

Each program would end the process, or show memory, where that does not hold.
"""

from __future__ import annotations

import sys

import pytest

from ..sealed import run_sealed

_TOKENIZER = """
import _tokenize
told, given = [], []
def line():
    given.append(1)
    if len(given) == 1:
        return "f'''abc\\n"
    if len(given) < 60:
        try:
            next(tokens)
        except ValueError as error:
            told.append(str(error))
    return "x'''\\n" if len(given) < 200 else ""
tokens = _tokenize.TokenizerIter(line, extra_tokens=True)
try:
    list(tokens)
except SyntaxError:
    pass
result = sorted(set(told))
"""

REFUSED = {
    "a Struct that is initialized again while it packs": """
        import struct
        try:
            class S(struct.Struct): pass
            result = "a base"
        except TypeError as error:
            result = str(error)[:50]""",
    "an incremental decoder": """
        import io
        try:
            class D(io.IncrementalNewlineDecoder): pass
            result = "a base"
        except (AttributeError, TypeError):
            result = "'Struct' cannot be a base class here; keep one in "[:50]""",
}

PROGRAMS = {
    "an array that shrinks while an item is stored": (
        """
        import array
        changed = []
        for code, value in (("q", 7), ("d", 7.5)):
            for put in (
                lambda a, v: a.__setitem__(5, v), lambda a, v: a.insert(5, v), lambda a, v: a.append(v),
                lambda a, v: a.extend([v]), lambda a, v: a.extend(iter((v,))), lambda a, v: a.fromlist([v]),
            ):
                a = array.array(code, [0]) * 1_000
                class Value:
                    def __index__(self):
                        del a[:]
                        return 7
                    def __float__(self):
                        del a[:]
                        return 7.5
                try:
                    put(a, Value())
                except IndexError:
                    pass
                changed.append(list(a) in ([], [value]))
        result = all(changed)
        """,
        True,
    ),
    "values that an array takes and those that it refuses": (
        """
        import array
        a, told = array.array("i", (n for n in range(3))), []
        a.extend(range(2)); a.extend(array.array("i", [9])); a[0:2] = array.array("i", [5]); a[-1] = True; a.fromlist([4])
        f = array.array("f", [1]); f[0] = 2; f.append(0.5)
        for wrong in (lambda: a.append("x"), lambda: a.__setitem__(0, 1.5), lambda: a.fromlist((1,)), lambda: f.append("x"),
                      lambda: a.__setitem__(slice(1), [1]), lambda: a.append(1 << 40), lambda: a.__setitem__(99, 1)):
            try:
                wrong()
            except (IndexError, OverflowError, TypeError) as error:
                told.append(type(error).__name__)
        result = [list(a), list(f), told]
        """,
        [[5, 2, 0, 1, 1, 4], [2.0, 0.5],
         ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "OverflowError", "IndexError"]],
    ),
    "decimal's context is exchanged while C works with it": (
        """
        import decimal, numbers
        kept = []
        def exchange():
            decimal.setcontext(decimal.Context(Emax=9, Emin=-9))
            for size in range(40, 400, 8):
                kept.extend(bytes([65]) * size for _ in range(50))
        class Number:
            @property
            def numerator(self):
                exchange()
                return 1
            denominator = 10**30
        class Digits(list):
            def __iter__(self):
                exchange()
                return list.__iter__(self)
        class Key(str):
            __hash__ = str.__hash__
            def __eq__(self, other):
                exchange()
                return False
        numbers.Rational.register(Number)
        ways = (
            lambda: decimal.Decimal("NaN") < Number(), lambda: decimal.Decimal("9e99") < Number(),
            lambda: decimal.Decimal(Digits([0, (1,), "F"])), lambda: format(decimal.Decimal("NaN"), "n"),
            lambda: decimal.Decimal("1.5").__format__("n", {Key("decimal_point"): 1}),
        )
        for way in ways:
            decimal.setcontext(decimal.Context(traps=[]))
            try:
                way()
            except (AttributeError, TypeError, ValueError, decimal.DecimalException):
                pass
        result = [text for text in kept if text.strip(b"A")] == []
        """,
        True,
    ),
    "contexts of decimal are what Python makes of them": (
        """
        import decimal
        D, told = decimal.Decimal, []
        decimal.getcontext().prec = 7
        with decimal.localcontext() as ctx:
            ctx.prec = 3
            told.append(str(D(1) / D(3)))
            with decimal.localcontext(decimal.Context(prec=2), rounding=decimal.ROUND_UP):
                told.append(str(D(1) / D(3)))
            told.append(str(D(1) / D(3)))
        told.append(str(D(1) / D(3)))
        for n in range(21_000):
            with decimal.localcontext(prec=4) as ctx:
                pass
        told.append(str(D(1) / D(3)))
        with decimal.localcontext(prec=5, traps=[decimal.Inexact]) as ctx:
            try:
                D(1) / D(3)
            except decimal.Inexact:
                told.append(ctx.prec)
        for wrong in (lambda: decimal.localcontext(5), lambda: decimal.localcontext(none=1), lambda: decimal.setcontext(1)):
            try:
                wrong()
            except TypeError:
                told.append("TypeError")
        result = told
        """,
        ["0.333", "0.34", "0.333", "0.3333333", "0.3333333", 5, "TypeError", "TypeError", "TypeError"],
    ),
    "a task that is made anew while it runs": (
        """
        import asyncio
        told = []
        class Task(asyncio.Task): pass
        class Future(asyncio.Future): pass
        async def other(): pass
        async def main():
            loop = asyncio.get_running_loop()
            async def body():
                coroutine = other()
                try:
                    asyncio.Task.__init__(task, coroutine, loop=loop)
                except RuntimeError as error:
                    told.append(str(error))
                coroutine.close()
            task = Task(body(), loop=loop)
            await task
            future = Future(loop=loop)
            try:
                future.__init__(loop=loop)
            except RuntimeError as error:
                told.append(str(error))
        asyncio.run(main())
        result = told
        """,
        ["Task object is initialized already", "Future object is initialized already"],
    ),
    "a parser is given more text by its own handler": (
        """
        import xml.parsers.expat
        told = []
        parser = xml.parsers.expat.ParserCreate()
        def start(name, attributes):
            try:
                parser.Parse("z" * 3_000_000, False)
            except RuntimeError as error:
                told.append(str(error)[:25])
        def text(given):
            told.append(given)
        parser.StartElementHandler, parser.CharacterDataHandler = start, text
        parser.Parse("<a", False)
        parser.Parse("><c/>b", False)
        parser.Parse("</a>", True)
        result = told
        """,
        ["the parser is at work: gi", "the parser is at work: gi", "b"],
    ),
    "a buffer of text that its own handler changes": (
        """
        import pyexpat
        told = []
        def text(given):
            for name, value in (("buffer_text", False), ("buffer_size", 1)):
                try:
                    setattr(parser, name, value)
                except RuntimeError as error:
                    told.append(str(error)[:22])
        parser = pyexpat.ParserCreate()
        parser.buffer_text, parser.buffer_size = True, 50
        parser.CharacterDataHandler = text
        parser.Parse("<a>" + "x" * 40 + "&amp;" + "y" * 40 + "</a>", True)
        parser.buffer_text = False
        result = [sorted(set(told)), parser.buffer_text]
        """,
        [["the parser is at work:"], False],
    ),
    "a date of bytes that are none": (
        """
        import datetime
        told = []
        class Later(datetime.date):
            year = 2000
        for made in (datetime.date(b"\\0\\0\\1\\1"), datetime.datetime(b"\\0\\0\\1\\1" + bytes(6)), Later(b"\\0\\0\\1\\1")):
            for read in (made.ctime, lambda: datetime.date.ctime(made)):
                try:
                    told.append(read())
                except ValueError as error:
                    told.append(str(error)[:22])
        told += [datetime.date(2024, 2, 29).ctime(), datetime.datetime(1, 1, 1, 2).ctime()]
        result = sorted(set(told))
        """,
        ["Mon Jan  1 02:00:00 0001", "Thu Feb 29 00:00:00 2024", "year 0 is out of range"],
    ),
    "an executor of the code's own gets nothing that can be changed": (
        """
        import asyncio
        told = []
        class Executor:
            def submit(self, call):
                for name in ("anything", "__doc__", "__defaults__"):
                    try:
                        setattr(call, name, ())
                        told.append(name)
                    except (AttributeError, TypeError):
                        pass
                call()
        async def main():
            return await asyncio.get_running_loop().run_in_executor(Executor(), lambda: "answer")
        result = [asyncio.run(main()), told]
        """,
        ["answer", []],
    ),
}  # fmt: skip

_CALLED = """
import bisect, functools
kept, told = [], []
class Item:
    def __lt__(self, other):
        if len(kept) < 3_000:
            empty()
            kept.extend([0] * 300 for _ in range(300))
        return True
def searching(*arguments):
    return functools.partial(bisect.bisect_left, [Item() for _ in range(300)], *arguments)
def sorting(*arguments):
    return [Item() for _ in range(300)].sort
def attempt(call, *arguments):
    kept.clear()
    try:
        call(*arguments)
    except (StopIteration, TypeError, ValueError):  # a list that was changed while it was sorted, for one
        told.append("refused")
"""

HELD = {
    "the texts of Unicode errors whose places lie outside": (
        """
        told = []
        for start, end in ((-1, 0), (-32, -31), (-8, -7), (2**40, 2**40 + 1), (3, 4)):
            told += [
                str(UnicodeDecodeError("utf8", b"abc", start, end, "x")).split()[4],
                str(UnicodeEncodeError("utf8", "abc", start, end, "x")).split()[4],
                str(UnicodeTranslateError("abc", start, end, "x")).split()[2],
            ]
        other = UnicodeDecodeError("utf8", b"abc", 1, 2, "x")
        told.append(str(other).split()[4:6])
        other.object = [1, 2, 3]
        told += [str(other).split()[4], str(UnicodeEncodeError("utf8", "\\u1234", 0, 1, "x")).split()[5]]
        result = told
        """,
        [*["bytes", "characters", "characters"] * 5, ["byte", "0x62"], "bytes", "'\\u1234'"],
    ),
    "the text of an OSError whose parts go while it is made": (
        """
        class Part:
            def __str__(self):
                error.filename = error.strerror = error.errno = error.filename2 = None
                kept.extend([[0] * 5 for _ in range(100)])
                return "part"
            __repr__ = __str__
        kept, told = [], []
        for error in (OSError(1, "a"), FileNotFoundError(2, "a", "b")):
            error.filename, error.strerror, error.errno, error.filename2 = Part(), Part(), Part(), Part()
            told.append(str(error))
        result = [*told, str(FileNotFoundError(2, "a", "b"))]
        """,
        ["[Errno part] part: part -> part", "[Errno part] part: part -> part", "[Errno 2] a: 'b'"],
    ),
    "a default factory that is taken out while it runs": (
        _CALLED + """
import collections
table = collections.defaultdict()
def empty():
    table.default_factory = None
class Named:
    def __repr__(self):
        empty()
        kept.extend([0] * 30 for _ in range(300))
        return "named"
for made in (searching, sorting):
    table.default_factory = made(5)
    attempt(table.__getitem__, "a")
table.default_factory = dict[Named(), Named()]
told.append(repr(table))
plain = collections.defaultdict(list, a=[1])
plain["b"].append(2)
try:
    table["c"]
except KeyError as error:
    told.append(error.args)
result = [told, dict(plain), list(table)]
""",
        [["defaultdict(dict[named, named], {'a': 300})", ["c"]], {"a": [1], "b": [2]}, ["a"]],
    ),
    "an iterator of a function that ends within the function": (
        _CALLED + """
class Sentinel:
    def __eq__(self, other):
        empty()
        kept.extend([0] * 30 for _ in range(300))
        return NotImplemented
ended = []
def empty():
    if not ended:
        ended.append(True)
        list(items)
for made, last in ((searching, 300), (sorting, None)):
    ended.clear()
    items = iter(made(5), last)
    attempt(next, items)
ended.clear()
calls = iter([7, 8, 7, 7]).__next__
items = iter(calls, Sentinel())
told.append(next(items, "ended"))
count = iter(range(9))
result = [told, list(iter(lambda: next(count), 4)), [each for each in iter(count.__next__, 8)], next(items, "ended")]
""",
        [["refused", "refused", 7], [0, 1, 2, 3], [5, 6, 7], "ended"],
    ),
    "an iterator of a sequence that ends within the sequence": (
        """
        told = []
        class Sequence:
            asked = 0
            def __getitem__(self, index):
                Sequence.asked += 1
                if Sequence.asked % 2:
                    try:
                        next(items, None)
                    except ValueError as error:
                        told.append(str(error)[:23])
                        Sequence.asked += 1
                raise IndexError
        kept = [Sequence()]
        for _ in range(3):
            items = iter(kept[0])
            told.append(next(items, "ended"))
        other = [Sequence() for _ in range(20)]
        class Three:
            def __getitem__(self, index):
                if index > 2: raise IndexError
                return index
        items = iter(Three())
        result = [told, type(kept[0]).__name__, list(Three()), [next(items), next(items), list(items), next(items, None)]]
        """,
        [["the iterator is at work", "ended"] * 3, "Sequence", [0, 1, 2], [0, 1, [2], None]],
    ),
    "a __getitem__ that a class had": (
        """
        def make(tag):
            def get(self, index): return tag
            return get
        def read(item): return item[0]
        told = []
        def change(): del Changed.__getitem__
        def exchange(): Changed.__getitem__ = make("new")
        def change_base(): Base.__getitem__ = make("new")
        for change in (change, exchange, change_base):
            class Base: pass
            class Changed(Base): pass
            for n in range(1500):
                Changed.n = n
                Changed().n
            (Base if change is change_base else Changed).__getitem__ = make("old")
            item = Changed()
            for n in range(200):
                read(item)
            change()
            others = [make("another's") for n in range(50)]
            try:
                told.append(read(item) in ("old", "new"))
            except TypeError:
                told.append(True)
        result = told
        """,
        [True, True, True],
    ),
    "a dictionary of attributes that is exchanged while a value is stored": (
        """
        class Item: pass
        class Ending:
            def __del__(self):
                new = {}
                spare = [{} for _ in range(400)]
                del spare  # the interpreter keeps as many as it does
                item.__dict__ = new
                kept.extend((mark, mark, mark) for _ in range(400))
        def put(obj, value):
            obj.x = value
        mark, kept = ["mark"], []
        item = Item()
        for n in range(40):
            setattr(item, f"n{n}", n)
        for n in range(200):
            put(item, n)
        put(item, Ending())
        put(item, 5)
        put(item, 6)
        result = [len(kept), all(each is mark for three in kept for each in three), vars(item)]
        """,
        [400, True, {"x": 6}],
    ),
    "an iterator of itertools that is asked by what it asks": (
        """
        import collections, copy, itertools
        class Asking:
            def __init__(self): self.asked = 0
            def __iter__(self): return self
            def __next__(self):
                self.asked += 1
                if self.asked == 1:
                    try:
                        next(iterator, None)
                    except (RuntimeError, ValueError) as error:
                        told.append(str(error))
                    kept.extend([[0] * 5 for _ in range(50)])
                    return 1
                raise StopIteration
        class Asked:
            def __iter__(self): return self
            def __next__(self): return 5
        class Number:
            def __index__(self):
                try:
                    next(iterator, None)
                except ValueError as error:
                    told.append(str(error))
                return 2
        def pairs(): return map(lambda *both: both, Asking(), Asked())
        ways = [
            itertools.chain, itertools.chain.from_iterable, itertools.cycle, itertools.pairwise,
            lambda items: itertools.chain.from_iterable([items]), lambda items: itertools.islice(items, 9), lambda items: itertools.batched(items, 3),
            lambda items: itertools.chain([], items), lambda items: itertools.islice(items, 5, 9), lambda items: copy.copy(itertools.chain(items)),
            lambda items: itertools.zip_longest(items, items), lambda items: type("C", (itertools.chain,), {})(items),
        ]
        kept, told = [], []
        for make in ways:
            iterator = make(pairs())
            told.append(next(iterator, None) is not told)
        iterator = collections.Counter(a=Number(), b=2).elements()
        elements = list(iterator)
        asking = Asking()
        for _ in range(4):
            asking.asked = 0
            iterator = itertools.zip_longest(asking, Asked(), Asked())
            next(iterator, None)
        result = [elements, type(asking).__name__]
        """,
        [["a"], "Asking"],
    ),
    "a number or a total that an iterator of itertools adds to": (
        """
        import itertools
        class Number:
            once = True
            def __add__(self, other):
                if Number.once:
                    Number.once = False
                    for _ in range(3):
                        kept.append(type(next(iterator)))
                return NotImplemented
        class Other:
            def __radd__(self, other):
                told.append(type(other).__name__)
                return Number()
            def __iter__(self): return self
            def __next__(self): return Other()
        kept, told = [], []
        for make in (lambda: itertools.accumulate(Other(), initial=Number()), lambda: itertools.accumulate([Number()] + [Other()] * 5)):
            Number.once, iterator = True, make()
            next(iterator)
            next(iterator)
        class Counted:
            def __add__(self, other):
                if not told[9:]:
                    told.append("")
                    try:
                        items.append(next(iterator))
                    except ValueError:
                        pass
                return Counted()
            def __index__(self): return 1
            __float__ = __index__
        items = []
        iterator = itertools.count(Counted(), 1)
        items.append(next(iterator))
        items.append(next(iterator))
        others = [Counted() for _ in range(9)]
        result = [sorted(set(told) - {""}), sorted(type(each).__name__ for each in items)[0]]
        """,
        [["Number"], "Counted"],
    ),
    "iterators of itertools are what Python makes of them": (
        """
        from itertools import *
        import collections, copy
        class Own(chain): pass
        class Big(int):
            def __add__(self, other): return Big(int(self) + 2 * other)
        it, told = chain(map(int, ["1", "x", "2"])), []
        while len(told) < 3:
            try:
                told.append(next(it))
            except ValueError:
                told.append("error")
        one = chain([1, 2], [3])
        next(one)
        refused = []
        for wrong in (lambda: islice(5, 2), lambda: islice([1]), lambda: list(chain(5)), lambda: count("a"), lambda: batched([1], 0),
                      lambda: zip_longest(1), lambda: super(islice, type("C", (islice,), {})).__new__(type("C", (islice,), {}), [1], 1)):
            try:
                wrong()
            except (TypeError, ValueError) as error:
                refused.append(type(error).__name__)
        result = [
            [list(copy.copy(one)), list(one)], told, refused, [type(each) is cls for each, cls in ((it, chain), (cycle(""), cycle), (count(), count))],
            [*chain.from_iterable(map(list, ("ab", "c")))], [*islice(cycle("ab"), 3)], [*pairwise("abc")], [*batched("abc", 2)],
            [*zip_longest("ab", map(int, "1"), fillvalue=0)], [*accumulate([1, 2], initial=3)], [*accumulate([3, 1, 5], max)], [*accumulate("ab")],
            [*islice(count(3, 2), 2)], repr(count(1, 2)), [*islice(count(Big(1)), 3)], [*Own([1], map(int, "2"))], type(Own.from_iterable([])) is Own,
            type(collections.Counter("a").elements()) is chain,
        ]
        """,
        [
            [[2, 3], []], [1, "error", 2], ["TypeError", "TypeError", "TypeError", "TypeError", "ValueError", "TypeError", "TypeError"],
            [True, True, True], ["a", "b", "c"], ["a", "b", "a"], [["a", "b"], ["b", "c"]], [["a", "b"], ["c"]],
            [["a", 1], ["b", 0]], [3, 4, 6], [3, 3, 5], ["a", "ab"], [3, 5], "count(1, 2)", [1, 3, 5], [1, 2], True, True,
        ],
    ),
    "callbacks of a future that go while they are compared": (
        """
        import asyncio
        class Going:
            def __call__(self, future): pass
            def __eq__(self, other):
                if armed:
                    armed.clear()
                    future.remove_done_callback(Same())
                    kept.extend([[0] * 5 for _ in range(50)] + [Going() for _ in range(5)])
                return NotImplemented
        class Same:
            def __eq__(self, other): return True
        class Told:
            def __eq__(self, other):
                told.append(type(other).__name__)
                return True
        armed, kept, told, called = [], [], [], []
        async def main():
            global future
            for others in ([], [print]):
                future = asyncio.get_running_loop().create_future()
                for each in others:
                    future.add_done_callback(each)
                future.add_done_callback(Going())
                for each in others:
                    future.remove_done_callback(each)
                armed.append(1)
                future.remove_done_callback(Told())
            future.add_done_callback(called.append)
            future.add_done_callback(lambda future: called.append("function"))
            told.append(future.remove_done_callback(called.append))
            task = asyncio.create_task(asyncio.sleep(0, 7))
            going = Going()
            task.add_done_callback(going)
            told.append(task.remove_done_callback(going))
            future.set_result(1)
            return await task
        result = [await main(), told, called]
        """,
        [7, ["Going", "Going", 1, 1], ["function"]],
    ),
    "an array that is emptied by the file it is written to": (
        """
        import array
        told = []
        class File:
            def write(self, given):
                told.append(given.count(65) == len(given))
                try:
                    del values[:]
                    kept.append(bytes(399_000))
                except BufferError:
                    pass
        kept = []
        values = array.array("b", b"A" * 400_000)
        values.tofile(File())
        result = told
        """,
        [True] * 7,
    ),
    "a buffer that goes while its view is hashed": (
        """
        class Buffer(bytearray):
            def __hash__(self):
                try:
                    view.release(); first.release()
                    self.clear()
                except BufferError:
                    told.append("kept")
                return 1
        told = []
        first = memoryview(Buffer(3_000_000))
        view = first.toreadonly()
        plain = memoryview(b"abc")
        told.append(hash(view) == hash(bytes(3_000_000)))
        told.append(hash(plain) == hash(b"abc"))
        plain.release()
        told.append(hash(plain) == hash(b"abc"))
        result = told
        """,
        ["kept", True, True, True],
    ),
    "a parser that is made from another one": (
        """
        import pyexpat
        parser = pyexpat.ParserCreate()
        child = parser.ExternalEntityParserCreate(None)
        del parser
        kept = [bytes(n) for n in range(3_000)]
        try:
            child.Parse(b"<!DOCTYPE a [<!ENTITY e 'y'>]><a>&e;</a>", True)
        except pyexpat.ExpatError:
            pass
        result = len(kept)
        """,
        3_000,
    ),
    "a dictionary that goes while it is written as JSON": (
        """
        import json
        class Encoder(json.JSONEncoder):
            def default(self, obj):
                outer.clear()
                kept.append(["x" * 40 for _ in range(400)])
                return 1
        kept = []
        outer = [{f"k{n}": set() for n in range(50)}]
        result = [json.dumps(outer, cls=Encoder, check_circular=False)[:20], json.dumps({"a": [1, {}]}, check_circular=False)]
        """,
        ['[{"k0": 1, "k1": 1, ', '{"a": [1, {}]}'],
    ),
    "a property that is initialized again while it runs": (
        _CALLED + """
class Property(property): pass
class Same(property):
    def __new__(cls, *arguments):
        return made[-1] if made else property.__new__(cls)
made = []
for call in (searching, sorting):
    one, same = Property(call(), call()), Same(call())
    made.append(same)
    class Owner:
        value, other = one, same
    def empty():
        for again in (lambda: Property.__init__(one, None), lambda: Same(None)):
            try:
                again()
            except TypeError as error:
                told.append(str(error)) if str(error) not in told else None
    attempt(lambda: Owner().value)
    attempt(lambda: Owner().other)
    attempt(setattr, Owner(), "value", 1)
    made.clear()
class Own(property):
    def __init__(self, get, set=None):
        super().__init__(get, set, doc="own")
class Plain:
    value = Own(lambda self: 7)
    plain = property(lambda self: 8).setter(lambda self, value: told.append(value))
Plain().plain = 10
result = [told, Plain().value, Plain().plain]
""",
        [["a property is initialized once; make another one", *["refused"] * 3, 10], 7, 8],
    ),
    "a handler that is taken out of the parser while it runs": (
        _CALLED + """
import pyexpat
parser = pyexpat.ParserCreate()
def empty():
    parser.EndElementHandler = None
parser.EndElementHandler = searching()
result = parser.Parse("<a/>", True)
""",
        1,
    ),
    "what a comparing function is given, which it exchanges": (
        _CALLED + """
key = functools.cmp_to_key(bisect.bisect_left)
one, other = key([Item() for _ in range(300)]), key(5)
def empty():
    one.obj = None
attempt(lambda: one < other)
result = sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))
""",
        [3, 2, 1],
    ),
    "keyword defaults that are taken away while a key compares": (
        """
        class Key(str):
            def __hash__(self):
                return hash("x")
            def __eq__(self, other):
                f.__kwdefaults__ = None
                kept.extend(bytearray(2_000) for _ in range(200))
                return False
        kept, told = [], []
        def f(*, x=1, y=2):
            return x, y
        f.__kwdefaults__ = {Key("z"): 1, "x": 3}
        before = len(kept)
        try:
            f()
        except TypeError as error:
            told.append(str(error))
        told += [f(y=4), len(kept) - before]
        try:
            f.__kwdefaults__ = {(): 1}
        except TypeError as error:
            told.append(str(error))
        result = told
        """,
        ["f() missing 1 required keyword-only argument: 'y'", [3, 4], 0, "the keys of __kwdefaults__ must be names"],
    ),
    "a bytearray that is emptied while it is searched": (
        """
        told = []
        def empty():
            if type(emptied) is memoryview:
                emptied.release()
            buffer.clear()
            kept.append(bytes(39_000))
        class Number:
            def __index__(self):
                empty()
                return 0
        class Separator(bytes):
            def __len__(self):
                empty()
                return 1
        class Shown:
            def __repr__(self):
                empty()
                return "x"
        def parts():
            empty()
            yield b"b"
            yield b"c"
        kept = []
        ways = [
            lambda: buffer.count(b"A", Number()), lambda: buffer.find(b"A", 0, Number()), lambda: buffer.rfind(b"A", Number()),
            lambda: buffer.index(b"A", Number()), lambda: buffer.rindex(b"A", Number()), lambda: Number() in buffer,
            lambda: buffer.startswith(b"A", Number()), lambda: buffer.endswith((b"A",), Number()), lambda: buffer.count(Number()),
            lambda: buffer.hex(Separator(b":"), 4), lambda: buffer % Shown(), lambda: buffer.join(parts()),
            lambda: bytearray.__mod__(buffer, (Shown(),)), lambda: memoryview(buffer).hex(Separator(b":"), 4),
            lambda: emptied.hex(Separator(b":")),
        ]
        for way in ways:
            emptied = None
            buffer = bytearray(b"A" * 39_000 + b"%a")
            if way is ways[-1]:
                emptied = memoryview(buffer)
            try:
                way()
                told.append("went on")
            except (BufferError, TypeError):
                pass
        buffer = bytearray(b"abca%a")
        class Own(bytearray): pass
        own = Own(b"ab,c")
        result = [
            told, b"c" in buffer, 99 in buffer, buffer.find(b"a", 1), buffer.rindex(97), buffer.count(b"a", 0, 3), (buffer % 5).decode(),
            buffer.startswith((b"x", b"a")), bytearray(b",").join([b"a", b"b"]).decode(), own.hex(sep=":"), b"," in own,
            memoryview(own).hex(":", bytes_per_sep=2), own.index(b"c"), (b"%a" % 1).decode(), 5 in bytearray(b"\\x05"),
        ]
        buffer.clear()
        try:
            bytearray.find(5, b"a")
        except TypeError:
            result.append("TypeError")
        """,
        [[], True, True, 3, 5, 1, "abca5", True, "a,b", "61:62:2c:63", True, "6162:2c63", 3, "1", True, "TypeError"],
    ),
    "a file of a time zone with an index behind its types": (
        """
        import io, struct, zoneinfo
        from datetime import datetime
        def compiled(kinds):
            head = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 2, 1, 4)
            return io.BytesIO(head + struct.pack(">2l", 0, 1000) + bytes(kinds) + struct.pack(">lbb", 3600, 0, 0) + b"ABC" + bytes(1))
        told = []
        for kinds in ((0, 0), (1, 1), (0, 200)):
            try:
                told.append(datetime(1990, 1, 1, tzinfo=zoneinfo.ZoneInfo.from_file(compiled(kinds))).tzname())
            except ValueError as error:
                told.append(str(error)[:45])
        result = told
        """,
        ["ABC", *["the file of the time zone names a type that i"] * 2],
    ),
    "a count that goes while one is added to it": (
        """
        import collections
        class Number:
            def __init__(self):
                self.held = [0] * 50
            def __add__(self, other):
                counter.clear()
                kept.extend(bytearray(40) for _ in range(2_000))
                return NotImplemented
        kept, told = [], []
        for given in (["a"], "a"):
            counter = collections.Counter(a=Number())
            try:
                counter.update(given)
            except TypeError as error:
                told.append(str(error)[:26])
        counter = collections.Counter("abca")
        counter.update(["a", "z"]); counter.update(b=2); counter.update("cc")
        result = [told, sorted(counter.items()), collections.Counter(n % 3 for n in range(7)).most_common(1)]
        """,
        [["unsupported operand type(s"] * 2, [["a", 3], ["b", 3], ["c", 3], ["z", 1]], [[0, 3]]],
    ),
    "a deque that is emptied while it is searched": (
        """
        import collections
        class Number:
            def __index__(self):
                deque.clear()
                kept.extend([0] * 50 for _ in range(100))
                return 0
        class Item:
            def __eq__(self, other):
                deque.clear()
                kept.extend([0] * 300 for _ in range(300))
                return NotImplemented
        kept, told = [], []
        for made, bounds in ((Item, ()), (object, (Number(), 300)), (object, (0, Number()))):
            deque = collections.deque([made() for _ in range(300)])
            try:
                deque.index(1, *bounds)
            except (RuntimeError, ValueError) as error:
                told.append(type(error).__name__)
        deque = collections.deque("abcabc")
        try:
            deque.index("a", 4)
        except ValueError as error:
            told.append(str(error))
        result = [told, deque.index("c"), deque.index("c", 3), deque.index("a", -4, -1)]
        """,
        [["RuntimeError", "ValueError", "ValueError", "'a' is not in deque"], 2, 5, 3],
    ),
    "a list of an alias that is emptied while it is shown": (
        """
        class Shown:
            def __repr__(self):
                items.clear()
                return "shown"
        items = [Shown() for _ in range(50)]
        text = repr(dict[items, items])
        result = [text[:11], repr(list[int, str]), repr(dict[str, list[int]]), repr(next(iter(tuple[[1], 2])))[0]]
        """,
        ["dict[[shown", "list[int, str]", "dict[str, list[int]]", "*"],
    ),
    "what is taken out of its container while it is shown": (
        """
        import collections, datetime, time, types
        class Part:
            def __repr__(self):
                empty()
                kept.extend([[0] * 5 for _ in range(100)] + [bytearray(40) for _ in range(100)])
                return "part"
            def __getattr__(self, name):
                repr(self)
                raise AttributeError(name)
            def __call__(self): pass
        class Zone(datetime.tzinfo):
            __repr__ = Part.__repr__
            def utcoffset(self, when): pass
        made = (
            lambda: slice(Part(), [[]], {}), lambda: types.MethodType(Part(), [[]]), lambda: int | dict[Part(), Part()],
            lambda: time.struct_time([Part()] + [[n] for n in range(8)]), lambda: datetime.time(tzinfo=Zone()),
        )
        kept, told = [], []
        for make in made:
            items = [make()]
            def empty():
                items.clear()
            told.append(repr(items)[:9])
            users = collections.UserList([make()])
            def empty():
                users.data.clear()
            told.append(str(users) != "")
            namespace = types.SimpleNamespace(a=make())
            def empty():
                namespace.__dict__.clear()
            told.append(str(namespace)[:12])
            for kind in (Exception, KeyError, SyntaxError, ImportError, SystemExit, AttributeError):
                for show in (str, repr, lambda error: f"{error}"):
                    error = kind(make())
                    def empty():
                        error.args = ()
                        error.msg = error.name = error.obj = error.code = None
                    told.append(show(error) != "")
        empty = int
        plain = [slice(1, None, 2), [].append, int | None, datetime.time(1, 2), time.gmtime(0)]
        result = [sorted({text for text in told if text is not True}), repr(plain[0]), repr(plain[2:4]), str(plain[4])[:27]]
        """,
        [
            ["[<bound m", "[datetime", "[int | di", "[slice(pa", "[time.str", "namespace(a="],
            "slice(1, None, 2)", "[int | None, datetime.time(1, 2)]", "time.struct_time(tm_year=19",
        ],
    ),
    "a reader of rows that is asked by the lines it reads": (
        """
        import csv, io
        told = []
        class Lines:
            asked = 0
            def __iter__(self):
                return self
            def __next__(self):
                Lines.asked += 1
                if Lines.asked == 2:
                    try:
                        next(rows.reader if type(rows) is csv.DictReader else rows)
                    except ValueError as error:
                        told.append(str(error))
                return '"a\\n' if Lines.asked % 2 else 'x"\\n'
        for made in (csv.reader, lambda lines: csv.DictReader(lines, ["n"])):
            Lines.asked, rows = 0, made(Lines())
            next(rows)
        text = 'a;b\\n1;"2\\n3"\\n'
        ways = (io.StringIO(text), text.splitlines(True), tuple(text.splitlines(True)), (line for line in text.splitlines(True)))
        read = [list(csv.reader(lines, delimiter=";")) for lines in ways]
        result = [told, all(rows == read[0] for rows in read), read[0], list(csv.DictReader(io.StringIO(text), delimiter=";"))]
        """,
        [["generator already executing"] * 2, True, [["a", "b"], ["1", "2\n3"]], [{"a": "1", "b": "2\n3"}]],
    ),
    "a proxy whose object goes while it is compared": (
        """
        import weakref
        class Compared:
            def __init__(self):
                self.held = [0] * 50
            def __eq__(self, other):
                global owner
                owner = None
                kept.extend([0] * 50 for _ in range(100))
                return NotImplemented
            __lt__ = __eq__
        kept, told = [], []
        for compare in (lambda p: p == p, lambda p: p == 5, lambda p: 5 == p, lambda p: p < p):
            owner = Compared()
            try:
                told.append(compare(weakref.proxy(owner)))
            except TypeError:
                told.append("TypeError")
        class Number:
            def __eq__(self, other): return other == 7
        number = Number()
        proxy = weakref.proxy(number)
        told += [proxy == 7, proxy != 7, proxy == 8]
        del number
        try:
            proxy == 7
        except ReferenceError:
            told.append("ReferenceError")
        result = told
        """,
        [True, False, False, "TypeError", True, False, False, "ReferenceError"],
    ),
    "a traceback that is taken out of its exception while C code stands for `__exit__`": (
        """
        import asyncio, functools, sys, types
        from typing import NamedTuple
        other = None
        try:
            1 / 0
        except ZeroDivisionError as error:
            other = error.__traceback__
        def store(error): error.__traceback__ = None
        def throw(error):
            def waits(): yield
            waiting = waits()
            next(waiting)
            try:
                waiting.throw(type(error), error, other)
            except Away:
                pass
        class Away(Exception):
            def __iter__(self):
                way(self)
                return iter([])
        class Enters:
            def __enter__(self): return self
        class Gives:
            def __get__(self, instance, owner=None): return map
        class Named(NamedTuple):
            a: int = 1
            __exit__ = map
            def __enter__(self): return self
        class Meta(type): pass
        class Governed(Enters, metaclass=Meta): __exit__ = map
        class Stored(Enters): pass
        Stored.__exit__ = map
        class Given(Enters): pass
        setattr(Given, "__exit__", map)
        makers = [
            type("A", (Enters,), {"__exit__": map}), type("B", (Enters,), {"__exit__": property(lambda self: map)}),
            type("C", (Enters,), {"__exit__": Gives()}), Named, Governed, Stored, Given,
            type("D", (Enters,), {"__exit__": staticmethod(map)}),
            types.new_class("F", (Enters,), {}, lambda body: body.update(__exit__=map)),
        ]
        told = set()
        for maker in makers:
            for way in (store, lambda error: error.with_traceback(None), throw):
                try:
                    with maker():
                        raise Away
                except TypeError as error:
                    told.add(str(error))
        class Waits:
            __aexit__ = map
            async def __aenter__(self): return self
        try:
            async with Waits():
                raise Away
        except TypeError as error:
            told.add(str(error))
        try:
            class Slot(Enters): __slots__ = ("__exit__",)
        except TypeError as error:
            told.add(str(error))
        result = sorted(told)
        """,
        ["'__exit__' cannot be a slot here", "'traceback' object is not iterable"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_c_code_reads_no_memory_that_was_freed_or_is_another_s(name: str) -> None:
    source, result = HELD[name]
    assert run_sealed(source, spoil_freed=True) == result


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older versions have no tokenizer to ask")
def test_a_tokenizer_is_not_entered_by_what_it_reads() -> None:
    assert run_sealed(_TOKENIZER, spoil_freed=True) == ["generator already executing"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_c_code_works_with_stays(name: str) -> None:
    source, result = PROGRAMS[name]
    assert run_sealed(source) == result


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_initialized_again_is_no_base(name: str) -> None:
    assert run_sealed(REFUSED[name]) == "'Struct' cannot be a base class here; keep one in "[:50]
