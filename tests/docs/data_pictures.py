"""Makes the pictures of docs/data.md by running its own examples.

    python -m tests.docs.data_pictures PYTHON

PYTHON is an interpreter with pandas and matplotlib (`make science`). The n-th figure that the page's programs show is
`docs/pictures/data-<n>.png`.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import struct
import tempfile
import zlib
from pathlib import Path

from ..server.conftest import in_this_process
from .blocks import ROOT, blocks_of

PAGE = "docs/data.md"


def environment(python: str) -> dict[str, str]:
    """Return the settings of a server that runs the page's programs in full Python."""
    return {"SEALAB_PROCESS_PYTHON": python, "SEALAB_ALLOWED_ISOLATION": "restricted,process"}


async def shown_by_page(home: Path, python: str) -> list[bytes]:
    """Run the programs of the page in one session; return the figures that they show, in order."""
    shown = []
    async with in_this_process(home, environment(python)) as caller:
        for block in blocks_of(PAGE):
            if block.kind == "python" and block.shows is None:
                answer = await caller.call("execute_code", code=block.text, session="page", isolation="process")
                assert not answer.is_error, f"{block}\n{answer.structured_content}"
                shown += [base64.b64decode(each.data) for each in answer.content if each.type == "image"]
    return shown


def picture(number: int) -> Path:
    """Return where the n-th figure of the page lies, from 1 on."""
    return ROOT / "docs" / "pictures" / f"data-{number}.png"


def drawn(png: bytes) -> tuple[bytes, bytes]:
    """Return size and pixels of a PNG: its header, and its data unpacked."""
    at, header, packed = 8, b"", b""
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        header, packed = (content, packed) if kind == b"IHDR" else (header, packed + content * (kind == b"IDAT"))
        at += length + 12
    return header, zlib.decompress(packed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python")
    python = parser.parse_args().python
    with tempfile.TemporaryDirectory() as home:
        for number, content in enumerate(asyncio.run(shown_by_page(Path(home), python)), 1):
            picture(number).write_bytes(content)
            print(picture(number).relative_to(ROOT))


if __name__ == "__main__":
    main()
