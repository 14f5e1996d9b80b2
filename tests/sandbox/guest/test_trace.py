"""The trace of a run: what is recorded is followed, and no bytes whatever are followed without an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.guest import clock, randomness
from sealab.sandbox.guest.trace import CLOCK, PROCESSOR, TRACE, ReplayDiverged, Trace, TraceFull
from sealab.sandbox.wire.frames import TRACE_BYTES_MAX, TRACE_PIECE_BYTES_MAX

_READINGS = st.tuples(st.sampled_from([CLOCK, PROCESSOR]), st.one_of(st.just(0), st.integers(0, 1 << 40)))
_INTAKES = st.lists(st.integers(1, 500), max_size=4)


@st.composite
def events(draw):
    return draw(st.lists(st.one_of(_READINGS, _INTAKES, st.just("piece")), max_size=60))


def recorded(happened) -> list[bytes]:
    trace, pieces = Trace(), []
    trace.begin(records=True)
    for each in happened:
        if each == "piece":
            pieces.append(trace.piece() or b"")
        elif type(each) is tuple:
            trace.note_reading(*each)
        else:
            trace.note_intake(each)
    return [*pieces, trace.piece(is_last=True)]


@given(events())
def test_a_trace_gives_what_was_recorded_in_its_order(happened):
    trace = Trace()
    trace.begin(b"".join(recorded(happened)), records=True)
    for each in happened:
        if type(each) is tuple:
            assert trace.reading(each[0]) == each[1]
        elif each != "piece":
            assert list(trace.intake()) == each
    assert trace.piece(is_last=True) is None
    assert trace.failure is None


@given(events(), events())
def test_a_trace_that_was_cut_is_left_at_its_end_and_goes_on(before, after):
    pieces = recorded([*before, (CLOCK, 5), "piece", *after])
    kept = 1 + before.count("piece")
    trace = Trace()
    trace.begin(b"".join(pieces[:kept]), records=True)
    for each in [*before, (CLOCK, 5)]:
        if each != "piece":
            assert (trace.reading(each[0]) if type(each) is tuple else trace.intake()) is not None
    assert trace.reading(CLOCK) is None
    assert not trace.follows
    trace.note_reading(CLOCK, 9)
    whole = Trace()
    whole.begin(b"".join(pieces[:kept]) + trace.piece(is_last=True))
    for each in [*before, (CLOCK, 5)]:
        if each != "piece":
            assert list(whole.intake() if type(each) is list else [whole.reading(each[0])]) is not None
    assert whole.reading(CLOCK) == 9


@given(st.binary(max_size=200), st.lists(st.sampled_from([CLOCK, PROCESSOR, "intake"]), max_size=50))
def test_any_bytes_are_followed_or_refused_and_nothing_else(data, asked):
    trace = Trace()
    try:
        trace.begin(data, records=True)
        for each in asked:
            if not trace.follows:
                break
            if each == "intake":
                trace.intake()
            else:
                trace.reading(each)
        trace.piece(is_last=True)
    except ReplayDiverged:
        with pytest.raises(ReplayDiverged):  # whoever caught the first meets it again
            trace.reading(CLOCK)


def test_a_trace_of_nothing_but_times_that_were_set_forward_is_read_without_recursion():
    readings = bytes([3]) * 100_000
    trace = Trace()
    trace.begin(b"\x01\x00" + bytes([0xA0, 0x8D, 0x06]) + readings + b"\x00")
    assert trace.reading(CLOCK) is None


def test_readings_without_an_end_make_steps_that_grow_and_so_a_bounded_trace():
    trace, sent = Trace(), []
    trace.begin(records=True, flush=lambda: sent.append(trace.piece()))
    now = last = 0
    for _ in range(600_000):  # a reading each 200 µs, for two minutes
        now += 200_000
        shown = max(now - now % trace.step_ns, last)
        trace.note_reading(CLOCK, shown - last)
        last = shown
    sent.append(trace.piece(is_last=True))
    assert sum(map(len, sent)) < 512 * 1024
    assert max(map(len, sent)) <= TRACE_PIECE_BYTES_MAX
    assert trace.step_ns < 100_000_000


def test_a_run_that_meets_more_than_can_be_recorded_ends_with_that_reason():
    trace = Trace()
    trace.begin(records=True, flush=trace.piece)

    def go_on():
        for call in range(10_000_000):
            trace.note_intake([call * 1_000_003 % 999_983])

    with pytest.raises(TraceFull, match=str(TRACE_BYTES_MAX)):
        go_on()
    assert trace.failure is not None


def test_the_random_bytes_of_a_seed_are_its_own_and_no_two_requests_get_the_same():
    def taken(seed):
        randomness.begin(seed, is_first=False)
        return [randomness.urandom(size) for size in (16, 16, 0, 40_000_000)]

    try:
        first, again, other = taken(b"a" * 32), taken(b"a" * 32), taken(b"b" * 32)
    finally:
        randomness._source._key = None
    assert first == again
    assert len({*first[:2], *other[:2]}) == 4
    assert [len(each) for each in first] == [16, 16, 0, 40_000_000]
    with pytest.raises(ValueError, match="negative"):
        randomness.urandom(-1)


def test_the_monotonic_clock_of_a_session_goes_on_though_its_wall_clock_was_set_back():
    kept = clock._clock
    try:
        TRACE.begin()
        kept.begin(5_000 * 10**9, is_first=True)
        first = clock.monotonic()
        kept.begin(4_000 * 10**9, is_first=False)
        second = clock.monotonic()
        kept.begin(4_600 * 10**9, is_first=False)
        third = clock.monotonic()
        assert int(clock.time()) == 4_600
    finally:
        kept.__init__()
    assert first <= second < first + 60
    assert second + 590 < third < second + 660
