"""Where WORKSPACE_URL leads: a folder of this machine, or a prefix of a bucket."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SCHEMES = frozenset({"s3", "gs", "az"})
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}")
_PREFIX = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*/)*[A-Za-z0-9][A-Za-z0-9._-]*")
_EXAMPLE = "such as s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A prefix of a bucket; no part of it is a secret."""

    scheme: str
    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def below(self, prefix: str) -> StoreUrl:
        """Return a longer prefix, which is judged already."""
        return StoreUrl(self.scheme, self.bucket, f"{self.prefix}/{prefix}" if self.prefix else prefix)

    def allows_http(self) -> bool:
        """Return whether the environment allows requests that are not encrypted."""
        name = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}[self.scheme]
        return os.environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"}


def parse_url(text: str) -> StoreUrl | Path:
    """Return where a URL leads. Raises `ValueError` with what it has to be."""
    parts = urlsplit(text)
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError(f"an address without a query or credentials, {_EXAMPLE}")
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        if parts.netloc not in {"", "localhost"} or not folder.is_absolute():
            raise ValueError("an absolute path behind file://, such as file:///srv/files")
        return folder
    prefix = parts.path.strip("/")
    if parts.scheme not in _SCHEMES or not _BUCKET.fullmatch(parts.netloc):
        raise ValueError(f"an address {_EXAMPLE}")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise ValueError("a prefix of letters, digits, '.', '_' and '-', in parts that begin with a letter or digit")
    return StoreUrl(parts.scheme, parts.netloc, prefix)
