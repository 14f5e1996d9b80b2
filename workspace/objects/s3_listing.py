"""Lists keys of S3 as they are, for the one case that the client cannot: a page that holds a key which is no path.

`a//b`, `../c` and keys with control characters are legal in S3. The client takes a page with one of them for an error
as a whole. This asks `ListObjectsV2` itself (Amazon S3 API Reference), signed by Signature Version 4, and leaves out
what is no path. It needs the credentials as fixed variables, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote_plus, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from xml.etree import ElementTree as ET

from .store_url import StoreUrl

_SECONDS = 10.0
_PAGE_BYTES_MAX = 16 * 1024 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_LISTING = "ListObjectsV2 was answered with what is no listing"
_EMPTY = hashlib.sha256(b"").hexdigest()

Listed = tuple[str, int, str, int]
"""A key below the prefix, bytes, etag, and nanoseconds since 1970."""


@dataclass(frozen=True, slots=True, repr=False)
class S3Listing:
    """One prefix of one bucket, and the credentials for it. Raises `OSError` where the store does not answer."""

    address: str
    region: str
    access_key: str
    secret_key: str
    session_token: str | None
    prefix: str

    def walk(self, start: str) -> Iterator[Listed]:
        """Give every object whose key, below the prefix, begins with `start` and is a path."""
        for page in self._pages(start, delimiter=False):
            yield from self._objects(page)

    def level(self, start: str) -> tuple[list[Listed], list[str]]:
        """Return the objects directly below `start`, and what leads further, without the `/` at its end."""
        objects: list[Listed] = []
        folders: list[str] = []
        for page in self._pages(start, delimiter=True):
            objects += self._objects(page)
            found = (unquote_plus(each.findtext("Prefix", "")) for each in page.iterfind("CommonPrefixes"))
            folders += [name for name in map(self._below, (each.removesuffix("/") for each in found)) if _is_path(name)]
        return objects, folders

    def _objects(self, page: ET.Element) -> Iterator[Listed]:
        for each in page.iterfind("Contents"):
            key = self._below(unquote_plus(each.findtext("Key", "")))
            if _is_path(key):
                try:
                    modified = datetime.fromisoformat(each.findtext("LastModified", ""))
                    size, etag = int(each.findtext("Size", "0")), each.findtext("ETag", "")
                except ValueError:
                    raise OSError(_NO_LISTING) from None
                yield key, size, etag, int(modified.timestamp() * 1000) * 1_000_000

    def _below(self, key: str) -> str:
        return key[len(self.prefix) :] if key.startswith(self.prefix) else ""

    def _pages(self, start: str, *, delimiter: bool) -> Iterator[ET.Element]:
        more: str | None = None
        while True:
            asked = {"list-type": "2", "encoding-type": "url", "prefix": self.prefix + start}
            asked |= {"delimiter": "/"} if delimiter else {}
            asked |= {"continuation-token": more} if more else {}
            page = self._asked(asked)
            yield page
            more = page.findtext("NextContinuationToken") if page.findtext("IsTruncated") == "true" else None
            if more is None:
                return

    def _asked(self, asked: Mapping[str, str]) -> ET.Element:
        query = "&".join(f"{_quoted(name)}={_quoted(asked[name])}" for name in sorted(asked))
        request = Request(f"{self.address}?{query}", headers=self._headers(query))  # noqa: S310 - http(s) alone, judged in listing_of
        try:
            with build_opener(_NoRedirects).open(request, timeout=_SECONDS) as answer:
                body = answer.read(_PAGE_BYTES_MAX)
        except HTTPError as error:
            raise OSError(f"ListObjectsV2 was answered {error.code}") from None
        except HTTPException as error:
            raise OSError(_NO_LISTING) from error
        try:
            page = ET.fromstring(body)  # noqa: S314 - of the store itself; expat bounds the expansion of entities
        except ET.ParseError:
            raise OSError(_NO_LISTING) from None
        for each in page.iter():
            each.tag = each.tag.rpartition("}")[2]
        return page

    def _headers(self, query: str) -> dict[str, str]:
        """Sign the request (Amazon S3 API Reference, "Signature calculations for the Authorization header")."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        parts = urlsplit(self.address)
        headers = {"host": parts.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": now}
        if self.session_token:
            headers["x-amz-security-token"] = self.session_token
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = "\n".join(("GET", parts.path or "/", query, lines, names, _EMPTY))
        scope = f"{now[:8]}/{self.region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        credential = f"Credential={self.access_key}/{scope}"
        headers["authorization"] = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
        return headers


class _NoRedirects(HTTPRedirectHandler):
    """Follows the store nowhere: the request has its credentials, and the answer would be another's."""

    def redirect_request(self, *_given: Any, **_named: Any) -> None:
        """Make no further request: the answer then counts as one that failed."""


def listing_of(url: StoreUrl, environment: Mapping[str, str]) -> S3Listing | None:
    """Return what lists a prefix, or None where the store is not S3 or the credentials are not in fixed variables."""
    access, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if url.scheme != "s3" or not access or not secret:
        return None
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = (environment.get("AWS_ENDPOINT_URL") or f"https://s3.{region}.amazonaws.com").rstrip("/")
    if urlsplit(endpoint).scheme not in {"http", "https"}:
        return None
    prefix = f"{url.prefix}/" if url.prefix else ""
    token = environment.get("AWS_SESSION_TOKEN") or None
    return S3Listing(f"{endpoint}/{url.bucket}", region, access, secret, token, prefix)


def _is_path(key: str) -> bool:
    return all(part not in {"", ".", ".."} for part in key.split("/")) and not _CONTROL.search(key)


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
