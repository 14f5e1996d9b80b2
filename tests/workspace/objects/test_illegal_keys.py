"""Keys that other programs may give objects, and that no file can have, harm nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sealab.workspace.dry_run_files import files_of_run
from sealab.workspace.errors import Unavailable
from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.s3_listing import listing_of
from sealab.workspace.objects.store_url import StoreUrl
from tests.object_stores import S3Server
from tests.workspace.conftest import Opens

ILLEGAL = ["a//b", "../outside", "d/../../e", "d/./f", "bell\x07", "//", "x/../.."]


def client(server: S3Server) -> Any:
    import boto3  # type: ignore[import-untyped]  # it comes with moto

    return boto3.client(
        "s3",
        endpoint_url=server.address,
        aws_access_key_id="S3RVER",
        aws_secret_access_key="S3RVER",
        region_name="us-east-1",
    )


@pytest.mark.parametrize("key", ILLEGAL)
def test_an_object_with_a_key_that_is_no_path_is_left_out_and_all_others_are_there(
    moto_server: S3Server, opens: Opens, key: str
) -> None:
    bucket = moto_server.bucket()
    put = client(moto_server).put_object
    put(Bucket=bucket, Key=f"team/files/{key}", Body=b"hostile")
    workspace = opens(moto_server, bucket)
    workspace.write("0", "before")
    workspace.write("d/ü +%25.txt", "inside")
    workspace.write("z", "after")
    assert [file.name for file in workspace.list().files] == ["0", "d/ü +%25.txt", "z"]
    files = files_of_run(workspace, "home")
    seen = {entry.name: entry.status.is_folder for entry in files.list("/workspace")}
    is_folder = dict.fromkeys(seen.keys() - {"0", "d", "z"}, True)  # one in which nothing has a name, as of `a//b`
    assert seen == {"0": False, "d": True, "z": False, **is_folder}
    assert [entry.name for entry in files.list("/workspace/d")] == ["ü +%25.txt"]
    with workspace.brought_whole():
        names = sorted("/".join(found.parts) for found in workspace.root.walk() if not found.is_folder)
        assert names == ["0", "d/ü +%25.txt", "z"]


def test_without_fixed_credentials_such_an_object_is_named(moto_server: S3Server) -> None:
    bucket = moto_server.bucket()
    client(moto_server).put_object(Bucket=bucket, Key="p/a//b", Body=b"x")
    looks = Bucket(StoreUrl("s3", bucket, "p"), moto_server.environment)
    looks._raw = None
    with pytest.raises(Unavailable, match="a//b"):
        list(looks.walk())


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Run a server that answers everything so; give its address, and the paths that it was asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()


def listed(address: str) -> list[object]:
    given = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S"}
    listing = listing_of(StoreUrl("s3", "bucket", "p"), given)
    assert listing is not None
    return list(listing.walk(""))


def test_a_store_that_sends_a_listing_elsewhere_is_not_followed() -> None:
    with (
        answering(200, {}, b"<ListBucketResult/>") as (other, asked),
        answering(307, {"Location": f"{other}/internal"}, b"") as (store, _),
        pytest.raises(OSError, match="307"),
    ):
        listed(store)
    assert asked == []


@pytest.mark.parametrize(
    "body", [b"", b"<", b"<A><Contents><Key>p/a</Key><LastModified>never</LastModified></Contents></A>"]
)
def test_what_is_no_listing_counts_as_a_store_that_fails(body: bytes) -> None:
    with answering(200, {}, body) as (store, _), pytest.raises(OSError, match="no listing"):
        listed(store)
