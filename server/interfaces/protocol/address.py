"""Security boundary: where HTTP may listen. Beyond loopback only with authentication, and with TLS or behind a proxy.

Without TLS a token could be read and used by whoever is between (RFC 6750, 5.3).
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import AddressRefused

_PORT_MAX = 65535
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Exposure:
    """How a server is protected from those that reach it: what decides whether it may listen beyond loopback."""

    authenticates: bool = False
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[Network, ...] = ()
    public_url: str | None = None
    """The address that clients use, where it is not the one listened on."""

    @property
    def has_tls(self) -> bool:
        """Whether the server itself encrypts."""
        return self.certificate is not None

    @property
    def scheme(self) -> str:
        """The scheme of the address listened on."""
        return "https" if self.has_tls else "http"

    @classmethod
    def parse(
        cls,
        *,
        authenticates: bool,
        certificate: str | None = None,
        key: str | None = None,
        proxies: str | None = None,
        public_url: str | None = None,
    ) -> Exposure:
        """Read the options of the command line. Raises `AddressRefused` for files or networks that cannot be used."""
        if (certificate is None) != (key is None):
            raise AddressRefused("TLS needs a certificate and its key. Give both, with --tls-cert and --tls-key.")
        files = [None if name is None else Path(name) for name in (certificate, key)]
        for file in files:
            if file is not None and not file.is_file():
                raise AddressRefused(f"There is no file {file}. Name the PEM files with --tls-cert and --tls-key.")
        networks: list[Network] = []
        for part in [] if proxies is None else proxies.split(","):
            try:
                networks.append(ipaddress.ip_network(part.strip()))
            except ValueError:
                raise AddressRefused(_fault_of_network(part.strip())) from None
        if any(network.prefixlen == 0 for network in networks):
            raise AddressRefused(
                "A proxy at every address would mean that anybody's forwarded headers count. Name the proxy's address."
            )
        return cls(authenticates, files[0], files[1], tuple(networks), public_url)

    def why_loopback_only(self) -> tuple[str, str] | None:
        """Return why the server may not be reached from other machines and what would change that, or None."""
        if not self.authenticates:
            return "there is no authentication", "set AUTH to tokens or oauth"
        if not self.has_tls and not self.proxies:
            instead = "give --tls-cert and --tls-key, or --behind-proxy with the address of the proxy that has TLS"
            return "tokens would be sent in clear", instead
        return None


def _fault_of_network(text: str) -> str:
    with suppress(ValueError):
        whole = ipaddress.ip_network(text, strict=False)
        one = text.partition("/")[0]
        return (
            f"The proxy {text} is one address of the network {whole}. Give {one} alone, or the whole network {whole}."
        )
    return (
        f"{text!r} is not the address of a proxy. Give addresses or networks, such as 10.0.0.7 or 10.0.0.0/24, parted "
        "by commas."
    )


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address to listen on and a port, 0 for any free one."""

    ip: str
    port: int

    @property
    def in_url(self) -> str:
        """The IP address as it stands in a URL."""
        return f"[{self.ip}]" if ":" in self.ip else self.ip

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(self.ip.partition("%")[0]).is_loopback

    @property
    def is_every(self) -> bool:
        """Whether it stands for every address of the machine, and so is none that a client could use."""
        return ipaddress.ip_address(self.ip.partition("%")[0]).is_unspecified

    @classmethod
    def parse(cls, text: str, exposure: Exposure = Exposure()) -> Address:
        """Read `HOST:PORT`, IPv6 in brackets. Raises `AddressRefused` for what may not be listened on, or no address.

        A name is looked up once, here, and unless the server is protected every address it stands for must be loopback.
        """
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isdecimal() or int(port) > _PORT_MAX:
            raise AddressRefused(f"{text!r} is not an address. Give HOST:PORT, for example 127.0.0.1:8000.")
        try:
            entries = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise AddressRefused(f"The host {host!r} is not known. Give 127.0.0.1:{port}.") from None
        found = [str(entry[4][0]) for entry in sorted(entries, key=lambda entry: entry[0] != socket.AF_INET)]
        is_public = not all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)
        if is_public and (why := exposure.why_loopback_only()):
            raise AddressRefused(
                f"{host} can be reached from other machines, and {why[0]}. Listen on loopback: 127.0.0.1:{port}, or "
                f"{why[1]}."
            )
        address = cls(found[0], int(port))
        if address.is_every and exposure.public_url is None:
            raise AddressRefused(
                f"{host} is no address that a client could use, so it is not known which names count. Set PUBLIC_URL "
                "to the address that clients use, such as https://sealab.example."
            )
        return address

    def listen(self) -> socket.socket:
        """Return a listening socket. Raises `AddressRefused` where the port is taken."""
        try:
            listener = socket.create_server(
                (self.ip, self.port), family=socket.AF_INET6 if ":" in self.ip else socket.AF_INET
            )
        except OSError as error:
            advice = (
                "Give an address of this machine, not that of the proxy or of its clients."
                if error.errno == errno.EADDRNOTAVAIL
                else "Choose another port."
            )
            why = os.strerror(error.errno) if error.errno else error.strerror
            raise AddressRefused(f"{self.in_url}:{self.port} cannot be listened on: {why}. {advice}") from error
        # An accepted connection inherits it (tcp(7)). asyncio sets it only on sockets whose protocol number says TCP,
        # and on this listener's it does not: each answer would wait 40 ms for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
