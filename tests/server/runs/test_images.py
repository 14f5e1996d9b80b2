"""Images of results and of workspace files, as the model gets them."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from sealab.server.use_cases.runs import images
from sealab.server.use_cases.runs.images import IMAGE_BYTES_MAX, IMAGES_MAX, image_type

from ..conftest import Caller, in_process_server, in_this_process
from ..upstream_tools.test_registry import ONE_SPARE, configure, upstream


def png(size: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\0"))
        + chunk(b"IEND", bytes(size))
    )


caller = in_process_server(ONE_SPARE, lambda home: configure(home, up=upstream()))


async def ran(caller: Caller, code: str) -> tuple[dict[str, Any], list[Any]]:
    answer = await caller.call("execute_code", code=code)
    assert answer.structured_content is not None
    return answer.structured_content, [each for each in answer.content if each.type == "image"]


async def test_the_picture_of_a_tool_that_is_the_result_reaches_the_model(caller) -> None:
    report, [image] = await ran(caller, "_, picture = await tools.up.picture()\npicture")
    content = base64.b64decode(image.data)
    assert (image.mime_type, content[:4]) == ("image/png", b"\x89PNG")
    assert report["images"] == [{"mime_type": "image/png", "size": len(content)}]
    _, images = await ran(caller, "pictures = [(await tools.up.picture())[1] for _ in range(2)]\npictures")
    assert len(images) == 2
    assert (await ran(caller, "_, picture = await tools.up.picture()\npicture['size']"))[1] == []


async def test_bytes_of_an_image_are_shown_and_kept_and_no_base64_stands_in_the_result(caller) -> None:
    report, [image] = await ran(caller, f"import base64\nbase64.b64decode({base64.b64encode(png()).decode()!r})")
    assert base64.b64decode(image.data) == png()
    handle = report["result"]["handle"]
    assert report["result"] == {"type": "image", "mime_type": "image/png", "size": len(png()), "handle": handle}
    again, _ = await ran(caller, f"len(read_file({handle!r}, encoding=None))")
    assert again["result"] == len(png())
    assert (await ran(caller, "b'no image at all'"))[1] == []
    assert (await ran(caller, "'iVBORw0KGgo' * 3"))[1] == [], "a text is no image"


def test_of_a_long_list_few_items_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    seen = images._seen

    def counted(value: Any, place: str, *more: Any, **named: Any) -> Any:
        looks.append(place)
        return seen(value, place, *more, **named)

    monkeypatch.setattr(images, "_seen", counted)
    picture = base64.b64encode(png()).decode()
    notes = {"result[800000]": f"{len(png())} bytes as base64", "result[9000000]": "1 bytes as base64"}
    found = images.pictured([{"type": "image"}, *[""] * 799_999, picture, *[{}] * 9], notes, {}, ".runs/r")
    assert looks == ["result[0]", "result[800000]"]
    assert len(found.pictures) == 1
    assert found.result[800_000]["type"] == "image"
    assert images.pictured([{}] * 9_999, {}, {}, "").result == [{}] * 9_999
    assert len(looks) == 2 + images.ITEMS_MAX


async def test_what_is_too_large_or_too_many_is_left_out_and_said(caller) -> None:
    small = f"import base64\npicture = base64.b64decode({base64.b64encode(png()).decode()!r})\n"
    report, images = await ran(caller, f"{small}[picture] * {IMAGES_MAX + 2}")
    assert len(images) == len(report["images"]) == IMAGES_MAX
    assert "2 of the result are too many" in report["truncated"]["images"]["note"]
    report, images = await ran(caller, f"{small}picture + bytes({IMAGE_BYTES_MAX})")
    assert images == []
    assert "too large" in report["truncated"]["images"]["note"]


async def test_a_workspace_file_that_is_an_image_is_read_as_one(caller) -> None:
    write, read = "write_workspace_file", "read_workspace_file"
    for name, content in (("a.png", png()), ("no.png", b"\xff\xfe no image"), ("large.png", png(IMAGE_BYTES_MAX))):
        await caller.call(write, filename=name, content=base64.b64encode(content).decode(), encoding="base64")
    answer = await caller.call(read, filename="a.png")
    assert base64.b64decode(answer.content[1].data) == png()
    assert answer.structured_content == {"filename": "a.png", "content": "", "size": len(png()), "truncated": False}
    raw = await caller.call(read, filename="a.png", encoding="base64")
    assert base64.b64decode(raw.structured_content["content"]) == png()
    for name in ("no.png", "large.png"):
        refused = await caller.refusal(read, filename=name)
        assert "not text" in refused or "UTF-8" in refused


async def test_where_everything_is_filtered_no_image_is_shown(tmp_path: Path) -> None:
    configure(tmp_path, up=upstream())
    async with in_this_process(tmp_path, ONE_SPARE | {"SEALAB_PRIVACY": "auto"}) as caller:
        report, images = await ran(caller, "_, picture = await tools.up.picture()\npicture")
    assert (images, "images" in report) == ([], False)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (png(), "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(99), "image/jpeg"),
        (b"GIF89a" + bytes(99), "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 " + bytes(99), "image/webp"),
        (png()[:8], None),
        (png()[:8] + b"text that is no image", None),
        (b"\xff\xd8\xff", None),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"", None),
    ],
)
def test_images_are_told_by_how_they_begin(content: bytes, kind: str | None) -> None:
    assert image_type(content) == kind
