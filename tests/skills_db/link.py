"""A way to a PostgreSQL server that can be cut as a network is: what is sent is kept back, and nobody is told."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .conftest import Place
from .postgres import Cluster

_PIECE = 65_536


class Link:
    """Carries what is sent to and from a server while it is whole; each connection has a thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._socket = f"{cluster.folder}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._whole = threading.Event()
        self._whole.set()
        self._to_server = threading.Event()
        self._to_server.set()
        self._closed = False
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self._listener.getsockname()[1])

    def cut(self) -> None:
        """Carry nothing any more."""
        self._whole.clear()
        self._to_server.clear()

    def mute(self) -> None:
        """Carry what clients send, but no answer."""
        self._whole.clear()
        self._to_server.set()

    def mend(self) -> None:
        """Carry everything again, what was kept back first."""
        self._whole.set()
        self._to_server.set()

    def close(self) -> None:
        """Carry on, and take nobody more."""
        self._closed = True
        self.mend()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            with suppress(OSError):
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._socket)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for end in ready:
                    data = end.recv(_PIECE)
                    if not data:
                        return
                    (self._to_server if end is client else self._whole).wait()
                    (server if end is client else client).sendall(data)


@contextmanager
def linked(cluster: Cluster, place: Place) -> Iterator[tuple[Link, Place]]:
    """Give a link to the server of a place, and the place as it is reached over that."""
    assert place.url is not None
    link = Link(cluster)
    try:
        yield link, Place(place.url.replace("@/", f"@127.0.0.1:{link.port}/").partition("?")[0], place.home)
    finally:
        link.close()
