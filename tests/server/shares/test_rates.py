"""Runs a minute: exact in every window, told with the right time to come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealab.sandbox.errors import Busy
from sealab.server.governance.shares.rates import Rates

from ...clocks import Clock


def test_one_more_than_allowed_is_refused_until_the_first_is_a_minute_ago() -> None:
    clock = Clock()
    rates = Rates(2, 0, clock)
    rates.take("a")
    clock.now += 20
    rates.take("a")
    with pytest.raises(
        Busy, match=r"This caller has begun 2 runs .* \(CALLER_RUNS_PER_MINUTE\).*about 40 seconds"
    ) as why:
        rates.take("a")
    rates.take("b")
    clock.now += why.value.retry_seconds
    rates.take("a")
    assert (rates.of("a"), rates.of("b"), rates.of_tenant()) == (2, 1, 3)


def test_all_callers_of_a_tenant_share_its_bound_and_a_refused_run_counts_for_nobody() -> None:
    clock = Clock()
    rates = Rates(0, 3, clock)
    for caller in ("a", "b", "c"):
        rates.take(caller)
    with pytest.raises(Busy, match=r"This tenant has begun 3 runs .* \(TENANT_RUNS_PER_MINUTE\).*about 60 seconds"):
        rates.take("d")
    assert (rates.of("d"), rates.of_tenant()) == (0, 3)
    clock.now += 60
    assert rates.of_tenant() == 0
    rates.take("d")


def test_callers_that_come_no_more_are_forgotten() -> None:
    clock = Clock()
    rates = Rates(1, 0, clock)
    for number in range(1000):
        rates.take(f"caller {number}")
    clock.now += 60
    rates.take("last")
    assert len(rates._callers) == 1


@given(st.integers(1, 4), st.lists(st.integers(0, 320).map(lambda eighths: eighths / 8), max_size=60))
def test_in_no_minute_more_begin_than_allowed_and_the_time_to_come_back_is_right(
    most: int, pauses: list[float]
) -> None:
    clock = Clock()
    rates = Rates(most, 0, clock)
    begun: list[float] = []
    for pause in pauses:
        clock.now += pause
        try:
            rates.take("a")
        except Busy as busy:
            assert sum(clock.now - 60 < each for each in begun) == most
            back = clock.now + busy.retry_seconds
            assert sum(back - 60 < each for each in begun) < most
        else:
            begun.append(clock.now)
            assert sum(clock.now - 60 < each for each in begun) <= most
