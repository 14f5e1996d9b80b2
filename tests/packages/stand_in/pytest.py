"""A stand-in for pytest, small enough to run as guest code: asserts, raises, parametrize, fixtures of a module's own.

`run(modules)` imports test modules and returns what became of each test. It works under CPython as well, so that both
are asked the same.
"""

import importlib
import re
import unittest
import warnings


class Skipped(Exception):
    """A test that does not want to run here."""


class LeftOut(Exception):
    """A test that needs more of pytest than there is."""


class _Info:
    value = None

    @property
    def type(self):
        return type(self.value)

    def match(self, pattern):
        assert re.search(pattern, str(self.value)), f"{pattern!r} is not in {str(self.value)!r}"
        return True


class _Raises:
    def __init__(self, expected, match=None, check=None):
        self.expected, self.match_with, self.check, self.info = expected, match, check, _Info()

    def __enter__(self):
        return self.info

    def __exit__(self, kind, error, traceback):
        assert error is not None, f"did not raise {self.expected!r}"
        if not isinstance(error, self.expected):
            return False
        self.info.value = error
        if self.match_with is not None:
            self.info.match(self.match_with)
        assert self.check is None or self.check(error)
        return True


def raises(expected, *arguments, match=None, check=None, **keywords):
    """Expect an exception of a block, or of a call."""
    if arguments:
        with _Raises(expected) as info:
            arguments[0](*arguments[1:], **keywords)
        return info
    return _Raises(expected, match, check)


class _Warns:
    def __init__(self, expected, match=None):
        self.expected, self.match_with = expected, match

    def __enter__(self):
        self.catching = warnings.catch_warnings(record=True)
        self.list = self.catching.__enter__()
        warnings.simplefilter("always")
        return self.list

    def __exit__(self, kind, error, traceback):
        self.catching.__exit__(kind, error, traceback)
        if error is None:
            fitting = [
                each
                for each in self.list
                if issubclass(each.category, self.expected)
                and (self.match_with is None or re.search(self.match_with, str(each.message)))
            ]
            assert fitting, f"no {self.expected!r} was given"
        return False


def warns(expected=Warning, *arguments, match=None, **keywords):
    """Expect a warning of a block, or of a call."""
    if arguments:
        with _Warns(expected):
            return arguments[0](*arguments[1:], **keywords)
    return _Warns(expected, match)


def deprecated_call(*arguments, **keywords):
    """Expect a warning of something deprecated."""
    return warns((DeprecationWarning, PendingDeprecationWarning, FutureWarning), *arguments, **keywords)


class approx:
    """A number, or numbers, that others nearly equal."""

    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, other):
        return self._near(self.expected, other)

    def _near(self, expected, other):
        if isinstance(expected, dict):
            return expected.keys() == other.keys() and all(self._near(expected[key], other[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            return len(expected) == len(other) and all(map(self._near, expected, other))
        if expected == other:
            return True
        if self.nan_ok and expected != expected:
            return other != other
        relative = (self.rel if self.rel is not None else 1e-6 if self.abs is None else 0) * abs_(expected)
        return abs_(expected - other) <= max(relative, self.abs if self.abs is not None else 1e-12)

    def __repr__(self):
        return f"approx({self.expected!r})"


abs_ = abs


def skip(reason="", **keywords):
    """End a test that does not want to run here."""
    raise Skipped(reason)


def fail(reason="", pytrace=True):
    """End a test that failed."""
    raise AssertionError(reason)


def xfail(reason=""):
    """End a test that is known to fail."""
    raise Skipped(reason)


def importorskip(name, *arguments, **keywords):
    """Import a module, or end the test."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped(name) from None


class _Param:
    def __init__(self, values, marks=(), id=None):
        self.values, self.marks = values, marks if isinstance(marks, (list, tuple)) else [marks]


def param(*values, marks=(), id=None):
    """One set of values, with marks."""
    return _Param(values, marks)


class _Mark:
    def __init__(self, name, arguments=(), keywords=None):
        self.name, self.args, self.kwargs = name, arguments, keywords or {}

    def __call__(self, *arguments, **keywords):
        if len(arguments) == 1 and not keywords and callable(arguments[0]) and self.name != "parametrize":
            target = arguments[0]
            target.test_marks = [*getattr(target, "test_marks", []), self]
            return target
        return _Mark(self.name, arguments, keywords)


class _MarkMaker:
    def __getattr__(self, name):
        if name == "parametrize":
            return _parametrize
        return _Mark(name)


def _parametrize(names, values, indirect=False, ids=None, scope=None):
    def mark(target):
        target.test_marks = [_Mark("parametrize", (names, values, indirect)), *getattr(target, "test_marks", [])]
        return target

    return mark


mark = _MarkMaker()


class _Fixture:
    def __init__(self, function, params, name, autouse):
        self.function, self.params, self.autouse = function, params, autouse
        self.name = name or function.__name__

    def __get__(self, instance, owner=None):
        return self


def fixture(function=None, *, params=None, name=None, autouse=False, scope=None, ids=None):
    """Make what tests may ask for by the name of a parameter."""
    if function is not None:
        return _Fixture(function, params, name, autouse)
    return lambda made: _Fixture(made, params, name, autouse)


yield_fixture = fixture


def register_assert_rewrite(*names):
    """Do nothing: asserts stay as they are."""


class _Request:
    def __init__(self, param):
        self.param = param

    def __getattr__(self, name):
        raise LeftOut(f"request.{name}")


MonkeyPatch = Config = FixtureRequest = CaptureFixture = LogCaptureFixture = object


class _Needs:
    """What one test is given: its fixtures, each made once, and what they are to do when it has ended."""

    def __init__(self, fixtures, given, params, instance):
        self.fixtures, self.made, self.params, self.instance, self.ends = fixtures, dict(given), params, instance, []

    def value(self, name):
        if name in self.made:
            return self.made[name]
        if name == "request":
            return _Request(self.params.get("request"))
        found = self.fixtures.get(name)
        if found is None and name == "doctest_namespace":
            return {}
        if found is None:
            raise LeftOut(f"the fixture {name}")
        special = {"self": self.instance, "request": _Request(self.params.get(name))}
        names = _parameters(found.function)
        value = found.function(*(special[each] if each in special else self.value(each) for each in names))
        if hasattr(value, "__next__") and hasattr(value, "send"):
            self.ends.append(value)
            value = next(value)
        self.made[name] = value
        return value

    def end(self):
        for each in reversed(self.ends):
            for _ in each:
                break


def _parameters(function):
    import inspect

    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise LeftOut("a function without a signature") from None
    return [each.name for each in found if each.default is each.empty and each.kind in (0, 1, 3)]


def _marks_of(*targets):
    return [each for target in targets for each in getattr(target, "test_marks", [])]


def _told_of(error):
    """Return what became of a test that ended with an exception."""
    if isinstance(error, (Skipped, unittest.SkipTest)):
        return "skip"
    if isinstance(error, LeftOut):
        return f"left out: {error}"
    return f"{type(error).__name__}: {error}"[:300]


def _call_with(function, *arguments):
    """Call what prepares or ends something, if it is there, with its argument where it asks for one."""
    if function is not None:
        function(*(arguments if _parameters(function) else ()))


def _is_skipped(marks):
    for each in marks:
        if each.name in ("skip", "xfail"):
            return True
        if each.name == "skipif" and (not each.args or eval_condition(each.args[0])):
            return True
        if each.name in ("usefixtures", "asyncio", "anyio"):
            return True
    return False


def eval_condition(condition):
    """Return whether a condition holds; one that is a text is not evaluated, and holds."""
    return bool(condition)


def _cases(marks):
    cases = [({}, {}, [])]
    for each in marks:
        if each.name != "parametrize":
            continue
        names, rows, indirect = each.args
        names = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
        grown = []
        rows = list(rows)
        for given, indirectly, more in cases:
            for row in rows:
                values, own = (row.values, row.marks) if isinstance(row, _Param) else (row, [])
                if not isinstance(row, _Param) and len(names) == 1:
                    values = (row,)
                pairs = dict(zip(names, values))
                through = {
                    name: pairs.pop(name) for name in names if indirect is True or (indirect and name in indirect)
                }
                grown.append(({**given, **pairs}, {**indirectly, **through}, [*more, *own]))
        cases = grown
    return cases


def _fixture_params(fixtures, names, given):
    """Yield the parameters of the fixtures that a test asks for, in every combination."""
    combined = [{}]
    seen, waiting = set(), [*names, *(each.name for each in fixtures.values() if each.autouse)]
    while waiting:
        name = waiting.pop()
        if name in seen or name in given or name not in fixtures:
            continue
        seen.add(name)
        found = fixtures[name]
        if found.params is not None:
            values = [each.values[0] if isinstance(each, _Param) else each for each in found.params]
            combined = [{**each, name: value} for each in combined for value in values]
        waiting.extend(_parameters(found.function))
    return combined


def _run_function(label, function, marks, fixtures, make_instance, told):
    try:
        if _is_skipped(marks):
            told[label] = "skip"
            return
        names = [each for each in _parameters(function) if each != "self"]
        cases = _cases(marks)
    except LeftOut as error:
        told[label] = _told_of(error)
        return
    number = 0
    for given, indirectly, more in cases:
        try:
            combined = _fixture_params(fixtures, names, given)
        except LeftOut as error:
            told[label] = _told_of(error)
            return
        for params in combined:
            each_label = f"{label}[{number}]" if len(cases) * len(combined) > 1 else label
            number += 1
            if _is_skipped(more):
                told[each_label] = "skip"
                continue
            told[each_label] = _outcome(function, names, fixtures, given, {**params, **indirectly}, make_instance)


def _outcome(function, names, fixtures, given, params, make_instance):
    try:
        instance = make_instance()
        needs = _Needs(fixtures, given, params, instance)
        try:
            for each in fixtures.values():
                if each.autouse:
                    needs.value(each.name)
            _call_with(getattr(instance, "setup_method", None), function)
            values = {name: needs.value(name) for name in names}
            result = function(**values) if instance is None else function(instance, **values)
            if hasattr(result, "__await__"):
                result.close()
                return "left out: a coroutine"
            _call_with(getattr(instance, "teardown_method", None), function)
        finally:
            needs.end()
    except BaseException as error:
        return _told_of(error)
    return "ok"


def _run_case(label, cls, told):
    try:
        _call_with(getattr(cls, "setUpClass", None))
    except BaseException as error:
        told[label] = _told_of(error)
        return
    for name in dir(cls):
        if not name.startswith("test"):
            continue
        method = getattr(cls, name)
        if _is_skipped(_marks_of(cls, method)):
            told[f"{label}.{name}"] = "skip"
            continue
        try:
            result = unittest.TestResult()
            case = cls(name)
            case.run(result)
            problems = [*result.errors, *result.failures]
            if problems:
                last = [line for line in str(problems[0][1]).strip().split("\n") if line.strip()]
                told[f"{label}.{name}"] = f"failed: {last[-1] if last else ''}"[:300]
            else:
                told[f"{label}.{name}"] = "skip" if result.skipped or result.expectedFailures else "ok"
        except BaseException as error:
            told[f"{label}.{name}"] = _told_of(error)


def _conftests(name):
    parts = name.split(".")
    found = {}
    for length in range(len(parts)):
        try:
            module = importlib.import_module(".".join([*parts[:length], "conftest"]))
        except Exception:
            continue
        found.update(_fixtures_of(module))
    return found


def _fixtures_of(holder):
    found = {}
    for name in dir(holder):
        try:
            value = getattr(holder, name)
        except Exception:
            continue
        if isinstance(value, _Fixture):
            found[name if value.name == value.function.__name__ else value.name] = value
    return found


def run(names):
    """Run the tests of modules; return what became of each, "ok", "skip", "left out: …" or what went wrong."""
    told = {}
    for name in names:
        try:
            module = importlib.import_module(name)
        except BaseException as error:
            told[name] = _told_of(error)
            continue
        if _is_skipped(_marks_as_list(getattr(module, "pytestmark", []))):
            told[name] = "skip"
            continue
        fixtures = {**_conftests(name), **_fixtures_of(module)}
        try:
            _call_with(getattr(module, "setup_module", None), module)
        except BaseException as error:
            told[name] = _told_of(error)
            continue
        for member in list(vars(module)):
            value = vars(module)[member]
            label = f"{name}.{member}"
            if isinstance(value, type) and issubclass(value, unittest.TestCase):
                _run_case(label, value, told)
            elif isinstance(value, type) and value.__module__ == name and _is_test_class(member, value):
                own = {**fixtures, **_fixtures_of(value)}
                try:
                    _call_with(getattr(value, "setup_class", None))
                except BaseException as error:
                    told[label] = _told_of(error)
                    continue
                for each in dir(value):
                    if each.startswith("test"):
                        function = getattr(value, each)
                        if callable(function):
                            marks = _marks_of(value, function)
                            _run_function(f"{label}.{each}", function, marks, own, value, told)
            elif member.startswith("test") and callable(value) and not isinstance(value, type):
                _run_function(label, value, _marks_of(value), fixtures, lambda: None, told)
    return told


def _is_test_class(name, cls):
    return name.startswith("Test") and "__init__" not in vars(cls)


def _marks_as_list(marks):
    return list(marks) if isinstance(marks, (list, tuple)) else [marks]


def run_doctests(names):
    """Run the examples in the documentation of modules; return what became of each module."""
    import doctest

    told = {}
    for name in names:
        try:
            module = importlib.import_module(name)
            failed, attempted = doctest.testmod(module, verbose=False)[:2]
        except BaseException as error:
            told[name] = _told_of(error)
            continue
        for number in range(attempted):
            told[f"{name}[{number}]"] = "ok" if number >= failed else "failed: an example"
    return told
