"""Which addresses WORKSPACE_URL may have, and what is said of the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sealab.workspace.errors import Unavailable
from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.store_url import StoreUrl, parse_url


def test_a_bucket_with_a_prefix_or_a_folder_is_named() -> None:
    assert parse_url("s3://my-bucket/a/b/") == StoreUrl("s3", "my-bucket", "a/b")
    assert parse_url("gs://bucket") == StoreUrl("gs", "bucket")
    assert str(parse_url("az://container/x")) == "az://container/x"
    assert parse_url("file:///srv/my%20files") == Path("/srv/my files")


@pytest.mark.parametrize(
    "text",
    [
        "bucket", "http://host/bucket", "s3://", "s3:///prefix", "s3://key:secret@bucket/p", "s3://bucket/a/../b",
        "s3://bucket/.runs", "s3://bucket/a//b", "s3://bucket/p?versionId=1", "s3://bucket/ü", "file://host/x", "file:x",
    ],
)  # fmt: skip
def test_an_address_that_could_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as|prefix of letters"):
        parse_url(text)


def test_a_client_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unavailable, match=r"Install sealab\[store\]"):
        Bucket(StoreUrl("s3", "bucket"))
