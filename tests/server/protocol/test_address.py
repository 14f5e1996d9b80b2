from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sealab.server.base.errors import AddressRefused
from sealab.server.interfaces.protocol.address import Address, Exposure


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
    with pytest.raises(AddressRefused, match=r"there is no authentication\. Listen on loopback"):
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


def test_an_address_of_another_machine_is_told_as_such() -> None:
    with pytest.raises(AddressRefused, match="Give an address of this machine"):
        Address("192.0.2.7", 0).listen()


def test_an_address_with_the_length_of_its_network_is_told_as_such() -> None:
    with pytest.raises(AddressRefused, match=r"Give 10\.0\.0\.7 alone, or the whole network 10\.0\.0\.0/24"):
        Exposure.parse(authenticates=True, proxies="10.0.0.7/24")


def test_an_answer_is_sent_without_waiting_for_the_one_before_to_be_acknowledged() -> None:
    with Address("127.0.0.1", 0).listen() as listener, socket.create_connection(listener.getsockname()):
        connection, _peer = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


AUTHENTICATES = Exposure(authenticates=True)
BEHIND = Exposure.parse(authenticates=True, proxies="10.0.0.7, 10.1.0.0/16")


def test_an_address_beyond_loopback_needs_tls_or_a_proxy_beside_authentication() -> None:
    with pytest.raises(AddressRefused, match=r"in clear\. Listen on loopback: 127\.0\.0\.1:80, or give --tls-cert"):
        Address.parse("192.0.2.1:80", AUTHENTICATES)
    address = Address.parse("192.0.2.1:80", BEHIND)
    assert (address.ip, address.is_loopback) == ("192.0.2.1", False)


def test_a_proxy_alone_makes_no_address_public() -> None:
    with pytest.raises(AddressRefused, match="there is no authentication"):
        Address.parse("192.0.2.1:80", Exposure.parse(authenticates=False, proxies="10.0.0.7"))


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80"])
def test_every_address_needs_the_one_that_clients_use(text: str) -> None:
    with pytest.raises(AddressRefused, match="Set PUBLIC_URL"):
        Address.parse(text, BEHIND)
    known = Exposure.parse(authenticates=True, proxies="10.0.0.7", public_url="https://sealab.example")
    assert Address.parse(text, known).is_every


@pytest.mark.parametrize("proxies", ["", "proxy.example", "10.0.0.7,", "10.0.0.1/8", "0.0.0.0/0", "::/0"])
def test_what_names_no_proxy_or_every_machine_is_refused(proxies: str) -> None:
    with pytest.raises(AddressRefused, match="proxy"):
        Exposure.parse(authenticates=True, proxies=proxies)


def test_tls_needs_both_of_its_files(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    with pytest.raises(AddressRefused, match="Give both"):
        Exposure.parse(authenticates=True, certificate=str(file))
    with pytest.raises(AddressRefused, match="There is no file"):
        Exposure.parse(authenticates=True, certificate=str(file), key=str(file))
