"""Builds what a container sees, out of the running interpreter and without a registry.

A build is a folder below the home: `root/` is the container's root file system (the interpreter, its standard library,
the shared libraries they need, and the packages that were asked for), `manifest.json` says what is in it. Each build
has a folder of its own and `current` names the newest, so that a build that fails leaves the one before.

sealab's own code is not part of it: it is mounted beside the image, so that an image need not be built anew with each
version, and an image made elsewhere needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from ..errors import ContainerMissing
from ..installing import find_installer, modules_in

PYTHON_INSIDE = "/usr/local/bin/python3"
LIBRARIES_INSIDE = "/usr/local/lib/native"
CODE_INSIDE = "/opt/sealab/site-packages"

_MOUNT_POINTS = ("dev", "etc", "opt/sealab/site-packages", "proc", "run", "sys", "tmp", "var/tmp", "workspace")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/tmp:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hostname": "",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/resolv.conf": "",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_NEVER_NEEDED = (
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "_tkinter.*",
)
_BUILDS_KEPT = 2
_PIP_SECONDS = 900
_CODE_PACKAGES = ("RestrictedPython",)


@dataclass(frozen=True, slots=True)
class ContainerImage:
    """One image that can be run: a root folder that was built here, or the name of one that an engine holds.

    `packages` maps what was installed to its version; `modules` are the names that `import` finds beyond the standard
    library. Of a named image nothing is known before it runs.
    """

    python: str
    root: str | None = None
    name: str | None = None
    python_version: str = ""
    packages: dict[str, str] | None = None
    modules: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return f"the image built here (Python {self.python_version})" if self.root is not None else str(self.name)


def named(name: str) -> ContainerImage:
    """Give the image of that name, which holds Python 3.11 or newer as `python3`."""
    return ContainerImage(python="python3", name=name)


def current(folder: Path) -> ContainerImage | None:
    """Give the newest image that was built below `folder`, or None."""
    try:
        build = folder / (folder / "current").read_text(encoding="utf-8").strip()
        manifest = json.loads((build / "manifest.json").read_text(encoding="utf-8"))
        return ContainerImage(**{**manifest, "root": str(build / "root"), "modules": tuple(manifest["modules"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def build(
    folder: Path, packages: Sequence[str] = (), progress: Callable[[str], None] = lambda _step: None
) -> ContainerImage:
    """Build an image below `folder` and make it the current one.

    `packages` are requirements as pip takes them; `progress` gets each step before it begins. Raises
    `ContainerMissing`, with what to do, when that fails; then the image before stays.
    """
    if sys.platform != "linux":
        raise ContainerMissing("Only on Linux can an image be made of the running Python. Set CONTAINER_IMAGE instead.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
    try:
        _fill(place, packages, progress)
        _make_current(folder, place.name)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, OSError):
            raise ContainerMissing(
                f"The image cannot be built: {error}. Make room in {folder}, or try again."
            ) from error
        raise
    built = current(folder)
    assert built is not None
    return built


def _fill(place: Path, packages: Sequence[str], progress: Callable[[str], None]) -> None:
    """Put the root and the manifest of an image into a folder of its own."""
    root = place / "root"
    progress("Copying Python and its standard library")
    library = _lay_out(root)
    if packages:
        progress(f"Installing {', '.join(packages)}, with what they need")
    installed = _install(packages, library / "site-packages")
    progress("Copying the shared libraries that these need")
    _bring_libraries(root)
    _open_to_all(root)
    (root / "tmp").chmod(0o1777)
    image = ContainerImage(
        python=PYTHON_INSIDE,
        python_version=platform.python_version(),
        packages=installed,
        modules=modules_in(library / "site-packages"),
    )
    manifest = {key: value for key, value in asdict(image).items() if key != "root"}
    (place / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def remember_name(image: ContainerImage, name: str) -> ContainerImage:
    """Note the name under which docker holds a copy of the current image."""
    assert image.root is not None
    renamed = replace(image, name=name)
    manifest = {key: value for key, value in asdict(renamed).items() if key != "root"}
    (Path(image.root).parent / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    return renamed


def code(folder: Path) -> Path:
    """Copy sealab's sandbox, and what it imports, to where a container can read it, and give that place.

    A copy is made once for each state of the code; all users may read it, as a container's user is `nobody`.
    """
    sources = {"sealab/sandbox": Path(__file__).resolve().parents[1], **_code_packages()}
    stamp = max(file.stat().st_mtime_ns for source in sources.values() for file in source.rglob("*.py"))
    place = folder / f"code-{stamp:x}"
    if place.is_dir():
        return place
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="code-", dir=folder))
    for inside, source in sources.items():
        shutil.copytree(source, making / inside, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(making)], check=False, capture_output=True)
    _open_to_all(making)
    try:
        making.rename(place)
    except OSError:  # another server was faster
        shutil.rmtree(making)
    for old in folder.glob("code-*"):
        if old != place and old.stat().st_mtime < place.stat().st_mtime:
            shutil.rmtree(old, ignore_errors=True)
    return place


def _code_packages() -> dict[str, Path]:
    found = {}
    for name in _CODE_PACKAGES:
        module = __import__(name)
        assert module.__file__ is not None
        found[name] = Path(module.__file__).parent
    return found


def _lay_out(root: Path) -> Path:
    """Lay out a root with the interpreter in it, and return its library folder."""
    for folder in _MOUNT_POINTS:
        (root / folder).mkdir(parents=True)
    for name, text in _FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    library = root / "usr/local/lib" / f"python{sysconfig.get_python_version()}"
    source = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(source, library, symlinks=False, ignore=shutil.ignore_patterns(*_NEVER_NEEDED, "config-*"))
    dynamic = Path(sysconfig.get_config_var("DESTSHARED") or source / "lib-dynload")
    if dynamic.is_dir() and not (library / "lib-dynload").exists():
        shutil.copytree(dynamic, library / "lib-dynload")
    (library / "site-packages").mkdir()
    binary = root / PYTHON_INSIDE.lstrip("/")
    binary.parent.mkdir(parents=True)
    shutil.copy2(os.path.realpath(sys.executable), binary)
    zones = next((path for path in zoneinfo.TZPATH if os.path.isdir(path)), None)
    if zones is not None:
        shutil.copytree(zones, root / "usr/share/zoneinfo", ignore=shutil.ignore_patterns("posix", "right"))
    return library


def _install(packages: Sequence[str], target: Path) -> dict[str, str]:
    """Install packages with what they need, as wheels only: a build script would run with the user's rights."""
    if packages:
        installer = find_installer()
        if installer is None:
            raise ContainerMissing(
                "Packages cannot be installed without pip. Run `python -m ensurepip`, or install uv."
            )
        command = installer.install(["--target", str(target), "--", *packages])
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise ContainerMissing(
                f"{', '.join(packages)} cannot be installed: {said[-1] if said else 'the installer failed'}. "
                "Look for a misspelt name, and whether pip reaches its index."
            )
    return {found.metadata["Name"]: found.version for found in distributions(path=[str(target)])}


def _bring_libraries(root: Path) -> None:
    """Copy the shared libraries that the binaries in `root` name (ldd(1)), and the loader to where they seek it."""
    place = root / LIBRARIES_INSIDE.lstrip("/")
    place.mkdir()
    binaries = [root / PYTHON_INSIDE.lstrip("/"), *root.rglob("*.so"), *root.rglob("*.so.*")]
    for path in _linked(binaries):
        if path.startswith(str(root)):
            continue
        if "/ld-" in path:
            loader = root / path.lstrip("/")
            loader.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, loader)
        elif not (place / os.path.basename(path)).exists():
            shutil.copy2(path, place / os.path.basename(path))


def _linked(binaries: Iterable[Path]) -> set[str]:
    found: set[str] = set()
    ldd = shutil.which("ldd")
    if ldd is None:
        raise ContainerMissing(
            "The program ldd is missing, which finds shared libraries. Install your C library's tools."
        )
    done = subprocess.run([ldd, *map(str, binaries)], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        path = line.partition("=>")[2] or line
        path = path.split("(")[0].strip()
        if path.startswith("/") and ".so" in path and os.path.isfile(path):
            found.add(path)
    return found


def _open_to_all(root: Path) -> None:
    """Make it readable for all: the user of a container is not the owner of its files."""
    for folder, _folders, files in os.walk(root):
        os.chmod(folder, 0o755)  # noqa: S103 - the folder above belongs to the user alone
        for file in files:
            path = os.path.join(folder, file)
            if not os.path.islink(path):
                os.chmod(path, 0o755 if os.access(path, os.X_OK) else 0o644)


def _make_current(folder: Path, name: str) -> None:
    pointer = folder / "current.new"
    pointer.write_text(name, encoding="utf-8")
    pointer.replace(folder / "current")
    builds = sorted(folder.glob("build-*"), key=lambda build: build.stat().st_mtime, reverse=True)
    for old in builds[_BUILDS_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
