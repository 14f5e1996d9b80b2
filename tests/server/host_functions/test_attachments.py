"""What tools gave that is not text, kept as files of the run."""

from __future__ import annotations

import pytest

from sealab.sandbox.errors import HostCallError
from sealab.server.host_functions import attachments
from sealab.server.host_functions.attachments import FILES_MAX, Attachments

LONG = "t" * 100


class Counted(dict[str, bytes]):
    """Files that count how often a name was looked for."""

    looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return super().__contains__(name)


async def test_files_of_one_name_are_numbered_without_trying_all_numbers() -> None:
    files = Counted()
    kept = Attachments("r", files)
    handles = [await kept.keep(b"", "image/png", f"{LONG}{n}.png") for n in range(FILES_MAX)]
    assert len(set(handles)) == FILES_MAX
    assert handles[:3] == [f".runs/r/{LONG[:80]}{end}.png" for end in ("", "-2", "-3")]
    assert files.looks <= 2 * FILES_MAX
    assert await Attachments("r").keep(b"", "text/plain", "code.py") == ".runs/r/code-2.py"


async def test_a_number_that_a_tool_gave_itself_is_passed_over() -> None:
    kept = Attachments("r")
    names = [await kept.keep(b"", "image/png", name) for name in ("a.png", "a-2.png", "a.png", "a.png")]
    assert names == [f".runs/r/{name}.png" for name in ("a", "a-2", "a-3", "a-4")]


async def test_a_run_holds_so_many_files_and_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Attachments("r")
    for _ in range(FILES_MAX):
        await kept.keep(b"", "image/png", "a.png")
    with pytest.raises(HostCallError, match="Ask for less in one run"):
        await kept.keep(b"", "image/png", "a.png")
    monkeypatch.setattr(attachments, "BYTES_MAX", 3)
    with pytest.raises(HostCallError, match="more than 3 bytes or 1000 files"):
        await Attachments("r").keep(b"four", "image/png", "a.png")
