"""One patch, from its application to what caught it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.planted.copies import Copy
from tests.planted.patches import NoLongerApplies, Patch, planted
from tests.planted.record import Caught
from tests.planted.selection import covering, likely
from tests.planted.targets import ATTACKS, TARGETS, Target


class Verdict(StrEnum):
    """What became of a patch."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    NO_LONGER_APPLIES = "no longer applies"
    BREAKS_IMPORT = "breaks an import"


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a patch, by which target and test, in how many seconds; `note` says why a patch is a bad one."""

    patch: Patch
    verdict: Verdict
    seconds: float
    caught: Caught | None = None
    note: str = ""


class _BreaksImport(Exception):
    pass


class Judge:
    """Judges patches, beside a copy of the tree that stays as it is."""

    def __init__(self, unpatched: Copy, *, whole: bool, first: Sequence[str] = (), corpus: Path | None = None) -> None:
        """`whole`: all tests are run where those that cover a patch do not catch it, and the attacks of the `corpus`.

        `first` are tests to run before those that cover a patch.
        """
        self._unpatched = unpatched
        self._whole = whole
        self._first = first
        self._corpus = corpus
        self._passes: dict[tuple[str, bool], bool] = {}

    def run_unpatched(self, last: Iterable[tuple[Patch, Caught]]) -> None:
        """Run what caught patches last without any patch, in few processes, beside the judging: it need not be alone."""
        tests: dict[bool, dict[str, None]] = {}
        for patch, caught in last:
            if caught.target != ATTACKS:
                tests.setdefault(patch.harm, {})[caught.test] = None
        for target in TARGETS:
            for harm, chosen in tests.items():
                if harm or not target.throw_away:
                    ran = self._unpatched.tests(target, list(chosen), wrapped=harm, goes_on=True)
                    self._passes |= {(test, harm): True for test in ran.passed}

    def judge(self, patch: Patch, copy: Copy, last: Caught | None) -> Finding:
        """Apply a patch to a copy and run tests up to the first that fails for it; `last` caught it last."""
        began = time.monotonic()
        caught: Caught | None = None
        note = ""
        try:
            with planted(patch, copy.root):
                _import(patch, copy)
                caught = next(filter(None, self._attempts(patch, copy, last)), None)
            verdict = Verdict.CAUGHT if caught else Verdict.SURVIVED
        except NoLongerApplies as error:
            verdict, note = Verdict.NO_LONGER_APPLIES, str(error)
        except _BreaksImport as error:
            verdict, note = Verdict.BREAKS_IMPORT, str(error)
        return Finding(patch, verdict, time.monotonic() - began, caught, note)

    def _attempts(self, patch: Patch, copy: Copy, last: Caught | None) -> Iterator[Caught | None]:
        """Yield what caught the patch, or None, for one choice of tests after the other."""
        targets = [each for each in TARGETS if patch.harm or not each.throw_away]
        if last is not None:
            yield from (
                self._by_tests(patch, copy, each, [last.test]) for each in targets
            )  # its tier may be another now
            if last.target == ATTACKS and patch.harm:
                yield self._by_attacks(copy, [last.test])
        files = covering(patch.file)
        near = likely(f"{patch.name} {patch.promise}", files)
        choices = [self._first, near, files, ["tests"] if self._whole else []]
        for tests in filter(None, choices):
            yield from (self._by_tests(patch, copy, each, tests) for each in targets)
        if self._whole and patch.harm:
            yield self._by_attacks(copy, [])

    def _by_tests(self, patch: Patch, copy: Copy, target: Target, tests: Sequence[str]) -> Caught | None:
        test = self._failing(patch, copy, target, tests)
        return None if test is None else Caught(target.name, test)

    def _by_attacks(self, copy: Copy, ids: Sequence[str]) -> Caught | None:
        """Run attacks, all of them without ids; one that breaks with the patch and not without it catches it."""
        if self._corpus is None:
            return None
        broken = (
            each for each in copy.broken_by(self._corpus, ids) if not self._unpatched.broken_by(self._corpus, [each])
        )
        return next((Caught(ATTACKS, each) for each in broken), None)

    def _failing(self, patch: Patch, copy: Copy, target: Target, tests: Sequence[str]) -> str | None:
        """Return the first test that fails with the patch, alone too, and passes without it."""
        passed_over: list[str] = []
        left = list(tests)
        while left:
            ran = copy.tests(target, left, but=passed_over, wrapped=patch.harm)
            if ran.broken:
                for file in ran.broken:
                    if not self._unpatched.tests(target, ["--collect-only", file], wrapped=patch.harm).broken:
                        raise _BreaksImport(
                            f"With the patch {file} cannot be imported. A patch breaks one promise only."
                        )
                left = [each for each in left if each.partition("::")[0] not in ran.broken]
                passed_over += [each for each in ran.broken if left == ["tests"]]
            elif ran.failed is None:
                return None
            elif self._passes_without(patch, target, ran.failed) and (
                left == [ran.failed] or copy.tests(target, [ran.failed], wrapped=patch.harm).failed == ran.failed
            ):
                return ran.failed
            else:
                passed_over += {ran.failed: None, **dict.fromkeys(self._failing_without(patch, ran.failed))}
        return None

    def _passes_without(self, patch: Patch, target: Target, test: str) -> bool:
        """Return whether a test passes in the copy without patches; where it fails, all of its file are run there."""
        key = (test, patch.harm)
        if key not in self._passes:
            alone = self._unpatched.tests(target, [test], wrapped=patch.harm)
            self._passes[key] = test in alone.passed
            if not self._passes[key]:
                whole = self._unpatched.tests(target, [test.partition("::")[0]], wrapped=patch.harm, goes_on=True)
                self._passes |= {(each, patch.harm): False for each in whole.failures}
        return self._passes[key]

    def _failing_without(self, patch: Patch, test: str) -> Iterator[str]:
        """Yield the tests of the same file that fail without the patch too."""
        for (other, harm), passes in self._passes.items():
            if harm == patch.harm and not passes and other.partition("::")[0] == test.partition("::")[0]:
                yield other


def _import(patch: Patch, copy: Copy) -> None:
    """Raise _BreaksImport where the patched module cannot be imported, or compiled where it is source for the dialect."""
    if not patch.file.endswith(".py"):
        return
    module = "sealab." + patch.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if "/guest_modules/" in patch.file or "/examples/" in patch.file:
        program = f"compile(open({patch.file!r}).read(), {patch.file!r}, 'exec'); print('imported')"
    else:
        program = f"import {module}; print('imported')"
    told = copy.python(["-W", "ignore", "-c", program], wrapped=patch.harm)
    if told.splitlines()[-1:] != ["imported"]:
        raise _BreaksImport(f"With the patch {module} cannot be imported: {told.strip().splitlines()[-1:]}.")
