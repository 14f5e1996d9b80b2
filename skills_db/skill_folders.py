"""Security boundary: reads Agent Skills out of folders, files and archives from outside.

Only regular files inside are read. A symbolic link is followed from one Python file to another in what was named, as
`workflow.py` leads to one of `../../scripts`; any other is refused. Paths in archives must stay inside; sizes and
counts are bounded before anything is unpacked. Nothing is run.
"""

from __future__ import annotations

import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from .errors import SkillRefused, SkillSourceMissing
from .skill_md import FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX, MANIFEST

SKILLS_MAX: Final = 1000
ARCHIVE_BYTES_MAX: Final = 100_000_000
_LEFT_OUT: Final = frozenset({".git", "__pycache__", "node_modules", ".venv", ".DS_Store"})
_DEPTH_MAX: Final = 8
_DEPTH_OF_SKILLS_MAX: Final = 12

Folders = Mapping[str, Mapping[str, bytes]]
"""The files of each skill's folder by their paths in it, by the folder's name."""


def found(source: Path) -> dict[str, dict[str, bytes] | SkillRefused]:
    """Return the skills in a folder, a SKILL.md, a Python file, or a ZIP archive; a refused one with the reason.

    A folder may be a skill, or hold skills at any depth; of a second one of a name the key is its path. Raises
    `SkillSourceMissing` where it is nothing that holds skills, `SkillRefused` where it holds none.
    """
    if source.is_dir():
        skills = dict(_in_folder(source))
    elif source.name == MANIFEST and source.is_file():
        skills = {source.absolute().parent.name: _caught(source.absolute().parent, source.absolute().parent)}
    elif source.suffix == ".py" and source.is_file():
        skills = {source.stem: _of_python(source)}
    elif source.is_file() and zipfile.is_zipfile(source):
        skills = _in_archive(source)
    elif source.exists():
        raise SkillSourceMissing(
            f"{source} is not a folder, {MANIFEST}, Python file or ZIP archive. Name one of these."
        )
    else:
        raise SkillSourceMissing(f"There is no {source}. Name a folder, a {MANIFEST}, a Python file or a ZIP archive.")
    if not skills:
        raise SkillRefused(f"There is no skill in {source}: no folder with a {MANIFEST}. Name another folder.")
    return skills


def _in_folder(source: Path) -> Iterator[tuple[str, dict[str, bytes] | SkillRefused]]:
    roots = _roots(source)
    if len(roots) > SKILLS_MAX:
        raise SkillRefused(f"There are more than {SKILLS_MAX} skills in {source}. Import them in parts.")
    seen: set[str] = set()
    for root in roots:
        name = root.absolute().name
        yield name if name not in seen else root.relative_to(source).as_posix(), _caught(root, source)
        seen.add(name)


def _roots(source: Path) -> list[Path]:
    """Return the folders with a SKILL.md that are outermost: a skill within a skill is a file of that."""
    found: list[Path] = []
    for place, folders, files in os.walk(source):
        if MANIFEST in files and not (Path(place) / MANIFEST).is_symlink():
            found.append(Path(place))
            folders.clear()
            continue
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        if len(Path(place).relative_to(source).parts) >= _DEPTH_OF_SKILLS_MAX:
            folders.clear()
    return found


def _caught(folder: Path, named: Path) -> dict[str, bytes] | SkillRefused:
    try:
        return _files(folder, Path(os.path.realpath(named)))
    except SkillRefused as error:
        return error


def _files(folder: Path, named: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    for path in _walk(folder, 0, named):
        name = path.relative_to(folder).as_posix()
        data = _bytes(_target(path, named) if path.is_symlink() else path, name)
        total += len(data)
        if len(files) >= FILES_MAX or total > FOLDER_BYTES_MAX:
            raise SkillRefused(
                f"The skill {folder.name!r} has more than {FILES_MAX} files or {FOLDER_BYTES_MAX:,} bytes. "
                "Make it smaller."
            )
        files[name] = data
    return files


def _target(link: Path, named: Path) -> Path:
    """Return the Python file that a link leads to. Raises `SkillRefused` for any other link."""
    target = Path(os.path.realpath(link))
    if {link.suffix, target.suffix} != {".py"} or not target.is_relative_to(named) or not target.is_file():
        raise SkillRefused(
            f"{link.name!r} is a symbolic link to no Python file of the folder that is imported. Put the file itself "
            "there, or name the folder that holds both."
        )
    return target


def _walk(folder: Path, depth: int, named: Path) -> Iterator[Path]:
    if depth > _DEPTH_MAX:
        raise SkillRefused(
            f"The folder {folder.name!r} is nested too deeply. Keep a skill's files near its {MANIFEST}."
        )
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.name in _LEFT_OUT or entry.name.endswith(".pyc"):
            continue
        if entry.is_symlink():
            _target(Path(entry.path), named)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), depth + 1, named)
        elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        else:
            raise SkillRefused(f"{entry.name!r} is not a regular file. Leave it out of the skill.")


def _bytes(path: Path, name: str) -> bytes:
    """Read a file that must be what it looked like: the opened handle is judged, not the path."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SkillRefused(f"The file {name!r} cannot be read: {error.strerror}.") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SkillRefused(f"{name!r} is not a regular file. Leave it out of the skill.")
        most = FOLDER_BYTES_MAX if name.endswith("recordings.json") else FILE_BYTES_MAX
        if status.st_size > most:
            raise SkillRefused(f"The file {name!r} is larger than {most:,} bytes. Leave it out of the skill.")
        return file.read(most)


def _of_python(source: Path) -> dict[str, bytes] | SkillRefused:
    try:
        code = _bytes(source, source.name)
    except SkillRefused as error:
        return error
    name = source.stem
    return {MANIFEST: f"---\nname: {name}\n---\n".encode(), f"scripts/{name}.py": code}


def _in_archive(source: Path) -> dict[str, dict[str, bytes] | SkillRefused]:
    if source.stat().st_size > ARCHIVE_BYTES_MAX:
        raise SkillRefused(f"The archive {source} is larger than {ARCHIVE_BYTES_MAX:,} bytes. Import it in parts.")
    try:
        with zipfile.ZipFile(source) as archive:
            return _unpacked(source, archive)
    except (
        *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError, OSError),
        *(ValueError, MemoryError),
    ) as error:
        raise SkillRefused(f"The archive {source} cannot be read: {error}.") from None


def _unpacked(source: Path, archive: zipfile.ZipFile) -> dict[str, dict[str, bytes] | SkillRefused]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > FILES_MAX * 50 or sum(entry.file_size for entry in entries) > ARCHIVE_BYTES_MAX:
        raise SkillRefused(f"The archive {source} holds too much. Import it in parts.")
    by_path: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for entry in entries:
        path = _path_inside(entry)
        if path in by_path:
            raise SkillRefused(f"The archive holds {entry.filename!r:.80} twice. It was not imported.")
        by_path[path] = entry
    roots = {path.parent for path in by_path if path.name == MANIFEST}
    of_root: dict[PurePosixPath, dict[PurePosixPath, zipfile.ZipInfo]] = {}
    for path, entry in by_path.items():
        above = [parent for parent in path.parents if parent in roots]
        if above:  # in the outermost: a skill within a skill is a file of that
            of_root.setdefault(above[-1], {})[path.relative_to(above[-1])] = entry
    skills: dict[str, dict[str, bytes] | SkillRefused] = {}
    for root in sorted(of_root, key=lambda root: len(root.parts)):
        inside = of_root[root]
        name = root.name or source.stem
        name = root.as_posix() if name in skills else name
        try:
            skills[name] = _read_entries(name, archive, inside)
        except SkillRefused as error:
            skills[name] = error
    return skills


def _read_entries(
    name: str, archive: zipfile.ZipFile, inside: Mapping[PurePosixPath, zipfile.ZipInfo]
) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    kept = {path: entry for path, entry in inside.items() if not _LEFT_OUT.intersection(path.parts)}
    if len(kept) > FILES_MAX or sum(entry.file_size for entry in kept.values()) > FOLDER_BYTES_MAX:
        raise SkillRefused(
            f"The skill {name!r} has more than {FILES_MAX} files or {FOLDER_BYTES_MAX:,} bytes. Make it smaller."
        )
    for path, entry in kept.items():
        most = FOLDER_BYTES_MAX if path.name == "recordings.json" else FILE_BYTES_MAX
        with archive.open(entry) as file:
            data = file.read(most + 1)  # the size that an archive declares may be a lie
        if len(data) > most:
            raise SkillRefused(f"The file {str(path)!r} is larger than {most:,} bytes. Leave it out of the skill.")
        files[path.as_posix()] = data
    return files


def _path_inside(entry: zipfile.ZipInfo) -> PurePosixPath:
    name = entry.filename
    path = PurePosixPath(name)
    mode = entry.external_attr >> 16
    if (
        not path.parts
        or name.startswith("/")
        or "\\" in name
        or ":" in path.parts[0]
        or ".." in path.parts
        or not name.isprintable()
        or len(path.parts) > _DEPTH_MAX + 4
    ):
        raise SkillRefused(f"The archive names a file {name!r:.80}, which would lie outside. It was not imported.")
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        raise SkillRefused(f"The archive holds {name!r:.80}, which is not a regular file. It was not imported.")
    if entry.flag_bits & 1:
        raise SkillRefused("The archive is encrypted. Unpack it and import the folder.")
    return path
