"""Writes docs/standard-library.md: which modules of the standard library code may import, and what to use instead.

`python -m tests.sandbox.dialect.standard_library` writes it; `test_standard_library` compares. What stands
there of modules that only another version of Python has is kept.
"""

# ruff: noqa: SIM905 - a table of words is read as words, not as quoted strings

from __future__ import annotations

import re
import sys
from pathlib import Path

from sealab.sandbox.dialect import facades, guest_modules
from sealab.sandbox.report.substitutes import instead_of

_ROOT = Path(__file__).parents[3]
PAGE = _ROOT / "docs" / "standard-library.md"
_GUEST_MODULES = _ROOT / "sandbox" / "guest_modules"
_ROW = re.compile(r"^\| (`.*`) \| (.*) \|$", re.MULTILINE)
_SUBMODULES = (
    "asyncio.subprocess collections.abc concurrent.futures email.message email.mime.text email.parser email.policy "
    "email.utils html.entities html.parser http.client http.cookiejar http.cookies http.server importlib.metadata "
    "importlib.resources importlib.util json.decoder logging.config logging.handlers multiprocessing.pool os.path "
    "unittest.mock urllib.error urllib.parse urllib.request urllib.robotparser wsgiref.headers xml.dom.minidom "
    "xml.etree.ElementTree xml.sax xml.sax.saxutils xmlrpc.client"
).split()
_HEAD = """\
# The standard library in `restricted`

Which modules code may import, and what to write instead of the others. *Facade*: the real module as a frozen object with the
names that only compute. *Guest code*: Python source, the library's own where it says so, that runs under the dialect like the
program itself. Other modules are refused before anything runs. Threads [take turns](threads.md).

| modules | here |
| --- | --- |
"""


def modules() -> list[str]:
    """Return the public modules of this Python, and of those below packages the ones that are asked for most."""
    return sorted({name for name in sys.stdlib_module_names if not name.startswith("_")} | set(_SUBMODULES))


def status(module: str) -> str:
    """Return what the page says of a module."""
    if module in facades.exports():
        return "facade"
    if guest_modules.exists(module):
        own = _GUEST_MODULES.joinpath(*module.split("."))
        is_own = own.with_suffix(".py").is_file() or (own / "__init__.py").is_file()
        return "guest code" if is_own else "guest code, the library's own"
    return f"no: {instead_of(module)}"


def rows() -> dict[str, str]:
    """Return what the page says, by module."""
    table = _ROW.findall(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else []
    return {module: said for together, said in table for module in re.findall(r"`([\w.]+)`", together)}


def main() -> None:
    """Write the page."""
    known = rows() | {module: status(module) for module in modules()}
    alike: dict[str, list[str]] = {}
    for module in sorted(known):
        alike.setdefault(known[module], []).append(f"`{module}`")
    table = "".join(f"| {' '.join(alike[said])} | {said} |\n" for said in sorted(alike))
    PAGE.write_text(_HEAD + table, encoding="utf-8")


if __name__ == "__main__":
    main()
