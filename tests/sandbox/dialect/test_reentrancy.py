"""Code that CPython's C code calls back, and that changes meanwhile what this C code works on.

Each program runs in a fork, which a wrong use of memory would end.
"""

from __future__ import annotations

import pytest

from ..sealed import run_sealed

_WAITING_KEYS = """
import collections, functools, ipaddress, random, threading, time, typing
R = random.Random(3)
def wait():
    if R.random() < 0.4:
        time.sleep(0)
class Key:
    def __init__(self, n): self.n = n
    def __hash__(self): wait(); return self.n % 7
    def __eq__(self, other): wait(); return isinstance(other, Key) and self.n == other.n
    def __call__(self): pass
    def __del__(self): wait()
"""
_BY_THREADS = """
wrong = []
def work():
    for _ in range(2000):
        try:
            use(Key(R.randrange(20)))
        except KeyError:
            pass
        except Exception as error:
            wrong.append(error)
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
wrong or "survived"
"""


@pytest.mark.parametrize(
    "source",
    [
        (
            "class T(str):\n    __hash__ = str.__hash__\n    def __eq__(self, other): e.clear(); return False\n"
            "e.findall(T('b')), e.find(T('b')), e.findtext(T('b')), list(e.iter(T('b')))"
        ),
        (
            "class X(ET.Element):\n    __hash__ = None\n    def __eq__(self, other): e.clear(); return False\n"
            "for _ in range(10): e.append(X('x'))\n"
            "try: e.remove(X('z'))\nexcept ValueError: pass"
        ),
        (
            "class I:\n    def __index__(self): e.clear(); return 50\n"
            "try: e[I()] = ET.Element('c')\nexcept IndexError: pass"
        ),
        (
            "class D(ET.Element):\n    def __deepcopy__(self, memo): e.clear(); return ET.Element('x')\n"
            "e[3] = D('d')\ncopy.deepcopy(e)"
        ),
    ],
)
def test_an_element_stands_that_it_is_emptied_while_it_is_used(source: str) -> None:
    filled = "import copy\nimport xml.etree.ElementTree as ET\ne = ET.Element('a')\n"
    filled += "for _ in range(100): e.append(ET.Element('b'))\n"
    assert run_sealed(f"{filled}{source}\n'survived'") == "survived"


def test_a_cache_with_a_bound_stands_keys_that_wait_while_they_are_compared() -> None:
    used = """
use = functools.lru_cache(maxsize=4)(lambda key: (wait(), key)[1])
"""
    counted = """
for n in range(9):
    use(n)
wrong or (use.cache_info().currsize == 4 and "survived")
"""
    assert run_sealed(_WAITING_KEYS + used + _BY_THREADS + counted) == "survived"


@pytest.mark.parametrize("maxsize", ["0", "None"])
def test_a_cache_without_a_ring_stands_keys_that_wait_while_they_are_compared(maxsize: str) -> None:
    used = f"""
use = functools.lru_cache(maxsize={maxsize})(lambda key: (wait(), key)[1])
def forget():
    for _ in range(400):
        use.cache_clear()
        time.sleep(0)
threading.Thread(target=forget).start()
"""
    assert run_sealed(_WAITING_KEYS + used + _BY_THREADS) == "survived"


def test_a_cache_of_the_library_stands_keys_that_wait_while_they_are_compared() -> None:
    used = """
def use(key):
    return typing.Literal[key], typing.List[Key(R.randrange(400))]
"""
    assert run_sealed(_WAITING_KEYS + used + _BY_THREADS.replace("2000", "500")) == "survived"


@pytest.mark.parametrize(
    "use",
    [
        "table[key] = 1; table.move_to_end(key)",
        "table[key] = 1; table.pop(Key(R.randrange(20)), None)",
        "table[key] = 1; table.move_to_end(key, last=False); len(table) > 9 and table.popitem(last=False)",
        "table[key] = 1; del table[Key(R.randrange(20))]",
        "table[key] = 1; table == table.copy(); table | {key: 2}; len(table) > 9 and table.clear()",
    ],
)
@pytest.mark.parametrize("made", ["collections.OrderedDict()", "typing.OrderedDict()"])
def test_an_ordered_dict_stands_keys_that_wait_while_they_are_compared(use: str, made: str) -> None:
    used = f"""
table = {made}
def use(key):
    try:
        {use}
    except RuntimeError:  # it was changed while it was read
        pass
"""
    assert run_sealed(_WAITING_KEYS + used + _BY_THREADS.replace("2000", "300")) == "survived"


_AGAIN = """
import io
seen = []
class Sink:
    closed = False
    def readable(self): return False
    def writable(self): return True
    def seekable(self): return False
    def flush(self): pass
    def write(self, data):
        seen.append(bytes(data))
        try:
            text.write("b" * 10)
            text.flush()
        except RuntimeError as error:
            seen.append("refused")
        return len(data)
text = io.TextIOWrapper(Sink(), "utf-8")
text.write("a" * 1000)
text.flush()
"survived" if seen == [b"a" * 1000, "refused"] else seen
"""
_INITIALIZED_AGAIN = """
import io
class Text(io.TextIOWrapper): pass
class Buffer:
    closed, reads = False, True
    def readable(self): return self.reads
    def writable(self): return not self.reads
    def seekable(self): return False
    def flush(self): pass
    def write(self, data): return len(data)
    def read1(self, size):
        other = Buffer()
        other.reads = False
        try:
            text.__init__(other, "utf-8")
        except RuntimeError:
            return b"refused"
        return b"again"
    def read(self, size=-1): return b""
text = Text(Buffer(), encoding="utf-8")
"survived" if text.read(7) == "refused" else "read"
"""


@pytest.mark.parametrize("source", [_AGAIN, _INITIALIZED_AGAIN])
def test_a_text_stream_is_not_entered_again_by_its_buffer(source: str) -> None:
    assert run_sealed(source) == "survived"
