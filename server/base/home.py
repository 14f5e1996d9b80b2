"""The one folder below which sealab keeps everything it writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...skills_db import DATABASE_FILE
from .errors import HomeError
from .identity import DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class Home:
    """The home folder and what has its place in it. Nothing is made until `prepare`.

    The home of a tenant lies below that of the operator, whose servers, definitions of tools and images it shares.
    """

    root: Path
    tenant: str = DEFAULT_TENANT
    operators: Path | None = None
    """The operator's home, where this is a tenant's."""

    @property
    def operators_root(self) -> Path:
        """The operator's home, which is this one unless it is a tenant's."""
        return self.operators or self.root

    @property
    def tenants(self) -> Path:
        """Where the homes of tenants are."""
        return self.operators_root / "tenants"

    def of_tenant(self, tenant: str) -> Home:
        """Return the home of a tenant, whose id `access.names` has judged; that of `default` is the operator's own."""
        if tenant == DEFAULT_TENANT:
            return Home(self.operators_root)
        return Home(self.tenants / tenant, tenant, self.operators_root)

    @property
    def settings_file(self) -> Path:
        """The file of settings, which need not exist."""
        return self.root / "sealab.toml"

    @property
    def workspace(self) -> Path:
        """Where the workspace tools and the code's file helpers read and write."""
        return self.root / "workspace"

    @property
    def scratch(self) -> Path:
        """Where code of full Python writes while it runs."""
        return self.root / "scratch"

    @property
    def servers_file(self) -> Path:
        """The file of upstream servers, which need not exist."""
        return self.operators_root / "mcp.json"

    @property
    def tools(self) -> Path:
        """Where definitions of tools are, which need not exist."""
        return self.operators_root / "tools"

    @property
    def registry(self) -> Path:
        """Where is kept what upstream servers listed before, and what was learned of their answers."""
        return self.root / "registry"

    @property
    def operators_registry(self) -> Path:
        """Where pins of upstream servers are kept, which are the operator's."""
        return self.operators_root / "registry"

    @property
    def holds_something_to_find(self) -> bool:
        """Whether there are upstream servers, definitions of tools, or a database, which may hold skills."""
        return any(path.exists() for path in (self.servers_file, self.tools, self.registry, self.root / DATABASE_FILE))

    @property
    def backups(self) -> Path:
        """Where copies are kept of the files of other programs that were changed."""
        return self.root / "backups"

    @property
    def containers(self) -> Path:
        """Where the images for containers are, and what their engine keeps."""
        return self.operators_root / "container"

    @property
    def python(self) -> Path:
        """Where the environment is that full Python runs in, with its packages for data work."""
        return self.operators_root / "python"

    def prepare(self) -> None:
        """Make the folders, readable by their owner alone. Raises `HomeError` where that cannot be."""
        above = () if self.operators is None else (self.operators, self.tenants)
        for folder in (*above, self.root, self.workspace):
            _make_private(folder)


def find_home(asked: str | None, environment: Mapping[str, str]) -> Home:
    """Return the home: what the command line asked for, else `SEALAB_HOME`, else the platform's user data folder.

    Raises `HomeError` for an empty name, as of a variable that is not set.
    """
    if asked == "":
        raise HomeError("--home is empty. Name a folder, or leave it out.")
    chosen = asked or environment.get("SEALAB_HOME")
    if chosen:
        return Home(Path(chosen).expanduser().absolute())
    from platformdirs import user_data_path

    return Home(user_data_path("sealab", appauthor=False))


def _make_private(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if not stat.S_ISDIR(folder.stat().st_mode):
                raise HomeError(f"{folder} is not a folder. Name another home with --home or SEALAB_HOME.") from None
    except OSError as error:
        raise HomeError(
            f"The folder {folder} cannot be made: {error.strerror}. Name another home with --home or SEALAB_HOME."
        ) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise HomeError(
            f"The folder {folder} cannot be written. Change its permissions or name another home with --home."
        )
