"""Programs that compute, as agents write them: what code costs under the dialect beside plain CPython.

Each has a result, and is repeated as often as makes it take some ten milliseconds.
"""

from __future__ import annotations

import textwrap

PROGRAMS = {
    "loops": """
        total = 0
        for i in range(300):
            for j in range(1000):
                if (i ^ j) & 1:
                    total += i * j % 7
        result = total
        """,
    "private attributes": """
        class Account:
            _opened = 0
            def __init__(self, owner):
                self._owner = owner
                self._balance = 0
                self.__log = []
                Account._opened += 1
            def deposit(self, amount):
                self._balance += amount
                self.__log.append(amount)
                return self
            @property
            def balance(self):
                return self._balance
            def _fee(self):
                return self._balance // 100
            def settle(self):
                self._balance -= self._fee()
                return len(self.__log)
        total = 0
        for i in range(3000):
            account = Account(i)
            for j in range(20):
                account.deposit(j)
            account.settle()
            total += account.balance
        result = total
        """,
    "operators of a class": """
        class Vector:
            __slots__ = ("x", "y")
            def __init__(self, x, y):
                self.x, self.y = x, y
            def __add__(self, other):
                return Vector(self.x + other.x, self.y + other.y)
            def __mul__(self, k):
                return Vector(self.x * k, self.y * k)
            def __eq__(self, other):
                return self.x == other.x and self.y == other.y
        v = Vector(0, 0)
        for i in range(60000):
            v = v + Vector(i, 1) * 2
        result = v == Vector(1, 1)
        """,
    "dictionaries": """
        counts = {}
        for i in range(200000):
            key = i * 7919 % 1009
            counts[key] = counts.get(key, 0) + 1
        groups = {}
        for key, n in counts.items():
            groups.setdefault(n, []).append(key)
        result = len(groups)
        """,
    "lists": """
        size = 60000
        sieve = [True] * (size + 1)
        sieve[0:2] = [False, False]
        for i in range(2, int(size ** 0.5) + 1):
            if sieve[i]:
                sieve[i * i :: i] = [False] * len(sieve[i * i :: i])
        primes = [i for i, prime in enumerate(sieve) if prime]
        pairs = 0
        for k in range(1, len(primes)):
            if primes[k] - primes[k - 1] == 2:
                pairs += 1
        rows = [[i * j for j in range(100)] for i in range(300)]
        for row in rows:
            row[0], row[-1] = row[-1], row[0]
        result = pairs
        """,
    "strings": """
        parts = []
        for i in range(40000):
            parts.append(f"{i:05d}:{i % 7}")
        text = ",".join(parts)
        words = text.replace(":", " ").split(",")
        out = ""
        for word in words[:5000]:
            out += word.strip().upper()[::-1]
        lines = ["{:>6}|{name}".format(i, name="x") for i in range(30000)]
        result = len(out) + len(lines)
        """,
    "recursion": """
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        def queens(n, row=0, cols=0, left=0, right=0):
            if row == n:
                return 1
            count = 0
            free = ((1 << n) - 1) & ~(cols | left | right)
            while free:
                bit = free & -free
                free ^= bit
                count += queens(n, row + 1, cols | bit, (left | bit) << 1, (right | bit) >> 1)
            return count
        result = fib(24) + queens(8)
        """,
    "generators": """
        def numbers(n):
            for i in range(n):
                yield i
        def squares(items):
            for item in items:
                yield item * item
        def flatten(tree):
            for node in tree:
                if isinstance(node, list):
                    yield from flatten(node)
                else:
                    yield node
        tree = [[[i, i + 1], [i]] for i in range(8000)]
        result = sum(squares(numbers(120000))) + sum(flatten(tree))
        """,
    "comprehensions": """
        data = list(range(60000))
        a = [x * 2 for x in data if x % 3]
        b = {x: x * x for x in data}
        c = {x % 97 for x in data}
        d = sum(x for row in ([y, y + 1] for y in data) for x in row)
        result = len(a) + len(b) + len(c) + d
        """,
    "sorting with keys": """
        import random
        generator = random.Random(5)
        people = [{"name": str(generator.randrange(10**6)), "age": generator.randrange(90)} for _ in range(20000)]
        by_age = sorted(people, key=lambda person: (-person["age"], person["name"]))
        people.sort(key=lambda person: person["name"][::-1])
        result = by_age[0]["age"], max(people, key=lambda person: len(person["name"]))["age"]
        """,
    "regular expressions": """
        import re
        text = " ".join(f"user{i}@host{i % 13}.org +{i:07d}" for i in range(8000))
        mail = re.compile(r"(?P<user>\\w+)@(?P<host>[\\w.]+)")
        hosts = {}
        for match in mail.finditer(text):
            host = match.group("host")
            hosts[host] = hosts.get(host, 0) + 1
        result = len(re.sub(r"\\d+", lambda m: str(len(m.group())), text)), len(hosts)
        """,
    "json": """
        import json
        rows = [{"id": i, "tags": ["a", "b", str(i)], "score": i / 7, "deep": {"x": [None, True, i]}} for i in range(4000)]
        text = json.dumps(rows)
        back = json.loads(text)
        result = sum(row["deep"]["x"][2] for row in back), len(json.dumps(back, sort_keys=True, indent=1))
        """,
    "decimal": """
        from decimal import Decimal, getcontext
        getcontext().prec = 40
        total = Decimal(0)
        for i in range(1, 40000):
            total += Decimal(1) / Decimal(i) ** 2
        result = str((total * 6).sqrt())
        """,
    "matrix": """
        def multiply(a, b):
            columns = list(zip(*b))
            return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]
        n = 60
        m = [[(i * j) % 10 for j in range(n)] for i in range(n)]
        for _ in range(3):
            m = multiply(m, m)
            m = [[value % 10 for value in row] for row in m]
        result = m[3][4]
        """,
    "graph search": """
        from collections import deque
        import heapq
        side = 90
        grid = [[(x * y) % 7 for x in range(side)] for y in range(side)]
        def neighbours(x, y):
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                if 0 <= x + dx < side and 0 <= y + dy < side:
                    yield x + dx, y + dy
        costs = {(0, 0): 0}
        heap = [(0, (0, 0))]
        while heap:
            cost, node = heapq.heappop(heap)
            if cost > costs[node]:
                continue
            for near in neighbours(*node):
                new = cost + grid[near[1]][near[0]]
                if new < costs.get(near, 1 << 30):
                    costs[near] = new
                    heapq.heappush(heap, (new, near))
        seen, queue = {(0, 0)}, deque([(0, 0)])
        while queue:
            for near in neighbours(*queue.popleft()):
                if near not in seen:
                    seen.add(near)
                    queue.append(near)
        result = costs[side - 1, side - 1], len(seen)
        """,
    "type tests and exceptions": """
        class Shape:
            def area(self): raise NotImplementedError
        class Square(Shape):
            def __init__(self, side): self.side = side
            def area(self): return self.side ** 2
        count = 0
        for i in range(60000):
            shape = Square(i) if i % 2 else Shape()
            try:
                count += shape.area()
            except NotImplementedError:
                count += isinstance(shape, Square) + (i in (1, 2))
        result = count
        """,
    "random": """
        import random
        generator = random.Random(11)
        tosses = [random.random() for _ in range(20000)]
        dice = [generator.randint(1, 6) for _ in range(12000)]
        deck = list(range(2000))
        for _ in range(3):
            random.shuffle(deck)
        picks = [random.choice(deck) for _ in range(12000)]
        result = len(tosses) + len(dice) + len(picks) + len(random.sample(deck, 200))
        """,
    "sqlite3": """
        import sqlite3
        connection = sqlite3.connect(":memory:")
        connection.execute("create table sales (id integer primary key, region text, amount real)")
        connection.executemany("insert into sales (region, amount) values (?, ?)", [(f"r{i % 7}", i / 3) for i in range(20000)])
        rows = connection.execute("select region, count(*), sum(amount) from sales group by region order by region").fetchall()
        for number in range(2000):
            connection.execute("select amount from sales where id = ?", (number + 1,)).fetchone()
        result = len(rows)
        """,
    "files by open": """
        with open("numbers.csv", "w") as file:
            for i in range(20000):
                file.write(f"{i},{i * i % 97},name {i % 13}\\n")
        totals = {}
        with open("numbers.csv") as file:
            for line in file:
                number, value, name = line.rstrip().split(",")
                totals[name] = totals.get(name, 0) + int(value)
        result = totals["name 3"]
        """,
    "files by read_file and write_file": """
        text = "".join(f"{i},{i * i % 97},name {i % 13}\\n" for i in range(20000))
        write_file("text.csv", text)
        totals = {}
        for line in read_file("text.csv").splitlines():
            number, value, name = line.split(",")
            totals[name] = totals.get(name, 0) + int(value)
        result = totals["name 3"]
        """,
}

_TIMES = {"private attributes": 2, "lists": 8, "recursion": 6, "generators": 2, "random": 3}


def source_of(name: str) -> str:
    """Return a program as it is sent, with its names at the level of the module."""
    once = textwrap.dedent(PROGRAMS[name])
    return f"for again in range({_TIMES.get(name, 1)}):\n{textwrap.indent(once, '    ')}"
