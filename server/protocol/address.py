"""Where HTTP may listen: on loopback only, until there is authentication."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from ..errors import AddressRefused

_PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """A loopback IP address and a port, 0 for any free one."""

    ip: str
    port: int

    @property
    def in_url(self) -> str:
        """The IP address as it stands in a URL."""
        return f"[{self.ip}]" if ":" in self.ip else self.ip

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `HOST:PORT`, IPv6 in brackets. Raises `AddressRefused` for what is not loopback or not an address.

        A name is looked up once, here, and every address it stands for must be loopback.
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
        if not all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found):
            raise AddressRefused(
                f"{host} can be reached from other machines, and there is no authentication yet. "
                f"Listen on loopback: 127.0.0.1:{port}."
            )
        return cls(found[0], int(port))

    def listen(self) -> socket.socket:
        """Return a listening socket. Raises `AddressRefused` where the port is taken."""
        try:
            listener = socket.create_server(
                (self.ip, self.port), family=socket.AF_INET6 if ":" in self.ip else socket.AF_INET
            )
        except OSError as error:
            raise AddressRefused(
                f"{self.in_url}:{self.port} cannot be listened on: {error.strerror}. Choose another port."
            ) from error
        # An accepted connection inherits it (tcp(7)). asyncio sets it only on sockets whose protocol number says TCP,
        # and on this listener's it does not: each answer would wait 40 ms for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
