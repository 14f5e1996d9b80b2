"""Thirty programs of one session, for `sessions`: what a session can hold, and what may differ by chance.

Variables whose names begin with `own_` depend on the seed and the clock of their session; all others are the same in
every session. The upstream server is the one of `places`.
"""

from __future__ import annotations

SHOW = """
import collections, itertools, json

def shown(value, depth=0):
    if depth > 8:
        return repr(value)
    kind = type(value).__name__
    if isinstance(value, dict):
        return [kind, *([shown(key, depth + 1), shown(each, depth + 1)] for key, each in value.items())]
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return [kind, *(shown(each, depth + 1) for each in value)]
    if kind in ('Account', 'Saver'):
        return [kind, shown(value.__dict__, depth + 1)]
    return repr(value)

def everything():
    return {name: json.dumps(shown(value)) for name, value in sorted(globals().items()) if name not in HIDDEN}

HIDDEN = {'HIDDEN', 'before', 'result'}
"""
"""Defines what gives every variable of the session with all that is in it."""

_ALL = r"""
import random, uuid, time, datetime, secrets
own_drawn = [random.random() for _ in range(3)]
own_when = [time.time(), time.monotonic(), datetime.datetime.now()]
---
import os
own_ids = [uuid.uuid4(), str(uuid.uuid4())]
own_token = [secrets.token_hex(8), os.urandom(4), random.SystemRandom().random()]
---
random.seed(5)
drawn = [random.random(), random.choice('abcdef'), random.sample(range(100), 5)]
dice = random.Random(7)
rolled = [dice.randint(1, 6) for _ in range(10)]
---
rolled += [dice.randint(1, 6) for _ in range(5)]
cards = list(range(20))
random.shuffle(cards)
own_dice = random.Random()
own_rolled = own_dice.getrandbits(64)
---
words = {'pear', 'fig', 'plum', 'kiwi', 'lime', 'date'}
frozen = frozenset(word[::-1] for word in words)
in_order = list(words)
mixed = {('a', 1), 'b', 3.5, b'c', frozenset({1})}
---
import asyncio
seen = await asyncio.gather(*[tools.counter.look(n=n) for n in range(6)])
---
own_added = [await tools.counter.add(run=own_writer, n=n) for n in range(3)]
---
write_file('a.txt', 'one\n')
with open('b.txt', 'w') as file:
    file.write('x' * 10)
read = read_file('a.txt')
---
import pathlib
with open('a.txt', 'a') as file:
    file.write('two\n')
lines = pathlib.Path('a.txt').read_text().splitlines()
names = sorted(os.listdir('.'))
---
tree = {'left': {'leaf': [1, 2, {'deep': (3, 4)}]}, 'right': [[], {}, set()]}
shared = tree['left']['leaf']
---
shared.append({'later': [5]})
tree['right'][1]['key'] = shared
same = tree['right'][1]['key'] is shared
---
from dataclasses import dataclass
from enum import Enum

class Account:
    rate = 0.5
    def __init__(self, owner, sum=0):
        self.owner, self.sum = owner, sum
    def add(self, sum):
        self.sum += sum
        return self

class Saver(Account):
    def add(self, sum):
        return super().add(sum * (1 + self.rate))

@dataclass
class Point:
    x: int
    y: int = 2

class Colour(Enum):
    RED = 1
    BLUE = 2
---
accounts = [Account('Ada').add(3), Saver('Bob', 1).add(4)]
points = {Colour.RED: Point(1), Colour.BLUE: Point(3, 4)}
---
accounts[1].rate = 0.25
accounts[1].add(8)
points[Colour.RED].x = 9
---
def squares(most):
    total = 0
    for n in range(most):
        got = yield n * n
        total += got or 0
    return total

fresh, half, done = squares(5), squares(5), squares(2)
taken = [next(half), half.send(10)]
rest = list(done)
---
taken += [half.send(3)]
pairs = zip('abc', squares(10))
first_pair = next(pairs)
mapped = map(str, half)
---
from_map = next(mapped)
numbered = enumerate(words)
skipped = next(numbered)
window = itertools.islice(itertools.count(7), 3)
---
def counter(step):
    count = 0
    def more():
        nonlocal count
        count += step
        return count
    return more

by_two, by_five = counter(2), counter(5)
counts = [by_two(), by_two(), by_five()]
---
import functools

@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

fibs = [fib(30), by_two()]
add_three = functools.partial(lambda a, b: a + b, 3)
later = [lambda n=n: n * n for n in range(3)]
---
failing = ['began']
failing.append(by_five())
raise ValueError('on purpose')
---
try:
    await call_tool('counter.' + 'nothing', {})
except ToolError as error:
    refused = str(error)
try:
    {}['missing']
except KeyError as error:
    kept_error = error
---
import contextlib

@contextlib.contextmanager
def held(log):
    log.append('in')
    try:
        yield log
    finally:
        log.append('out')

held_log = []
with held(held_log) as inner:
    inner.append('within')
---
saved = save_skill('tripled', 'def tripled(n: int) -> int:\n    return 3 * n\n', description='Three times n.')['name']
---
from skills import tripled
by_skill = [tripled(14), skills.tripled(n=2)]
---
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
import heapq, re, hashlib
tally = Counter('mississippi')
queue = deque([1, 2, 3], maxlen=3)
queue.append(4)
by_key = defaultdict(list)
by_key['a'].append(Fraction(1, 3))
heap = [5, 1, 4]
heapq.heapify(heap)
exact = Decimal('0.1') * 3
digest = hashlib.sha256(b'x').hexdigest()
Pair = namedtuple('Pair', 'a b')
pair = Pair(1, Pair(2, 3))
found = re.compile('s+').findall('mississippi')
---
import sqlite3
database = sqlite3.connect(':memory:')
database.execute('create table t (a, b)')
database.executemany('insert into t values (?, ?)', [(n, str(n)) for n in range(5)])
rows = database.execute('select * from t where a > 1').fetchall()
---
database.execute('delete from t where a = 2')
left = database.execute('select sum(a) from t').fetchone()
cursor = database.execute('select a from t order by a')
first_row = cursor.fetchone()
own_sql = database.execute('select random()').fetchone()
---
await asyncio.sleep(0.02)
own_later = time.time() - own_when[0]
del shared, first_pair
read = None
---
things = [object(), points[Colour.BLUE], accounts[0]]
own_hashes = [hash(things[0]), hash(things[2])]
own_addresses = list(map(id, things))
---
used = [list(fresh), list(mapped), list(pairs), list(numbered), list(window), list(cursor), by_two(), by_five()]
used += [fib.cache_info().hits, add_three(4), [each() for each in later], tripled(2), dice.random(), random.random()]
used += [accounts[1].add(4).sum, next(done, 'exhausted'), len(queue), sorted(heap), read_file('a.txt')]
own_added += [await tools.counter.add(run=own_writer, n=len(own_added))]
own_used = [own_dice.random(), uuid.uuid4()]
"""
PROGRAMS = tuple(_ALL.split("---"))
