"""Copies of the tree, each with an interpreter that imports `sealab` from it in whatever process.

A copy has a virtual environment of its own, whose `.pth` files name the copy's `.import` and then the packages of the
environment that runs this. A path that a `.pth` file adds is not searched for further ones (site), so that the editable
install of the tree itself has no part in it, neither under `python -I` nor in a process with an empty environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tests.planted import observer
from tests.planted.observer import Seen, seen
from tests.planted.targets import Target

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 1700
"""Of one process of pytest: what it was at then has failed."""
_MADE = (".venv-science", ".upstreams", ".conformance", ".azurite")
"""What make targets put beside the tree for the tests."""
_OPTIONS = ("-q", "--tb=no", "--assert=plain", "-p", "no:xdist", "-p", "no:cacheprovider", "--ignore=tests/planted")
"""The tests of the patches themselves fail wherever one is applied."""
_FOLDERS = ("sandbox", "server", "skills_db", "tests", "tools_registry", "workspace")


class Copy:
    """A copy of the tree in a folder, in which tests can be run."""

    def __init__(self, folder: Path, wrapper: Sequence[str] = (), *, another: Copy | None = None) -> None:
        """Make the copy, of `another` if there is one. Raises RuntimeError where its interpreter imports elsewhere."""
        folder.mkdir()
        self.root = folder.resolve()
        self._wrapper = wrapper
        self._python = self.root / ".venv" / "bin" / "python"
        if another is None:
            self._copy_files()
        else:
            left_out = shutil.ignore_patterns(".venv")
            shutil.copytree(another.root, self.root, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        self._make_environment()
        told = self.python(["-I", "-c", "import sealab.sandbox.job as job; print(job.__file__)"], wrapped=False)
        if Path(told.strip()).resolve() != self.root / "sandbox" / "job.py":
            raise RuntimeError(f"The interpreter of the copy {self.root} imports sealab from {told.strip()}.")
        if another is None:
            # What a throw-away machine compiles is gone with it.
            self.python(["-m", "compileall", "-q", *_FOLDERS], wrapped=False)

    def python(self, arguments: Sequence[str], *, wrapped: bool) -> str:
        """Run Python in the copy, on a throw-away machine if `wrapped`, and return its standard output."""
        command = [os.fspath(self._python), *arguments]
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED}
        environment |= {"TEST_SCIENCE_PYTHON": os.environ.get("TEST_SCIENCE_PYTHON") or _science()}
        if wrapped:
            command = [*self._wrapper, *command]
            environment["SEALAB_DISPOSABLE"] = "1"
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                return process.communicate(timeout=SECONDS_MAX)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)
                return process.communicate()[0]

    def tests(
        self, target: Target, chosen: Sequence[str], *, but: Sequence[str] = (), wrapped: bool, goes_on: bool = False
    ) -> Seen:
        """Run those of the chosen tests that belong to the target, in their order, up to the first that fails.

        It `goes_on` after that one, if asked to.
        """
        without = [f"--deselect={each}" for each in but]
        options = [*_OPTIONS, *([] if goes_on else ["-x"]), "-p", observer.__name__, *target.options, *without]
        output = self.python(["-m", "pytest", *options, *chosen], wrapped=wrapped)
        return seen(output.splitlines())

    def broken_by(self, corpus: Path, ids: Sequence[str]) -> list[str]:
        """Return the ids of the attacks, or of all where none are named, that broke the copy on a throw-away machine."""
        chosen = [f"--id={each}" for each in ids]
        output = self.python(["tests/attacks/run.py", os.fspath(corpus), "--json", *chosen], wrapped=True)
        told = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return [each["id"] for each in told if each["held"] == "broke"]

    def _copy_files(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        for name in filter(None, listed):
            source, target = ROOT / name, self.root / name
            if os.path.lexists(source):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        for name in _MADE:
            if (ROOT / name).exists():
                (self.root / name).symlink_to((ROOT / name).resolve())

    def _make_environment(self) -> None:
        own = self.root / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
        (packages,) = own.glob("lib/python3*/site-packages")
        (packages / "_sealab.pth").write_text(f"{self.root / '.import'}\n")
        (packages / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        theirs = os.fsencode(sys.prefix) + b"/"
        for program in Path(sys.prefix, "bin").iterdir():
            place = own / "bin" / program.name
            if os.path.lexists(place) or not program.is_file():
                continue
            content = program.read_bytes()
            if content.startswith(b"#!" + theirs):
                place.write_bytes(content.replace(theirs, os.fsencode(own) + b"/", 1))
                place.chmod(0o755)
            else:
                place.symlink_to(program)


_NOT_PASSED = frozenset({"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PYTEST_ADDOPTS"})


def _science() -> str:
    """Return the interpreter that `make science` made, or nothing."""
    found = ROOT / ".venv-science" / "bin" / "python"
    return os.fspath(found) if found.exists() else ""
