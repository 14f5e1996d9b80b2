"""`unittest` of the code's own test cases, reported on standard error or on the stream that it gives.

Test cases are the real ones, without what looks into modules, loggers or warnings of the process. Loading and running
are written here: the real ones import by name, parse a command line and print tracebacks of the interpreter.
"""

# Python's own names and signatures.
# ruff: noqa: ARG002, N802, N803, N815, N816, PLR0917, PT009

from __future__ import annotations

import inspect
import sys
import unittest
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any, NoReturn, Self, cast

from ....guest import clock
from ....guest.guest import variables_of
from ....guest.ownership import is_guest_class
from ....guest.real_classes import derives
from ... import event_loop
from ...guards import guarded_getattr
from .. import streams
from ..private import copy_of
from .traceback_ import format_exception

__all__ = [
    "IsolatedAsyncioTestCase", "SkipTest", "TestCase", "TestLoader", "TestProgram", "TestResult", "TestSuite",
    "TextTestResult", "TextTestRunner", "defaultTestLoader", "expectedFailure", "main", "skip", "skipIf", "skipUnless",
]  # fmt: skip

_LINE = "-" * 70
_DOUBLE_LINE = "=" * 70
_NO_TESTS = 5


_NOTHING = object()


def _getattr(obj: object, name: str, default: Any = _NOTHING) -> Any:
    """Read what the module itself keeps under a name, and everything else as the code could."""
    if name.startswith("__unittest_") and type(name) is str:
        return getattr(obj, name) if default is _NOTHING else getattr(obj, name, default)
    return guarded_getattr(obj, name) if default is _NOTHING else guarded_getattr(obj, name, default)


# A test names its methods and comparisons by text.
_case = copy_of("unittest.case", replacing={"getattr": _getattr})


def _of_module(module: str, name: str, *arguments: object, **keywords: object) -> Any:
    from ... import guest_modules  # it needs the facades

    return guest_modules.call(module, name, *arguments, **keywords)


_case.warnings = SimpleNamespace(warn=partial(_of_module, "warnings", "warn"))  # type: ignore[attr-defined]  # the copy's own name
SkipTest = _case.SkipTest
expectedFailure = _case.expectedFailure
skip = _case.skip
skipIf = _case.skipIf
skipUnless = _case.skipUnless


_real_init = _case.TestCase.__init__
_real_add = _case.TestCase.addTypeEqualityFunc


class TestCase(_case.TestCase):  # type: ignore[misc, name-defined]  # of the private copy
    """A set of tests with a common set-up."""

    def __init__(self, methodName: str = "runTest") -> None:
        if type(methodName) is not str or not methodName.startswith(("test", "runTest")):
            raise ValueError("the name of a test method starts with 'test'")
        _real_init(self, methodName)

    def addTypeEqualityFunc(self, typeobj: type, function: Any) -> None:
        """Compare objects of exactly `typeobj` by calling `function`."""
        # Tests look classes up by it, metaclasses among them: an object that looks like a class would receive these.
        if not issubclass(type(typeobj), type):
            raise TypeError("pass the class whose objects are compared")
        if not callable(function) and not (type(function) is str and function.startswith("assert")):
            raise TypeError("pass the comparing function itself")
        _real_add(self, typeobj, function)

    def assertWarns(self, expected_warning: Any, *args: Any, **kwargs: Any) -> Any:
        """Fail unless the block, or the call, issues a warning of that class."""
        return _called(_Warned(self, expected_warning, None), args, kwargs)

    def assertWarnsRegex(self, expected_warning: Any, expected_regex: Any, *args: Any, **kwargs: Any) -> Any:
        """Fail unless the block, or the call, issues a warning of that class with a text that matches."""
        return _called(_Warned(self, expected_warning, expected_regex), args, kwargs)

    def assertLogs(self, logger: Any = None, level: Any = None) -> Any:
        """Fail unless the block logs something."""
        return _of_module("unittest._log", "AssertLogsContext", self, logger, level, no_logs=False)

    def assertNoLogs(self, logger: Any = None, level: Any = None) -> Any:
        """Fail if the block logs something."""
        return _of_module("unittest._log", "AssertLogsContext", self, logger, level, no_logs=True)

    def defaultTestResult(self) -> TestResult:
        """Return what results are kept in by default."""
        return TestResult()


for _method in [each for each in vars(TestCase).values() if isinstance(each, FunctionType)]:
    setattr(_case.TestCase, _method.__name__, _method)  # `super()` would reach the real one


def _called(context: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args:
        return context
    with context:
        args[0](*args[1:], **kwargs)
    return None


class _Warned:
    def __init__(self, case: unittest.TestCase, expected: Any, pattern: Any) -> None:
        self._case = case
        self._expected = expected
        self._pattern = pattern
        self._catching = _of_module("warnings", "catch_warnings", record=True, action="always")
        self.warnings: list[Any] = []
        self.warning: Warning | None = None

    def __enter__(self) -> Self:
        kept = self._catching.__enter__()
        self.warnings = [] if kept is None else kept
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        self._catching.__exit__(None, None, None)
        if kind is not None:
            return
        for item in self.warnings:
            if isinstance(item.message, self._expected):
                self.warning = item.message
                if self._pattern is not None:
                    self._case.assertRegex(str(item.message), self._pattern)
                return
        self._case.fail("the expected warning was not issued")


class IsolatedAsyncioTestCase(TestCase):
    """A test case whose methods may be coroutines; each test runs on a loop of its own."""

    async def asyncSetUp(self) -> None:
        """Prepare a test."""

    async def asyncTearDown(self) -> None:
        """Clean up after a test."""

    def _callTestMethod(self, method: Callable[[], Any]) -> None:
        event_loop.run(self._whole(method))

    async def _whole(self, method: Callable[[], Any]) -> None:
        await self.asyncSetUp()
        try:
            if inspect.iscoroutinefunction(method):
                await method()
            else:
                method()
        finally:
            await self.asyncTearDown()


_result = copy_of("unittest.result", keeping=("__import__",))
# With `buffer` set it exchanges the streams of `sys`: those of the guest.


class _CapturedSys:
    @property
    def stdout(self) -> Any:
        return streams.current("stdout")

    @stdout.setter
    def stdout(self, stream: object) -> None:
        streams.exchange("stdout", stream)

    @property
    def stderr(self) -> Any:
        return streams.current("stderr")

    @stderr.setter
    def stderr(self, stream: object) -> None:
        streams.exchange("stderr", stream)


_result.sys = _CapturedSys()  # type: ignore[attr-defined]  # the copy's own name


class TestResult(_result.TestResult):  # type: ignore[misc, name-defined]  # of the private copy
    """What became of each test."""

    def __init__(self, *_options: object) -> None:
        super().__init__()

    def _exc_info_to_string(self, err: Any, test: unittest.TestCase) -> str:
        return "".join(format_exception(err[1]))


class _LineWriter:
    """A stream as results and runners have it: `write` and `flush` of the given one, and `writeln`."""

    def __init__(self, stream: Any) -> None:
        self.stream = streams.current("stderr") if stream is None else stream

    def write(self, text: str) -> None:
        """Write `text`."""
        self.stream.write(text)

    def writeln(self, text: str = "") -> None:
        """Write `text` as a line."""
        self.stream.write(f"{text}\n")

    def flush(self) -> None:
        """Do nothing: what is written is out."""


class TextTestResult(TestResult):
    """Reports each test on a stream as it ends."""

    __module__ = "unittest.runner"

    separator1 = _DOUBLE_LINE
    separator2 = _LINE

    def __init__(self, stream: Any = None, descriptions: bool = True, verbosity: int = 1, **_options: object) -> None:
        super().__init__()
        self.stream = stream if derives(type(stream), _LineWriter) else _LineWriter(stream)
        self.descriptions = descriptions
        self.showAll = verbosity > 1
        self.dots = verbosity == 1

    def getDescription(self, test: Any) -> str:
        """Return what a test is called, with the first line of its docstring."""
        described = test.shortDescription() if self.descriptions else None
        return f"{test}\n{described}" if described else str(test)

    def _tell(self, word: str, sign: str) -> None:
        if self.showAll:
            self.stream.writeln(word)
        elif self.dots:
            self.stream.write(sign)

    def startTest(self, test: Any) -> None:
        """Note that a test begins."""
        super().startTest(test)
        if self.showAll:
            self.stream.write(f"{self.getDescription(test)} ... ")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """Note a part of a test that failed, or passed."""
        if err is not None:
            failed = issubclass(err[0], subtest.failureException)
            if self.showAll:
                self.stream.writeln("FAIL" if failed else "ERROR")
            elif self.dots:
                self.stream.write("F" if failed else "E")
        super().addSubTest(test, subtest, err)

    def addSuccess(self, test: Any) -> None:
        """Note a test that passed."""
        super().addSuccess(test)
        self._tell("ok", ".")

    def addError(self, test: Any, err: Any) -> None:
        """Note a test that could not run."""
        super().addError(test, err)
        self._tell("ERROR", "E")

    def addFailure(self, test: Any, err: Any) -> None:
        """Note a test that failed."""
        super().addFailure(test, err)
        self._tell("FAIL", "F")

    def addSkip(self, test: Any, reason: str) -> None:
        """Note a test that was left out."""
        super().addSkip(test, reason)
        self._tell(f"skipped {reason!r}", "s")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        """Note a test that failed as expected."""
        super().addExpectedFailure(test, err)
        self._tell("expected failure", "x")

    def addUnexpectedSuccess(self, test: Any) -> None:
        """Note a test that passed against expectation."""
        super().addUnexpectedSuccess(test)
        self._tell("unexpected success", "u")

    def printErrors(self) -> None:
        """Report what failed, and how."""
        if self.dots or self.showAll:
            self.stream.writeln()
        self.printErrorList("ERROR", self.errors)
        self.printErrorList("FAIL", self.failures)
        for test in self.unexpectedSuccesses:
            self.stream.write(f"{_DOUBLE_LINE}\nUNEXPECTED SUCCESS: {self.getDescription(test)}\n")

    def printErrorList(self, flavour: str, errors: Iterable[tuple[Any, str]]) -> None:
        """Report one kind of what failed."""
        for test, text in errors:
            self.stream.write(f"{_DOUBLE_LINE}\n{flavour}: {self.getDescription(test)}\n{_LINE}\n{text}\n")


class TestSuite:
    """Tests that run together."""

    def __init__(self, tests: Iterable[Any] = ()) -> None:
        self._tests: list[Any] = []
        self.addTests(tests)

    def __repr__(self) -> str:
        return f"<unittest.suite.TestSuite tests={list(self)}>"

    def __eq__(self, other: object) -> bool:
        return list(self) == list(cast("TestSuite", other)) if derives(type(other), TestSuite) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as in Python

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._tests))

    def __call__(self, result: TestResult, debug: bool = False) -> TestResult:
        """Run the tests."""
        return self.run(result, debug)

    def countTestCases(self) -> int:
        """Return how many tests there are."""
        return sum(_test(test).countTestCases() for test in self)

    def addTest(self, test: Any) -> None:
        """Add a test case or a suite."""
        self._tests.append(_test(test))

    def addTests(self, tests: Iterable[Any]) -> None:
        """Add several test cases or suites."""
        if isinstance(tests, str):
            raise TypeError("tests must be an iterable of tests, not a string")
        for test in tests:
            self.addTest(test)

    def run(self, result: TestResult, debug: bool = False) -> TestResult:
        """Run the tests, with the fixtures of their classes around those of each."""
        if not derives(type(result), TestResult):
            raise TypeError(f"a TestResult was expected, not {type(result).__name__!r}")
        fixtures = _ClassFixtures(result, bool(debug))
        _run_all(self, fixtures)
        fixtures.change(None)
        return result

    def debug(self) -> None:
        """Run the tests, and let through what they raise."""
        self.run(TestResult(), debug=True)


def _test(test: Any) -> Any:
    """Return `test`, which is asked for its class and receives those of others: only a case or a suite may be one."""
    if not (derives(type(test), _case.TestCase) or derives(type(test), TestSuite)):
        raise TypeError(f"a test must be a TestCase or a TestSuite, not {type(test).__name__!r}")
    return test


def _run_all(suite: TestSuite, fixtures: _ClassFixtures) -> None:
    for each in suite:
        if fixtures.result.shouldStop:
            return
        test = _test(each)
        if derives(type(test), TestSuite):
            if type(test).run is TestSuite.run:
                _run_all(test, fixtures)
            else:
                test.run(fixtures.result, fixtures.debug)
        elif fixtures.change(type(test)):
            if fixtures.debug:
                test.debug()
            else:
                test(fixtures.result)


class _ClassFixtures:
    """Of which class the tests of a run are now, and what its methods for the whole class raised.

    The real suite keeps this in attributes of the result, which may be an object of the code's own.
    """

    def __init__(self, result: TestResult, debug: bool) -> None:
        self.result = result
        self.debug = debug
        self._cls: Any = None
        self._ready = True

    def change(self, cls: Any) -> bool:
        """Leave the class before and enter `cls`; return whether its tests can run."""
        if cls is self._cls:
            return self._ready
        if self._cls is not None and self._ready and not _is_skipped(self._cls):
            self._call(self._cls, "tearDownClass")
            self._clean_up(self._cls)
        self._cls, self._ready = cls, True
        if cls is not None and not _is_skipped(cls):
            self._ready = self._call(cls, "setUpClass")
            if not self._ready:
                self._clean_up(cls)
        return self._ready

    def _call(self, cls: Any, name: str) -> bool:
        method: Any = guarded_getattr(cls, name)
        self.result._setupStdout()
        try:
            method()
        except Exception as error:
            if self.debug:
                raise
            self._tell(cls, name, error)
            return False
        finally:
            self.result._restoreStdout()
        return True

    def _clean_up(self, cls: Any) -> None:
        cls.doClassCleanups()
        for _kind, error, _traceback in cls.tearDown_exceptions:
            if self.debug:
                raise error
            self._tell(cls, "tearDownClass", error)

    def _tell(self, cls: type, name: str, error: BaseException) -> None:
        holder = _ErrorHolder(f"{name} ({cls.__module__}.{cls.__qualname__})")
        if isinstance(error, SkipTest):
            self.result.addSkip(holder, str(error))
        else:
            self.result.addError(holder, (type(error), error, error.__traceback__))


def _is_skipped(cls: type) -> bool:
    return bool(getattr(cls, "__unittest_skip__", False))


class _ErrorHolder:
    """Stands for a test where what failed belongs to a class."""

    failureException = None

    def __init__(self, description: str) -> None:
        self.description = description

    def id(self) -> str:
        """Return what failed."""
        return self.description

    def shortDescription(self) -> None:
        """Return None: there is no docstring."""

    def __str__(self) -> str:
        return self.description

    def __repr__(self) -> str:
        return f"<ErrorHolder description={self.description!r}>"

    def countTestCases(self) -> int:
        """Return 0."""
        return 0


class TestLoader:
    """Finds tests in the code's own classes."""

    testMethodPrefix = "test"

    def getTestCaseNames(self, testCaseClass: Any) -> list[str]:
        """Return the names of a class's test methods, sorted."""
        if not (isinstance(testCaseClass, type) and derives(testCaseClass, _case.TestCase)):
            raise TypeError("a subclass of unittest.TestCase was expected")
        return sorted(
            name for name in dir(testCaseClass) if name.startswith("test") and callable(getattr(testCaseClass, name))
        )

    def loadTestsFromTestCase(self, testCaseClass: type) -> TestSuite:
        """Return a suite of a class's tests."""
        names = self.getTestCaseNames(testCaseClass)
        if not names and hasattr(testCaseClass, "runTest"):
            names = ["runTest"]
        return TestSuite(testCaseClass(name) for name in names)

    def loadTestsFromModule(self, module: object = None) -> TestSuite:
        """Return a suite of all tests of the code."""
        return TestSuite(self.loadTestsFromTestCase(kind) for kind in _own_cases())

    discover = loadTestsFromModule

    def loadTestsFromName(self, name: str, module: object = None) -> TestSuite:
        """Return a suite of the tests of a class or of one method: `Case` or `Case.test_method`."""
        wanted, _, method = str(name).removeprefix("__main__.").partition(".")
        cls = next((kind for kind in _own_cases() if kind.__name__ == wanted), None)
        if cls is None:
            raise AttributeError(f"there is no test case {wanted!r} here")
        return TestSuite([cls(method)]) if method else self.loadTestsFromTestCase(cls)

    def loadTestsFromNames(self, names: Iterable[str], module: object = None) -> TestSuite:
        """Return a suite of the tests of all these names."""
        return TestSuite(self.loadTestsFromName(name) for name in names)


def _own_cases() -> Iterator[type[TestCase]]:
    seen: set[type] = set()
    for value in list(variables_of(sys._getframe()).values()):
        if isinstance(value, type) and issubclass(value, TestCase) and is_guest_class(value) and value not in seen:
            seen.add(value)
            yield value


defaultTestLoader = TestLoader()


class TextTestRunner:
    """Runs a suite and reports on a stream, by default on standard error."""

    resultclass: Any = TextTestResult

    def __init__(
        self,
        stream: object = None,
        descriptions: bool = True,
        verbosity: int = 1,
        failfast: bool = False,
        buffer: bool = False,
        resultclass: Any = None,
        **_options: object,
    ) -> None:
        self.stream = _LineWriter(stream)
        self.descriptions = descriptions
        self.verbosity = verbosity
        self.failfast = failfast
        self.buffer = buffer
        if resultclass is not None:
            if not (isinstance(resultclass, type) and derives(resultclass, TestResult)):
                raise TypeError("resultclass must be a subclass of unittest.TestResult")
            self.resultclass = resultclass

    def run(self, test: Any) -> Any:
        """Run `test`, a suite or a single case."""
        result = self.resultclass(self.stream, self.descriptions, self.verbosity)
        result.failfast, result.buffer = self.failfast, self.buffer
        started = clock.monotonic()
        _test(test)(result)
        seconds = clock.monotonic() - started
        if derives(type(result), TextTestResult):
            result.printErrors()
        plural = "" if result.testsRun == 1 else "s"
        self.stream.write(f"{_LINE}\nRan {result.testsRun} test{plural} in {seconds:.3f}s\n\n")
        counts = [
            f"{word}={len(told)}"
            for word, told in (
                ("failures", result.failures),
                ("errors", result.errors),
                ("skipped", result.skipped),
                ("expected failures", result.expectedFailures),
                ("unexpected successes", result.unexpectedSuccesses),
            )
            if told
        ]
        verdict = "OK" if result.wasSuccessful() else "FAILED"
        if not result.testsRun and not result.skipped and sys.version_info >= (3, 12):
            verdict = "NO TESTS RAN"
        self.stream.write(f"{verdict} ({', '.join(counts)})\n" if counts else f"{verdict}\n")
        return result


class TestProgram:
    """Runs all tests of the code; `unittest.main()`."""

    def __init__(
        self,
        module: object = None,
        defaultTest: str | Iterable[str] | None = None,
        argv: Iterable[str] | None = None,
        testRunner: Any = None,
        testLoader: Any = defaultTestLoader,
        exit: bool = True,  # noqa: A002 - as above
        verbosity: int = 1,
        failfast: bool | None = None,
        catchbreak: bool | None = None,
        buffer: bool | None = None,
        **_options: object,
    ) -> None:
        flags, names = _told_on_command_line(argv)
        if {"-v", "--verbose"} & flags:
            verbosity = 2
        elif {"-q", "--quiet"} & flags:
            verbosity = 0
        wanted = [defaultTest] if isinstance(defaultTest, str) else list(defaultTest or ())
        tests = testLoader.loadTestsFromNames(names or wanted) if names or wanted else testLoader.loadTestsFromModule()
        if testRunner is None or isinstance(testRunner, type):
            runner = (testRunner or TextTestRunner)(
                verbosity=verbosity,
                failfast=bool(failfast) or "-f" in flags,
                buffer=bool(buffer) or "-b" in flags,
            )
        else:
            runner = testRunner
        self.result = runner.run(tests)
        if exit:
            _leave(self.result)


def _told_on_command_line(argv: Iterable[str] | None) -> tuple[set[str], list[str]]:
    words = [str(word) for word in list(argv or ())[1:]]
    flags = {word for word in words if word.startswith("-")}
    return flags, [word for word in words if not word.startswith("-")]


def _leave(result: TestResult) -> NoReturn:
    if not result.testsRun and not result.skipped:
        raise SystemExit(_NO_TESTS)
    raise SystemExit(0 if result.wasSuccessful() else 1)


main = TestProgram
