"""An address that sends invalid tokens is slowed down, and no other one with it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sealab.server.access.guesses import ADDRESSES_MAX, GUESS_SECONDS, GUESSES_MAX, Guesses, block_of


@dataclass
class Clock:
    """A clock that tests turn."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_after_so_many_guesses_an_address_waits_and_others_do_not() -> None:
    clock = Clock()
    guesses = Guesses(clock)
    for _ in range(GUESSES_MAX):
        assert guesses.wait_seconds("192.0.2.1") == 0
        guesses.begin("192.0.2.1")
    assert guesses.wait_seconds("192.0.2.1") == GUESS_SECONDS
    assert guesses.wait_seconds("192.0.2.2") == 0
    clock.now += GUESS_SECONDS
    assert guesses.wait_seconds("192.0.2.1") == 0
    guesses.begin("192.0.2.1")
    assert guesses.wait_seconds("192.0.2.1") > 0


def test_valid_tokens_do_not_count() -> None:
    guesses = Guesses(Clock())
    for _ in range(10 * GUESSES_MAX):
        guesses.begin("192.0.2.1")
        guesses.was_none("192.0.2.1")
    assert guesses.wait_seconds("192.0.2.1") == 0


def test_the_addresses_of_one_network_of_ipv6_count_together() -> None:
    guesses = Guesses(Clock())
    for number in range(GUESSES_MAX):
        guesses.begin(f"2001:db8:0:1::{number:x}")
    assert guesses.wait_seconds("2001:db8:0:1:ffff::1") > 0
    assert guesses.wait_seconds("2001:db8:0:2::1") == 0


@pytest.mark.parametrize(
    ("address", "block"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix", "unix"),
    ],
)
def test_an_address_is_counted_as_what_one_machine_can_have(address: str, block: str) -> None:
    assert block_of(address) == block


def test_ever_new_addresses_take_no_more_than_so_much_memory() -> None:
    guesses = Guesses(Clock())
    for number in range(ADDRESSES_MAX + 100):
        guesses.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(guesses._counts) == ADDRESSES_MAX
