from __future__ import annotations

import socket

import pytest

from sealab.server.errors import AddressRefused
from sealab.server.protocol.address import Address


@pytest.mark.parametrize(
    ("text", "ip", "port", "in_url"),
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000, "127.0.0.1"),
        ("127.9.9.9:0", "127.9.9.9", 0, "127.9.9.9"),
        ("localhost:8000", "127.0.0.1", 8000, "127.0.0.1"),
        ("[::1]:8000", "::1", 8000, "[::1]"),
    ],
)
def test_loopback_addresses_are_taken(text: str, ip: str, port: int, in_url: str) -> None:
    address = Address.parse(text)
    assert (address.ip, address.port, address.in_url) == (ip, port, in_url)


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "10.0.0.1:80", "169.254.169.254:80", "[::ffff:192.0.2.1]:80", "0:80"],
)
def test_addresses_that_other_machines_can_reach_are_refused_until_there_is_authentication(text: str) -> None:
    with pytest.raises(AddressRefused, match=r"no authentication yet\. Listen on loopback"):
        Address.parse(text)


@pytest.mark.parametrize(
    "text", ["", "8000", ":8000", "localhost", "localhost:", "localhost:http", "127.0.0.1:65536", "127.0.0.1:-1"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(AddressRefused, match=r"Give HOST:PORT, for example 127\.0\.0\.1:8000"):
        Address.parse(text)


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(AddressRefused, match="is not known"):
        Address.parse("no-such-host.invalid:80")


def test_a_port_in_use_is_told_as_such() -> None:
    with Address("127.0.0.1", 0).listen() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressRefused, match="Choose another port"):
            Address("127.0.0.1", port).listen()


def test_an_answer_is_sent_without_waiting_for_the_one_before_to_be_acknowledged() -> None:
    with Address("127.0.0.1", 0).listen() as listener, socket.create_connection(listener.getsockname()):
        connection, _peer = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
