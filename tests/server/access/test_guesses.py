"""An address that sends invalid tokens is slowed down, and no other one with it."""

from __future__ import annotations

import asyncio

from sealab.server.governance.access.guesses import ADDRESSES_MAX, GUESS_SECONDS, GUESSES_MAX, Guesses, block_of

from ...clocks import Clock


async def guess(guesses: Guesses, address: str, *, is_guess: bool = True) -> int:
    wait = await guesses.turn(address)
    if not wait:
        guesses.judged(address, is_guess=is_guess)
    return wait


async def test_after_so_many_guesses_an_address_waits_and_others_do_not() -> None:
    clock = Clock()
    guesses = Guesses(clock)
    assert [await guess(guesses, "192.0.2.1") for _ in range(GUESSES_MAX)] == [0] * GUESSES_MAX
    assert await guess(guesses, "192.0.2.1") == GUESS_SECONDS
    assert await guess(guesses, "192.0.2.2") == 0
    clock.now += GUESS_SECONDS
    assert await guess(guesses, "192.0.2.1") == 0
    assert await guess(guesses, "192.0.2.1") > 0


async def test_valid_tokens_do_not_count() -> None:
    guesses = Guesses(Clock())
    assert not any([await guess(guesses, "192.0.2.1", is_guess=False) for _ in range(10 * GUESSES_MAX)])
    assert guesses._counts == {}


async def test_many_valid_tokens_at_once_wait_for_each_other_and_are_all_judged() -> None:
    guesses = Guesses(Clock())
    at_once = 0
    most = 0

    async def valid() -> int:
        nonlocal at_once, most
        wait = await guesses.turn("192.0.2.1")
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        guesses.judged("192.0.2.1", is_guess=False)
        return wait

    assert await asyncio.gather(*(valid() for _ in range(20 * GUESSES_MAX))) == [0] * 20 * GUESSES_MAX
    assert most == GUESSES_MAX


async def test_guesses_at_once_are_no_more_than_those_one_after_another() -> None:
    guesses = Guesses(Clock())

    async def invalid() -> int:
        wait = await guesses.turn("192.0.2.1")
        if not wait:
            await asyncio.sleep(0)
            guesses.judged("192.0.2.1", is_guess=True)
        return wait

    waits = await asyncio.gather(*(invalid() for _ in range(20 * GUESSES_MAX)))
    assert waits.count(0) == GUESSES_MAX


async def test_one_that_is_cancelled_while_it_waits_keeps_no_other_waiting() -> None:
    guesses = Guesses(Clock())
    for _ in range(GUESSES_MAX):
        assert await guesses.turn("192.0.2.1") == 0
    waiting = [asyncio.create_task(guesses.turn("192.0.2.1")) for _ in range(2)]
    await asyncio.sleep(0)
    guesses.judged("192.0.2.1", is_guess=False)  # whose place the first gets, which has gone
    waiting[0].cancel()
    assert await waiting[1] == 0


async def test_the_addresses_of_one_network_of_ipv6_count_together() -> None:
    guesses = Guesses(Clock())
    for number in range(GUESSES_MAX):
        await guess(guesses, f"2001:db8:0:1::{number:x}")
    assert await guess(guesses, "2001:db8:0:1:ffff::1") > 0
    assert await guess(guesses, "2001:db8:0:2::1") == 0


def test_an_address_is_counted_as_what_one_machine_can_have() -> None:
    for address, block in (
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ):
        assert block_of(address) == block, address


async def test_ever_new_addresses_take_no_more_than_so_much_memory() -> None:
    guesses = Guesses(Clock())
    for number in range(ADDRESSES_MAX + 100):
        await guess(guesses, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(guesses._counts) == ADDRESSES_MAX
