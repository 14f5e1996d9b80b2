"""nginx before the replicas as `deploy/compose` has it, without affinity: each request goes to the next replica.

Each replica has a port of its own on the balancer too, for checks that have to know who answers.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .network import Network

PUBLIC_NAME = "sealab.example"
_SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "compose" / "nginx.conf"


def _shipped(to: str, added: str) -> str:
    """Return the locations that `deploy/compose` gives nginx, which lead somewhere else, end TLS before them, and add more."""
    text = _SHIPPED.read_text()
    locations = text[text.index("        location / {") : text.rindex("    }\n}")]
    for name, value in (("http://sealab;", f"http://{to};{added}"), ("$http_host", PUBLIC_NAME), ("$scheme", "https")):
        assert name in locations, name
        locations = locations.replace(name, value)
    return locations


def _failing() -> str:
    """Return what `deploy/compose` says of a server that cannot be reached."""
    found = re.search(r"server sealab-1:8000 ([^;]*);", _SHIPPED.read_text())
    assert found is not None
    return found[1]


class Balancer:
    """A running nginx. `url` goes round; `urls` go to one replica each."""

    def __init__(self, network: Network, replicas: Mapping[str, str], folder: Path) -> None:
        self._network, self._replicas, self._folder = network, replicas, folder
        self._out: set[str] = set()
        self._token: str | None = None
        self._read = 0
        host = network.ip("balancer")
        self.url = f"http://{host}:{network.port('balancer')}/mcp"
        self.urls = {name: f"http://{host}:{network.port('balancer', name)}/mcp" for name in replicas}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self._write()
        command = [*self._network.launcher("balancer"), _program(), "-c", str(self._folder / "nginx.conf")]
        with open(self._folder / "log", "ab") as log:
            self.process = subprocess.Popen([*command, "-e", str(self._folder / "log")], stderr=log)

    def take_out(self, name: str) -> None:
        """Send no new request to a replica; those at work go on."""
        self._out.add(name)
        self._reload()

    def put_back(self, name: str) -> None:
        """Send it requests again."""
        self._out.discard(name)
        self._reload()

    def url_with(self, token: str) -> str:
        """Return a URL that goes round, where the balancer adds a token: for clients that cannot give one."""
        self._token = token
        self._reload()
        return f"http://{self._network.ip('balancer')}:{self._network.port('balancer', 'with a token')}/mcp"

    def _reload(self) -> None:
        assert self.process is not None
        self._write()
        self.process.send_signal(signal.SIGHUP)

    def faults(self) -> Counter[str]:
        """Return what its log says of replicas since this was last asked, without who asked."""
        with open(self._folder / "log") as log:
            log.seek(self._read)
            found = re.findall(r"\[error\] [^*]*\*\d+ ([^,]*)", log.read())
            self._read = log.tell()
        return Counter(found)

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def _write(self) -> None:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {self._folder / kind};\n" for kind in kinds)
        host = self._network.ip("balancer")
        servers = "".join(
            f"    server {address} {'down' if name in self._out else _failing()};\n"
            for name, address in self._replicas.items()
        )
        port = self._network.port
        listens = [(port("balancer"), "replicas", "")]
        listens += [(port("balancer", name), address, "") for name, address in self._replicas.items()]
        if self._token is not None:
            added = f'\n            proxy_set_header Authorization "Bearer {self._token}";'
            listens.append((port("balancer", "with a token"), "replicas", added))
        blocks = "".join(
            f"server {{\n    listen {host}:{at};\n    client_max_body_size 5m;\n{_shipped(to, added)}}}\n"
            for at, to, added in listens
        )
        user = "user root;\n" if os.geteuid() == 0 else ""
        written = self._folder / "nginx.conf"
        written.write_text(
            f"{user}daemon off;\npid {self._folder / 'nginx.pid'};\nworker_processes 1;\n"
            f"worker_rlimit_nofile 16384;\nevents {{ worker_connections 8192; }}\n"
            f"http {{\naccess_log off;\n{temporary}upstream replicas {{\n{servers}}}\n{blocks}}}\n"
        )


def _program() -> str:
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise LookupError("There is no nginx here. Install it (Debian: apt install nginx-light).")
    return found


@contextmanager
def balancer_of(network: Network, replicas: Mapping[str, str], folder: Path) -> Iterator[Balancer]:
    """Run nginx before replicas, given by their names and addresses."""
    folder.mkdir()
    balancer = Balancer(network, replicas, folder)
    balancer.start()
    try:
        yield balancer
    finally:
        balancer.stop()
