"""Any value a guest can make comes out as valid JSON, exactly where JSON can hold it and with a note where it cannot."""

from __future__ import annotations

import array
import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import json
import math
import pathlib
import re
import sys
import time
import uuid
import zoneinfo
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealab.sandbox.dialect import names
from sealab.sandbox.report import values
from sealab.sandbox.report.values import render
from sealab.sandbox.wire import frames, result_paths


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def through_json(rendered: values.Rendered) -> Any:
    """What a client reads, after the frame's own encoding."""
    return strict(json.dumps(rendered.json, ensure_ascii=False, allow_nan=False).encode().decode())


def shown(value: object, **bounds: int) -> Any:
    """The JSON of a value that needs no note."""
    rendered = render(value, **bounds)
    assert rendered.notes == {}
    return through_json(rendered)


class Point(NamedTuple):
    x: int
    y: float = 0.5


@dataclasses.dataclass
class Order:
    name: str
    lines: list[Point] = dataclasses.field(default_factory=list)


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


def the_same_in_each_process(value: object) -> str:
    """Return the name of a case; the `repr` of a set has another order in each process."""
    return repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({3, 1, 2}, [1, 2, 3]),
        ({"b", "a"}, ["a", "b"]),
        ({2.5, True, -1}, [-1, True, 2.5]),
        ({(2, "a"), (1, "b"), (10, "a")}, [[1, "b"], [2, "a"], [10, "a"]]),
        (frozenset({b"b".decode(), "c"}), ["b", "c"]),
        ((1, (2, 3)), [1, [2, 3]]),
        (range(3), [0, 1, 2]),
        (collections.deque([1, 2], maxlen=5), [1, 2]),
        (array.array("i", [1, 2]), [1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.items(), [["a", 1]]),
        (collections.OrderedDict(a=1).values(), [1]),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (Point(1), {"x": 1, "y": 0.5}),
        (collections.namedtuple("Row", "id name")(1, "a"), {"id": 1, "name": "a"}),  # noqa: PYI024 - agents write this one
        (Order("a", [Point(1)]), {"name": "a", "lines": [{"x": 1, "y": 0.5}]}),
        (Colour.RED, "red"),
        (Colour.PAIR, [1, 2]),
        (Level.HIGH, 3),
        (Rights.READ | Rights.WRITE, 3),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC), "2024-02-29T01:02:03.000004+00:00"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(0), "PT0S"),
        (dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5), "P1DT2H3M4.5S"),
        (dt.timedelta(days=2), "P2D"),
        (dt.timedelta(seconds=-90), "-PT1M30S"),
        (dt.UTC, "UTC"),
        (decimal.Decimal("1.50"), "1.50"),
        (decimal.Decimal("NaN"), "NaN"),
        (fractions.Fraction(3, 4), "3/4"),
        (fractions.Fraction(6, 2), "3"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (ipaddress.ip_address("::1"), "::1"),
        (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (pathlib.PurePosixPath("a/b.txt"), "a/b.txt"),
        ("\x00\x1b[2J\u202e\U0001f600", "\x00\x1b[2J\u202e\U0001f600"),
        (-0.0, -0.0),
        ({"": {}, "a b": []}, {"": {}, "a b": []}),
    ],
    ids=the_same_in_each_process,
)
def test_a_value_becomes_what_the_contract_says(value, expected):
    assert shown(value) == expected


def test_a_struct_time_is_an_object_of_its_named_fields():
    assert shown(time.gmtime(0))["tm_year"] == 1970


def test_a_time_zone_is_its_name():
    try:
        zone = zoneinfo.ZoneInfo("Europe/Berlin")
    except zoneinfo.ZoneInfoNotFoundError:
        zone = zoneinfo.ZoneInfo.from_file(_utc_zone_file(), key="Europe/Berlin")
    assert shown({"zone": zone}) == {"zone": "Europe/Berlin"}


def _utc_zone_file():
    import io

    head = b"TZif2" + bytes(15)
    block = (0, 0, 0, 0, 1, 4)
    body = b"".join(count.to_bytes(4, "big") for count in block) + bytes(6) + b"UTC\x00"
    return io.BytesIO(head + body + head + body + b"\nUTC0\n")


@pytest.mark.parametrize("digits", [1, 4299, 4300])
def test_an_integer_up_to_what_parsers_accept_is_a_number(digits):
    for number in (10 ** (digits - 1), -(10**digits - 1)):
        assert shown([number]) == [number]


@pytest.mark.parametrize(
    "number", [10**4300, -(10**4300), 7**20_000, 1 << 100_000, (1 << 14_001) - 1], ids=int.bit_length
)
def test_an_integer_of_any_size_is_exact(number):
    rendered = render({"n": number})
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert int(through_json(rendered)["n"]) == number
    finally:
        sys.set_int_max_str_digits(limit)
    if isinstance(rendered.json["n"], str):
        assert rendered.notes["result.n"].startswith("an integer of ")
        assert rendered.notes["result.n"].endswith(" digits became a string")


def test_a_hundred_thousand_digits_do_not_depend_on_the_guests_decimal_context():
    before = decimal.getcontext().copy()
    try:
        decimal.getcontext().prec = 1
        assert render(10**100_000).json == "1" + "0" * 100_000
    finally:
        decimal.setcontext(before)


def test_nan_and_infinities_become_null_and_the_note_says_where():
    rendered = render({"items": [{"price": 1.0}, {"price": math.nan}], "odd key": -math.inf})
    assert through_json(rendered) == {"items": [{"price": 1.0}, {"price": None}], "odd key": None}
    assert rendered.notes == {"result.items[1].price": "nan became null", "result['odd key']": "-inf became null"}


def test_bytes_are_base64_and_the_note_says_so():
    for value in (b"\x00\xff", bytearray(b"\x00\xff"), memoryview(b"\x00\xff")):
        rendered = render(value)
        assert base64.b64decode(rendered.json) == b"\x00\xff"
        assert rendered.notes == {"result": "2 bytes as base64"}


def test_a_released_memoryview_is_its_repr():
    view = memoryview(b"x")
    view.release()
    assert render(view).json == "<released memory>"


def test_lone_surrogates_are_escaped_and_noted():
    rendered = render({"\ud800": ["a\udfff"]})
    assert through_json(rendered) == {"\\ud800": ["a\\udfff"]}
    assert len(rendered.notes) == 2
    assert all("surrogates" in note for note in rendered.notes.values())
    json.dumps(rendered.notes, ensure_ascii=False).encode()


def test_keys_that_are_no_strings_become_their_text_and_none_is_lost():
    rendered = render({1: "a", "1": "b", None: "c", (1, 2): "d", 1.5: "f", Colour.RED: "g", dt.date(2024, 1, 1): "h"})
    assert through_json(rendered) == {
        "1 (int)": "a",
        "1": "b",
        "None": "c",
        "(1, 2)": "d",
        "1.5": "f",
        "red": "g",
        "2024-01-01": "h",
    }
    assert "the key 1 became '1 (int)'" in rendered.notes["result"]
    assert "(1, 2)" in rendered.notes["result"]


def test_integer_keys_need_no_note():
    assert shown({1: "a", 2: "b"}) == {"1": "a", "2": "b"}


def test_many_keys_that_read_the_same_are_all_kept():
    class Same:
        def __repr__(self):
            return "same"

    rendered = render({Same(): number for number in range(5)} | {"same": "own"})
    assert sorted(map(str, rendered.json.values())) == ["0", "1", "2", "3", "4", "own"]
    assert rendered.json["same"] == "own"


def test_a_set_of_unlike_members_has_one_order_whatever_the_hashes():
    members = ["b", 1, None, ("x", 2), frozenset({"q", "r", "s"}), 2.5]
    texts = {json.dumps(render(set(order)).json) for order in (members, members[::-1])}
    assert len(texts) == 1


def test_cycles_are_marked_where_they_close():
    cycle: dict[str, Any] = {"name": "a", "children": []}
    cycle["children"].append(cycle)
    rendered = render(cycle)
    assert through_json(rendered) == {"name": "a", "children": ["<cycle>"]}
    assert rendered.notes == {"result.children[0]": "refers back to result"}


def test_the_same_list_twice_is_no_cycle():
    row = [1]
    assert shown([row, row]) == [[1], [1]]


def test_a_hundred_thousand_levels_are_cut_with_a_note():
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    rendered = render(nested)
    text = json.dumps(rendered.json)
    assert text.count("[") == values.DEPTH_MAX
    assert list(rendered.notes.values()) == [f"more than {values.DEPTH_MAX} levels deep"]


def test_a_structure_that_unfolds_without_end_is_bounded():
    unfolding: list[Any] = [1]
    for _ in range(80):
        unfolding = [unfolding, unfolding]
    rendered = render(unfolding, nodes_max=1000)
    assert json.dumps(rendered.json).count("[") <= 1000
    assert any("a report cannot hold more" in note for note in rendered.notes.values())


@pytest.mark.parametrize(
    "value",
    [
        "x" * 5000,
        "é" * 5000,
        "\x01" * 5000,
        ["abc"] * 5000,
        [["abc"]] * 5000,
        {str(i): i for i in range(5000)},
        b"x" * 5000,
        {"k" * 5000: 1},
        ["\ud800" * 1000],
        [{"a": "x" * 3000, "b": "y" * 3000}],
        10**20_000,
        range(10**30),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_larger_than_the_bound_is_cut_and_the_note_says_how_much(value):
    rendered = render(value, size_max=1000, nodes_max=500)
    text = json.dumps(rendered.json, ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) <= 2100, "a last short string may go beyond"
    assert any("a report cannot hold more" in note for note in rendered.notes.values())


def test_a_result_at_the_bounds_fits_one_frame():
    for value in ([[]] * 600_000, ["é" * 100] * 110_000):
        rendered = render(value)
        frame = frames.encode(
            {"t": "done", "status": "ok", "result": rendered.json, "error": None, "notes": rendered.notes}
        )
        done = frames.child_frame(frame[frames.HEADER_BYTES :])
        assert done.result == rendered.json
        assert "a report cannot hold more" in rendered.notes["result"]


def test_a_result_of_the_greatest_depth_fits_one_frame():
    nested: Any = []
    for _ in range(500):
        nested = {"a": nested}
    rendered = render(nested)
    frame = frames.encode(
        {"t": "done", "status": "ok", "result": rendered.json, "error": None, "notes": rendered.notes}
    )
    assert frames.child_frame(frame[frames.HEADER_BYTES :]).result == rendered.json


def test_notes_are_bounded_and_the_rest_is_counted():
    rendered = render([math.nan] * 1000)
    assert len(rendered.notes) == result_paths.NOTES_MAX + 1
    assert rendered.notes["result (more)"] == f"{1000 - result_paths.NOTES_MAX} more values are not shown as they were"


def test_many_notes_at_one_place_are_bounded_too():
    rendered = render({(number, number): number for number in range(10_000)})
    assert len(rendered.json) == 10_000
    assert len(rendered.notes["result"]) < 200 * result_paths.NOTES_MAX


# Values that lie.


def test_subclasses_are_read_as_the_base_value_they_are():
    class S(str):  # noqa: SLOT000 - as a guest writes it
        def encode(self, *_):
            return b'"injected": true'

        def __str__(self):
            return '"}, "ok": true, {"'

        __repr__ = __format__ = __str__

        def isascii(self):
            return True

        def __len__(self):
            return 0

    class D(dict):
        def items(self):
            return iter([("kind", "ok")] * 3)

        __iter__ = keys = items

        def __len__(self):
            return 0

    class L(list):
        def __iter__(self):
            return iter(["lie"])

        def __len__(self):
            return 0

    class T(tuple):
        __slots__ = ()

        def __iter__(self):
            return iter(["lie"])

    class Number(int):
        def __repr__(self):
            return '1}, "admin": true, {"x": 1'

        __str__ = __repr__

        def __int__(self):
            return 7

        def bit_length(self):
            return 1

    class F(float):
        def __repr__(self):
            return "1, 2"

        def __float__(self):
            return 7.0

    class B(bytes):
        def __len__(self):
            return 0

        def __bytes__(self):
            return b"lie"

    class Set(set):
        def __iter__(self):
            return iter(["lie"])

    class Delta(dt.timedelta):
        def __str__(self):
            return "lie"

        days = 5

    assert shown({"s": S("x"), "d": D(a=1), "l": L([1]), "t": T((1,)), "i": Number(5), "f": F(1.5), "z": Set({1})}) == {
        "s": "x",
        "d": {"a": 1},
        "l": [1],
        "t": [1],
        "i": 5,
        "f": 1.5,
        "z": [1],
    }
    assert render(B(b"ab")).json == base64.b64encode(b"ab").decode()
    assert shown(Delta(1)) == "P1D"
    assert shown({S("key"): 1}) == {"key": 1}
    assert type(render(S("x")).json) is str
    assert type(render(Number(5)).json) is int
    assert type(render(F(5)).json) is float


def test_a_lying_class_attribute_is_not_believed():
    class Liar:
        __class__ = property(lambda _: str)  # type: ignore[assignment]

        def __len__(self):
            return 1 << 62

        def __iter__(self):
            return self

        def __next__(self):
            return 1

    rendered = render(Liar())
    assert "Liar object" in rendered.json
    assert rendered.notes


class Quiet:
    """An object without a repr of its own."""


def test_an_object_without_a_repr_of_its_own_has_no_address():
    rendered = render([Quiet(), Quiet])
    assert rendered.json[0].startswith("<")
    assert "0x" not in rendered.json[0]
    assert rendered.json[0].endswith("Quiet object>")
    assert rendered.json[1] == f"<class '{__name__}.Quiet'>"
    assert rendered.notes["result[0]"] == "Quiet object shown as its repr"


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("x"), "raised ValueError"),
        (SystemExit(3), "raised SystemExit"),
        (KeyboardInterrupt(), "raised KeyboardInterrupt"),
        (MemoryError(), "raised MemoryError"),
        (RecursionError(), "raised RecursionError"),
    ],
)
def test_a_repr_that_raises_anything_is_told_and_fails_nothing(raised, said):
    class Broken:
        def __repr__(self):
            raise raised

    rendered = render([Broken(), 1])
    assert rendered.json == [f"<Broken object; its __repr__ {said}>", 1]


def test_a_repr_that_is_no_string_or_never_short_is_bounded():
    class NoString:
        def __repr__(self):
            return 5  # type: ignore[return-value]

    class Long:
        def __repr__(self):
            return "y" * 10_000_000

    class Lie(str):  # noqa: SLOT000 - as a guest writes it
        def __str__(self):
            return "lie"

        def __getitem__(self, _):
            return "lie"

    class Half:
        def __repr__(self):
            return Lie("\ud800 truth")

    no_string, long, half = render([NoString(), Long(), Half()]).json
    assert no_string == "<NoString object; its __repr__ raised TypeError>"
    assert len(long) < 600
    assert "more characters" in long
    assert half == "\\ud800 truth"


def test_a_repr_that_changes_the_list_it_stands_in_changes_nothing():
    class Grower:
        def __repr__(self):
            grown.extend([1] * 100)
            return "grower"

    grown: list[Any] = []
    grown += [Grower(), 2]
    assert render(grown).json == ["grower", 2]


def test_iterators_are_not_iterated():
    def endless():
        while True:
            yield "x"

    generator = endless()
    rendered = render({"g": generator, "m": map(str, [1]), "z": iter([1])})
    assert all(isinstance(value, str) and "0x" not in value for value in rendered.json.values())
    assert next(generator) == "x"
    assert len(rendered.notes) == 3


def test_a_coroutine_that_nobody_awaited_is_told_what_it_lacks():
    async def fetch():
        return 1

    coroutine = fetch()
    try:
        rendered = render({"page": coroutine})
    finally:
        coroutine.close()
    assert "await" in rendered.notes["result.page"]


def test_objects_of_the_library_are_shown_as_their_repr_without_addresses():
    rendered = render([re.match("a", "abc"), print, [].append, lambda: 1, 1 + 2j, ValueError("x"), int, json])
    assert rendered.json[0] == "<re.Match object; span=(0, 1), match='a'>"
    assert rendered.json[1] == "<built-in function print>"
    assert rendered.json[2] == "<built-in method append of list object>"
    assert rendered.json[3].endswith("<lambda>>")
    assert rendered.json[4:7] == ["(1+2j)", "ValueError('x')", "<class 'int'>"]
    assert sys.prefix not in rendered.json[7]
    assert "0x" not in json.dumps(rendered.json)
    assert len(rendered.notes) == 8


def test_private_names_are_shown_as_they_were_written():
    mangled = names.mangle("_secret")
    assert mangled != "_secret"
    kind = dataclasses.make_dataclass("Holder", [(mangled, int)])
    assert shown(kind(5)) == {"_secret": 5}


def test_dataclasses_are_read_past_their_own_attribute_methods():
    @dataclasses.dataclass
    class Odd:
        a: int
        b: int = 2
        kept: dataclasses.InitVar[int] = 3

        def __getattribute__(self, name):
            raise SystemExit

    assert shown(Odd(1)) == {"a": 1, "b": 2}


def test_a_dataclass_field_without_a_value_is_noted():
    @dataclasses.dataclass
    class Late:
        a: int = dataclasses.field(init=False)
        b: int = 2

    rendered = render(Late())
    assert rendered.json == {"b": 2}
    assert rendered.notes == {"result": "the field a has no value"}


def test_slots_and_properties_serve_as_fields():
    @dataclasses.dataclass(slots=True)
    class Slotted:
        a: int

    @dataclasses.dataclass
    class Computed:
        a: int

        @property  # type: ignore[no-redef]
        def a(self):
            raise KeyboardInterrupt

        @a.setter
        def a(self, value):
            pass

    assert shown(Slotted(1)) == {"a": 1}
    assert render(Computed(1)).notes == {"result": "the field a has no value"}


def test_a_metaclass_that_lies_is_not_asked():
    class Meta(type):
        def __eq__(cls, _):
            return True

        def __hash__(cls):
            return 1

        def __instancecheck__(cls, _):
            return True

        def mro(cls):
            return [cls, object]

        def __repr__(cls):
            raise SystemExit

    class Odd(metaclass=Meta):
        __dataclass_fields__ = {"a": 1}  # noqa: RUF012 - as dataclasses writes it

        def __repr__(self):
            return "odd"

    rendered = render([Odd(), Odd])
    assert rendered.json[0] == "odd"
    assert rendered.json[1].startswith("<class ")


def test_a_metaclass_that_breaks_equality_breaks_nothing():
    class Meta(type):
        def __eq__(cls, _):
            raise SystemExit

        def __hash__(cls):
            return 1

    class Odd(metaclass=Meta):
        def __repr__(self):
            return "odd"

    class Text(str, metaclass=Meta):
        __slots__ = ()

    assert render([{Odd()}, {Odd(): 1}, {Text("a"), "b"}, Text("c")]).json == [["odd"], {"odd": 1}, ["a", "b"], "c"]


def test_text_that_says_all_of_a_value_is_never_shortened_or_changed():
    path = pathlib.PurePosixPath(sys.prefix, "lib/python3.11/x.py")
    digits = decimal.Decimal("1." + "7" * 20_000)
    assert shown([path, digits]) == [str(path), str(digits)]


def test_a_time_zone_that_raises_fails_nothing():
    class Zone(dt.tzinfo):
        def utcoffset(self, _):
            raise SystemExit

    rendered = render([dt.datetime(2024, 1, 1, tzinfo=Zone())])
    assert rendered.json[0].startswith("datetime.datetime(2024, 1, 1, ")
    assert rendered.notes == {"result[0]": "datetime object shown as its repr"}


def test_two_times_that_cannot_be_compared_have_an_order_all_the_same():
    members = {dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime.fromisoformat("2024-01-01")}
    assert shown(members) == ["2024-01-01T00:00:00", "2024-01-01T00:00:00+00:00"]


@pytest.mark.filterwarnings("ignore:non-string key:RuntimeWarning")
def test_a_class_whose_attributes_cannot_be_looked_up_fails_nothing():
    class Evil:
        def __hash__(self):
            return hash("__dataclass_fields__")

        def __eq__(self, _):
            raise SystemExit

    odd = type("Odd", (), {Evil(): 1})()  # type: ignore[dict-item]
    rendered = render(odd)
    assert rendered.json == "<Odd object>"
    assert rendered.notes


def test_a_recursion_limit_that_the_guest_lowered_does_not_matter():
    limit = sys.getrecursionlimit()
    nested: Any = 1
    for _ in range(60):
        nested = {"a": nested}

    def lowered():
        depth = len(__import__("inspect").stack(0))
        sys.setrecursionlimit(depth + 40)
        return render(nested)

    try:
        rendered = lowered()
    finally:
        sys.setrecursionlimit(limit)
    assert rendered.notes == {}


# Laws.

json_native = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=5)
    ),
    max_leaves=20,
)

hashables = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=20)
    | st.decimals(allow_nan=False)
    | st.just(decimal.Decimal("NaN"))
    | st.fractions()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.complex_numbers()
    | st.sampled_from([Colour.RED, Level.HIGH, Ellipsis, NotImplemented, int, len, Quiet])
    | st.integers(4298, 4302).map(lambda digits: -(10**digits))
)

anything = st.recursive(
    hashables,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(hashables, max_size=4)
        | st.frozensets(st.tuples(hashables, hashables), max_size=3)
        | st.dictionaries(hashables | st.tuples(hashables, hashables), inner, max_size=4)
        | st.builds(Point, inner, inner)
        | st.builds(Order, inner, inner)
        | st.builds(Quiet)
    ),
    max_leaves=15,
)


@given(json_native)
def test_what_json_can_hold_comes_out_as_it_went_in(value):
    rendered = render(value)
    assert rendered.notes == {}
    assert through_json(rendered) == value


@settings(deadline=None)
@given(anything)
def test_any_value_becomes_strict_json_and_always_the_same(value):
    rendered = render(value)
    assert rendered == render(value)
    assert through_json(rendered) == rendered.json
    json.dumps(rendered.notes, ensure_ascii=False).encode()


@settings(deadline=None)
@given(anything, st.integers(0, 400), st.integers(0, 60), st.integers(0, 5))
def test_any_bounds_are_kept(value, size_max, nodes_max, depth_max):
    rendered = render(value, size_max=size_max, nodes_max=nodes_max, depth_max=depth_max)
    through_json(rendered)
    assert _depth(rendered.json) <= depth_max
    assert _nodes(rendered.json) <= nodes_max + 1


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _nodes(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_nodes, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_nodes, value))
    return 1
