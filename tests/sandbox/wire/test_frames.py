"""Framing: what is read is what was sent, and nothing a child sends does more than raise `FrameError`."""

from __future__ import annotations

import base64
import io
import itertools
import json
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.errors import FrameError
from sealab.sandbox.job import Failure, Outcome, Refusal, Status
from sealab.sandbox.wire import frames as protocol
from sealab.sandbox.wire import report_frame
from sealab.sandbox.wire.frames import Call, Frames, Ready, child_frame, decode, encode

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=12,
)
frames = st.dictionaries(st.text(), json_values, max_size=5)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def body_of(frame: dict[str, object]) -> bytes:
    return json.dumps(frame).encode()


def done(**changes: object) -> bytes:
    return body_of({"t": "done", "status": "ok", "result": 1, "error": None, "notes": {}, **changes})


def failure(**changes: object) -> dict[str, object]:
    return {"type": "E", "message": "m", "line": 1, "hint": None, "traceback": None, **changes}


@given(st.lists(frames, max_size=4), st.lists(st.integers(1, 300), min_size=1, max_size=8))
def test_frames_come_out_as_they_went_in_however_they_were_chunked(sent, sizes):
    stream = io.BytesIO(b"".join(encode(frame) for frame in sent))
    reader, received, size = Frames(), [], itertools.cycle(sizes)
    while chunk := stream.read(next(size)):
        reader.feed(chunk)
        while (body := reader.next()) is not None:
            received.append(decode(body))
    assert received == sent
    assert reader.pending == 0


@given(st.text(st.characters(), max_size=20))
def test_lone_surrogates_travel_as_valid_utf8_json(text):
    encoded = encode({"text": text + "\ud800"})
    assert json.loads(encoded[4:].decode("utf-8")) == {"text": text + "\ud800"}
    assert decode(encoded[4:]) == {"text": text + "\ud800"}


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_hostile_bytes_raise_frame_errors_and_nothing_else(chunks):
    reader = Frames()
    with suppress(FrameError):
        for chunk in chunks:
            reader.feed(chunk)
            while (body := reader.next()) is not None:
                child_frame(body)


@given(json_values)
def test_any_json_in_place_of_a_frame_raises_frame_errors_and_nothing_else(value):
    with suppress(FrameError):
        child_frame(body_of(value))


@given(
    st.sampled_from(["ready", "call", "done"]),
    st.dictionaries(
        st.sampled_from(["t", "layers", "name", "args", "status", "result", "error", "notes"]), json_values
    ),
)
def test_frames_with_wrong_types_raise_frame_errors_and_nothing_else(kind, rest):
    with suppress(FrameError):
        child_frame(body_of({**rest, "t": kind}))


@pytest.mark.parametrize("length", [0, protocol.FRAME_BYTES_MAX + 1, 0xFFFFFFFF])
def test_a_length_out_of_bounds_is_refused_from_the_header_alone(length):
    with pytest.raises(FrameError):
        Frames().feed(struct.pack(">I", length))


@pytest.mark.parametrize(
    "start",
    [b'{"t":"call","name":"f"', b'{"t":"ready",', b'{ "t":"done"', b'{"t":"don\\u0065"', b"[", b'{"t":"done"}'],
)
def test_only_what_begins_as_a_report_may_be_longer_than_a_call(start):
    header = struct.pack(">I", protocol.CALL_BYTES_MAX + 1)
    with pytest.raises(FrameError):
        Frames().feed(header + start)
    Frames().feed(struct.pack(">I", protocol.CALL_BYTES_MAX) + start)


def test_a_long_report_is_taken_however_its_start_was_chunked():
    body = done(result="x" * protocol.CALL_BYTES_MAX).replace(b'{"t": "done", ', protocol.DONE_START)
    reader = Frames()
    for at in range(40):
        reader.feed(framed(body)[at : at + 1])
        assert reader.next() is None
    reader.feed(framed(body)[40:])
    assert reader.next() == body
    assert encode({"t": "done", "status": "ok"})[4:].startswith(protocol.DONE_START)


def test_a_call_holds_fewer_values_than_a_report():
    values = b"[" + b"1," * protocol.CALL_VALUES_MAX + b"1]"
    with pytest.raises(FrameError, match="values"):
        child_frame(b'{"t":"call","name":"f","args":{"x":' + values + b"}}")
    report = protocol.DONE_START + b'"status":"ok","error":null,"notes":{},"result":' + values + b"}"
    assert isinstance(child_frame(report), Outcome)


def test_a_frame_that_is_too_large_is_not_made():
    with pytest.raises(FrameError):
        encode({"text": "x" * protocol.FRAME_BYTES_MAX})


def test_every_kind_of_frame_is_read():
    assert child_frame(body_of({"t": "ready", "layers": ["a", "b"]})) == Ready(("a", "b"))
    assert child_frame(body_of({"t": "call", "name": "f", "args": {"x": [1]}})) == Call("f", {"x": [1]})
    assert child_frame(done()) == Outcome(Status.OK, 1)
    failed = child_frame(done(status="error", result=None, error=failure(line=7), notes={"a": "b"}))
    assert failed == Outcome(Status.ERROR, error=Failure("E", "m", 7), notes={"a": "b"})


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"t":"call","name":"a","name":"b","args":{}}', id="a name twice"),
        pytest.param(b'{"t":"call","name":"a","args":{"x":1,"x":2}}', id="a name twice deeper"),
        pytest.param(b'{"t":"call","name":"a","args":{},"id":1}', id="an unknown key"),
        pytest.param(b'{"t":"call","name":"a","args":{},"session":"other"}', id="a forged identity"),
        pytest.param(b'{"t":"call","name":"a"}', id="a missing key"),
        pytest.param(b'{"t":"call","name":1,"args":{}}', id="a name that is no text"),
        pytest.param(b'{"t":"call","name":"a","args":[]}', id="arguments that are no object"),
        pytest.param(b'{"t":"answer","id":1,"value":1}', id="a frame of the host's"),
        pytest.param(b'{"t":"run"}', id="another frame of the host's"),
        pytest.param(b'{"t":["done"]}', id="a kind that is no text"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'{"t":"ready","layers":NaN}', id="NaN"),
        pytest.param(
            b'{"t":"done","status":"ok","result":1e999,"error":null,"notes":{}}', id="a number beyond all floats"
        ),
        pytest.param(
            b'{"t":"done","status":"ok","result":' + b"9" * 100_000 + b',"error":null,"notes":{}}', id="too many digits"
        ),
        pytest.param(b'{"t":"ready","layers":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="deep"),
        pytest.param(b'{"t":"ready","layers":' + b"[" * 101 + b"]" * 101 + b"}", id="one too deep"),
        pytest.param(done(status="timeout"), id="a status that only the host may give"),
        pytest.param(done(status=["ok"]), id="a status that is no text"),
        pytest.param(done(error=failure(line="1")), id="a line that is no number"),
        pytest.param(done(error=failure(line=True)), id="a line that is a truth value"),
        pytest.param(done(error=failure(line=-1)), id="a negative line"),
        pytest.param(done(error=failure(message="x" * (report_frame.SAID_CHARS_MAX + 1))), id="a message without end"),
        pytest.param(done(error=failure(secret="x")), id="an error with an unknown key"),
        pytest.param(done(notes={"a": 1}), id="a note that is no text"),
        pytest.param(done(notes={str(n): "" for n in range(report_frame.NOTES_MAX + 1)}), id="notes without end"),
    ],
)
def test_a_frame_that_is_not_exactly_as_it_should_be_is_refused(body):
    with pytest.raises(FrameError):
        child_frame(body)


def test_depth_up_to_the_limit_is_read():
    inner = protocol.DEPTH_MAX - 1
    frame = child_frame(
        b'{"t":"done","status":"ok","result":' + b"[" * inner + b"]" * inner + b',"error":null,"notes":{}}'
    )
    assert isinstance(frame, Outcome)


def test_brackets_and_commas_inside_texts_do_not_count():
    text = "[{," * protocol.VALUES_MAX + '\\"[{,' * 1000
    frame = child_frame(encode({"t": "done", "status": "ok", "result": text, "error": None, "notes": {}})[4:])
    assert isinstance(frame, Outcome)
    assert frame.result == text


def test_more_values_than_memory_should_hold_are_refused_before_they_are_decoded():
    with pytest.raises(FrameError, match="values"):
        decode(b'{"x":[' + b"{}," * protocol.VALUES_MAX + b"{}]}")


def test_what_a_report_says_can_always_be_written_as_utf8():
    frame = child_frame(done(result={"a\ud800": ["\udfff", "\U0001f600"]}, error=failure(message="\ud83d")))
    assert isinstance(frame, Outcome)
    json.dumps(frame.result, ensure_ascii=False).encode("utf-8")
    assert frame.result == {"a\ufffd": ["\ufffd", "\U0001f600"]}
    assert frame.error is not None
    assert frame.error.message == "\ufffd"


def png(width: int = 4, height: int = 3, more: bytes = b"") -> str:
    start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return base64.b64encode(start + more).decode()


def test_figures_and_refusals_are_read_where_there_are_any():
    frame = child_frame(
        done(figures=[png(), png(2000, 1)], refusal={"module": "numpy", "modules": ["numpy", "pandas"]})
    )
    assert isinstance(frame, Outcome)
    assert [len(figure) for figure in frame.figures] == [24, 24]
    assert frame.refusal == Refusal("numpy", ("numpy", "pandas"))
    assert child_frame(done(refusal={"module": None, "modules": []})).refusal == Refusal(None)
    assert child_frame(done()) == Outcome(Status.OK, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"figures": "x"},
        {"figures": [png()] * 11},
        {"figures": [1]},
        {"figures": ["not base64"]},
        {"figures": [base64.b64encode(b"GIF89a").decode()]},
        {"figures": [base64.b64encode(b"GIF89a" * 9).decode()]},
        {"figures": [png(2001, 1)]},
        {"figures": [png(1, 2001)]},
        {"figures": [png(0, 1)]},
        {"figures": [png(more=bytes(2 * 1024 * 1024))]},
        {"refusal": "numpy"},
        {"refusal": {}},
        {"refusal": {"module": None}},
        {"refusal": {"module": 1, "modules": []}},
        {"refusal": {"module": "m" * 257, "modules": []}},
        {"refusal": {"module": None, "modules": "numpy"}},
        {"refusal": {"module": None, "modules": [1]}},
        {"refusal": {"module": None, "modules": ["m"] * 51}},
        {"images": []},
    ],
)
def test_figures_and_refusals_of_another_shape_are_refused(changes):
    with pytest.raises(FrameError):
        child_frame(done(**changes))
