"""What the pages behind links have in common."""

from __future__ import annotations

import base64
import hashlib

import pytest

from sealab.server.interfaces.protocol.web.link_pages import form_page, page, sent_answer


def test_a_page_runs_nothing_is_shown_in_no_frame_and_is_kept_nowhere() -> None:
    for shown in (page(200, "Answered", "It was."), form_page("A run asks", "<form></form>")):
        policy = shown.headers["content-security-policy"].split("; ")
        style = base64.b64encode(hashlib.sha256(shown.body.split(b"style>")[1].removesuffix(b"</")).digest()).decode()
        only = {f"style-src 'sha256-{style}'", "form-action 'self'"}
        assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", *only} == set(policy)
        assert shown.headers["x-frame-options"] == "DENY"
        assert shown.headers["cache-control"] == "no-store"
        assert shown.headers["referrer-policy"] == "same-origin"
        assert shown.headers["x-content-type-options"] == "nosniff"


def test_what_stands_on_a_page_is_text() -> None:
    shown = page(200, "<b>", "</p><script>alert(1)</script>\x1b")
    assert b"<script>" not in shown.body
    assert b"&lt;script&gt;" in shown.body
    assert b"\\u001b" in shown.body


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"answer=approve", "approve"),
        (b"answer=approve&answer=deny", None),
        (b"answer=approve&more=1", None),
        (b"answer=" + b"x" * 17_000, None),
        (b"", None),
    ],
)
async def test_a_form_says_one_thing(sent: bytes, answer: str | None) -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": sent, "more_body": False}

    assert await sent_answer(receive) == answer
