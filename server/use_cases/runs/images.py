"""Images that a report gives to the model as images: those that its result holds, beside the figures of the run.

A result holds one where it is the bytes of an image, or the handle that a tool gave for one; a list may hold several.
What an image shows cannot be filtered, so that under `PRIVACY=auto` none is given.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ....sandbox.job import Json

PNG: Final = "image/png"
IMAGES_MAX: Final = 10
"""Images of one result that are given to the model."""
ITEMS_MAX: Final = 1_000
"""Items of a list that are looked at for handles of images."""
IMAGE_BYTES_MAX: Final = 2 * 1024 * 1024
IMAGES_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of all images of one result together."""

_SIGNATURES: Final = ((b"\x89PNG\r\n\x1a\n", PNG), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_WEBP: Final = (b"RIFF", b"WEBP")
_ENDINGS: Final[Mapping[str, str]] = {PNG: "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_HEAD_BYTES: Final = 24
"""Signature, size and little more: no image has less."""
_HEAD_CHARS: Final = 36
_HEADER: Final = slice(12, 16)
_IMAGE_CHARS_MAX: Final = IMAGE_BYTES_MAX * 4 // 3 + 4
_ITEM: Final = re.compile(r"result\[([0-9]{1,9})\]")
_BYTES_NOTE: Final = re.compile(r"\d+ bytes as base64")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image and its MIME type."""

    mime_type: str
    content: bytes


@dataclass(slots=True)
class Pictured:
    """A result without the bytes of images, the images, those to be kept as files of the run, and what was left out."""

    result: Json
    pictures: list[Picture] = field(default_factory=list)
    kept: dict[str, bytes] = field(default_factory=dict)
    left_out: int = 0


def image_type(content: bytes) -> str | None:
    """Return the MIME type of an image that models take, by its first bytes; None for anything else.

    A client sends what it is given to a model, whose provider refuses the whole conversation for a broken image.
    Sources: RFC 2083, section 12.12; ITU T.81, annex B; the GIF89a specification, section 17; RFC 9649, section 2.4.
    """
    has_header = content[_HEADER] == b"IHDR" or not content.startswith(_SIGNATURES[0][0])
    return _begun_type(content) if has_header and len(content) > _HEAD_BYTES else None


def _begun_type(content: bytes) -> str | None:
    if content[:4] == _WEBP[0] and content[8:12] == _WEBP[1]:
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), None)


def pictured(result: Json, notes: Mapping[str, str], files: Mapping[str, bytes], folder: str) -> Pictured:
    """Return what of a result the model gets as images. `files` are the run's own, below `folder`.

    Of a list these are items that a note says are bytes, and handles among its first `ITEMS_MAX`.
    """
    found = Pictured(result)
    if not isinstance(result, list):
        found.result = _seen(result, "result", notes, files, folder=folder, found=found)
        return found
    numbers = {int(place[1]) for each in notes if (place := _ITEM.fullmatch(each))}
    numbers |= {number for number, each in enumerate(result[:ITEMS_MAX]) if isinstance(each, dict)}
    items = list(result)
    for number in sorted(each for each in numbers if each < len(items)):
        items[number] = _seen(items[number], f"result[{number}]", notes, files, folder=folder, found=found)
    found.result = items
    return found


def _seen(
    value: Json, place: str, notes: Mapping[str, str], files: Mapping[str, bytes], *, folder: str, found: Pictured
) -> Json:
    """Take the image that a value is, if it is one; return what stands in its place."""
    if isinstance(value, str) and _BYTES_NOTE.fullmatch(notes.get(place, "")):
        kind = _type_of_base64(value)
        if kind is None:
            return value
        if len(value) > _IMAGE_CHARS_MAX:
            found.left_out += 1
            return value
        content = base64.b64decode(value)
        name = f"{place.replace('[', '-').removesuffix(']')}.{_ENDINGS[kind]}"
        while name in files:
            name = f"own-{name}"
        found.kept[name] = content
        _give(content, kind, found)
        return {"type": "image", "mime_type": kind, "size": len(content), "handle": f"{folder}/{name}"}
    if isinstance(value, Mapping) and value.get("type") == "image" and isinstance(handle := value.get("handle"), str):
        held = files.get(handle.removeprefix(f"{folder}/"), b"")
        kind = _begun_type(held)
        if kind is not None:
            _give(held, kind, found)
    return value


def _give(content: bytes, kind: str, found: Pictured) -> None:
    given = sum(len(each.content) for each in found.pictures)
    if (
        len(found.pictures) < IMAGES_MAX
        and len(content) <= IMAGE_BYTES_MAX
        and given + len(content) <= IMAGES_BYTES_MAX
    ):
        found.pictures.append(Picture(kind, content))
    else:
        found.left_out += 1


def _type_of_base64(text: str) -> str | None:
    try:
        return image_type(base64.b64decode(text[:_HEAD_CHARS], validate=True))
    except binascii.Error:
        return None
