"""Where the parts of a cluster listen: each in a network namespace of its own, or all on loopback.

With namespaces (network_namespaces(7)) each part has a host's own address, port 8000 and a link that can be cut. They
hang at one bridge, in a namespace where the driver and its clients are: nothing of it is seen on the machine's own
network, and it is gone with the namespaces. Their names hold the process id of who made them.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil

PORT = 8000
_NAMES = Path("/run/netns")
_PREFIX = "sealab-"
_CLONE_NEWNET = 0x40000000
_PLACES = {"clients": 1, "balancer": 2, "database": 3, "store": 4}
_FIRST_REPLICA = 10
_NUMBERS = itertools.count(1)
_PROGRAMS = ("ip", "iptables", "nsenter")


class Network(Protocol):
    """Where parts listen, how a process gets there, and what becomes of what they send each other."""

    kind: str
    isolated: bool

    def ip(self, place: str) -> str:
        """Return the address of a place."""

    def port(self, place: str, use: str = "") -> int:
        """Return a port of a place; the same one for the same use."""

    def launcher(self, place: str) -> list[str]:
        """Return the command that runs its arguments at a place."""


class Loopback:
    """All parts on loopback, each on free ports of its own. No link can be cut."""

    kind = "loopback, since network namespaces cannot be made here (they take root, iproute2, iptables and util-linux)"
    isolated = False

    def __init__(self) -> None:
        self._ports: dict[tuple[str, str], int] = {}

    def ip(self, place: str) -> str:  # noqa: ARG002 - all are in one place
        return "127.0.0.1"

    def port(self, place: str, use: str = "") -> int:
        if (place, use) not in self._ports:
            with socket.socket() as found:
                found.bind(("127.0.0.1", 0))
                self._ports[place, use] = found.getsockname()[1]
        return self._ports[place, use]

    def launcher(self, place: str) -> list[str]:  # noqa: ARG002 - all are in one place
        return []


class Namespaces:
    """Each part in a network namespace, all at one bridge."""

    isolated = True

    def __init__(self, replicas: Sequence[str]) -> None:
        self._name = f"{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
        self.kind = f"network namespaces {self._name}-…"
        self._places = dict(_PLACES)
        self._places |= {name: _FIRST_REPLICA + number for number, name in enumerate(replicas, 1)}
        self._ports: dict[tuple[str, str], int] = {}

    def ip(self, place: str) -> str:
        return f"10.89.0.{self._places[place]}"

    def port(self, place: str, use: str = "") -> int:
        used = [known for known in self._ports if known[0] == place]
        return self._ports.setdefault((place, use), PORT + len(used))

    def launcher(self, place: str) -> list[str]:
        return ["nsenter", f"--net={_NAMES / self._space(place)}", "--"]

    def make(self) -> None:
        """Make the namespaces and their links. Raises `CalledProcessError` where that is not allowed."""
        _ip("netns", "add", self._space("clients"))
        self._at("clients", "link", "set", "lo", "up")
        self._at("clients", "link", "add", "bridge", "type", "bridge")
        self._at("clients", "addr", "add", f"{self.ip('clients')}/24", "dev", "bridge")
        self._at("clients", "link", "set", "bridge", "up")
        for place in self._places:
            if place != "clients":
                self._join(place)

    def _join(self, place: str) -> None:
        """Put a place at the bridge."""
        space, link = self._space(place), self._link(place)
        _ip("netns", "add", space)
        self._at("clients", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        self._at("clients", "link", "set", link, "master", "bridge", "up")
        self._at(place, "addr", "add", f"{self.ip(place)}/24", "dev", "eth0")
        self._at(place, "link", "set", "eth0", "up")
        self._at(place, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Remove them, and with them all links."""
        for place in self._places:
            subprocess.run(["ip", "netns", "del", self._space(place)], stderr=subprocess.DEVNULL, check=False)

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        """Move this thread, and what it starts, to a place meanwhile (setns(2))."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _enter(os.open(_NAMES / self._space(place), os.O_RDONLY))
            yield
        finally:
            _enter(before)

    def sent_bytes(self, place: str) -> tuple[int, int]:
        """Return the bytes that a place has received and sent since it was made."""
        told = subprocess.run(
            [*self.launcher(place), "cat", "/proc/net/dev"], capture_output=True, text=True, check=True
        ).stdout
        found = re.search(r"eth0:\s*(.*)", told)
        assert found is not None
        numbers = found[1].split()
        return int(numbers[0]), int(numbers[8])

    @contextmanager
    def parted(self, place: str, others: Sequence[str]) -> Iterator[None]:
        """Let nothing pass between a place and others meanwhile; who sends hears nothing of it."""
        rules = [
            [chain, side, self.ip(other), "-j", "DROP"]
            for other in others
            for chain, side in (("INPUT", "-s"), ("OUTPUT", "-d"))
        ]
        for rule in rules:
            subprocess.run([*self.launcher(place), "iptables", "-w", "-I", *rule], check=True)
        try:
            yield
        finally:
            for rule in rules:
                subprocess.run([*self.launcher(place), "iptables", "-w", "-D", *rule], check=True)

    def add_ip(self, place: str) -> str:
        """Give a place one more address."""
        added = f"10.89.0.{100 + self._places[place]}"
        self._at(place, "addr", "add", f"{added}/24", "dev", "eth0")
        return added

    def lead(self, place: str, to: str) -> None:
        """Send what goes to the first address of a place to one that was added, as an address moves."""
        given = ["-t", "nat", "-A", "PREROUTING", "-d", self.ip(place), "-j", "DNAT", "--to-destination", to]
        subprocess.run([*self.launcher(place), "iptables", "-w", *given], check=True)

    def _space(self, place: str) -> str:
        return f"{self._name}-{place}"

    def _link(self, place: str) -> str:
        return f"to-{self._places[place]}"

    def _at(self, place: str, *arguments: str) -> None:
        _ip("-n", self._space(place), *arguments)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], stderr=subprocess.PIPE, check=True)


def _enter(descriptor: int) -> None:
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(descriptor)


def remove_those_of_the_dead() -> None:
    """Remove what drivers left that were killed: their namespaces, and the processes that are still in them."""
    for name in os.listdir(_NAMES) if _NAMES.is_dir() else ():
        found = re.match(rf"{_PREFIX}(\d+)-", name)
        if found is not None and not psutil.pid_exists(int(found[1])):
            told = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            for left in told.split():
                with suppress(ProcessLookupError):
                    os.kill(int(left), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


@contextmanager
def network_of(replicas: Sequence[str], *, wanted: bool = True) -> Iterator[Network]:
    """Make namespaces where that is allowed, and be among their clients; else give loopback."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    if not wanted or os.geteuid() != 0 or not all(shutil.which(program, path=path) for program in _PROGRAMS):
        yield Loopback()
        return
    remove_those_of_the_dead()
    made = Namespaces(replicas)
    try:
        try:
            made.make()
        except subprocess.CalledProcessError:
            with suppress(OSError):
                made.remove()
            yield Loopback()
            return
        with made.inside("clients"):
            yield made
    finally:
        made.remove()
