"""Write rows of habit programs from their source, with what CPython makes of them as their expectation.

    python -m tests.benchmarks.expect_habits SOURCES ROWS PYTHON…

SOURCES holds programs, each after a line `### group-number`. Each is run twice by every PYTHON, in an empty folder and
with its own hash seed. ROWS gets those whose outcomes were all the same, as `habits.py` reads them; the others are named.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RUNNER = """
import ast, asyncio, inspect, json, sys, types
tree = ast.parse(sys.argv[1])
if tree.body and isinstance(tree.body[-1], ast.Expr):
    tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("LAST", ast.Store())], tree.body[-1].value), tree.body[-1])
    ast.fix_missing_locations(tree)
code = compile(tree, "main.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
main = sys.modules["__main__"] = types.ModuleType("__main__")
names, out = vars(main), sys.stdout
sys.argv = [""]
try:
    value = eval(code, names)
    if inspect.iscoroutine(value):
        asyncio.run(value)
    last = names.get("result", names.get("LAST"))
except SystemExit as leaving:
    assert not leaving.code, leaving
    last = names.get("result")
try:
    told = json.dumps(last)
    assert json.loads(told) == last
except (TypeError, ValueError, AssertionError):
    told = "null"
out.flush()
open("result.json", "w").write(told)
"""


def outcome(python: str, code: str, seed: int) -> dict[str, object]:
    """Run a program; return its result and standard output. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"PYTHONHASHSEED": str(seed), "PYTHONUTF8": "1"}
        command = [python, "-I", "-X", "utf8", "-c", RUNNER, code]
        ran = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True, timeout=20)
        return {"result": json.loads(Path(folder, "result.json").read_text()), "stdout": ran.stdout}


def main() -> int:
    sources, rows, *pythons = sys.argv[1:]
    written = []
    for name, code in re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", Path(sources).read_text(), re.MULTILINE | re.DOTALL):
        try:
            found = [outcome(python, code, seed) for python in pythons for seed in (1, 2)]
        except subprocess.CalledProcessError as error:
            print(f"{name}: {error.stderr.strip().splitlines()[-1]}")
            continue
        if any(each != found[0] for each in found):
            print(f"{name}: not the same everywhere: {next(each for each in found if each != found[0])} {found[0]}")
            continue
        row = {"id": name, "group": name.rpartition("-")[0], "files": {}, "code": code, "expect": found[0]}
        written.append(json.dumps({**row, "files_after": {}}, ensure_ascii=False))
    Path(rows).write_text("\n".join(written) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
