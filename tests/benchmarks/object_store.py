"""What files cost in an object store: latency, throughput and listing, beside a folder and beside plain clients.

    python -m tests.benchmarks.object_store [--files 2000] [--address URL --bucket NAME]

By default it starts moto's server on this machine, whose own time (a Python process) is most of each request: compare
the rows with `obstore alone`, which is what the store and the client take. With `--address` it takes another S3 store.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import obstore

from sealab.skills_db.engine import open_database
from sealab.skills_db.workspace_counts.workspace_counts import WorkspaceCounts
from sealab.workspace.objects.bucket import Bucket
from sealab.workspace.objects.store_url import StoreUrl
from sealab.workspace.objects.stored_workspace import StoredWorkspace
from sealab.workspace.store import Workspace

from ..object_stores import S3Server, moto

SMALL = b"x" * 1000
LARGE = os.urandom(32 * 1024 * 1024)
QUOTA = 10_000_000_000


def timed(count: int, work: Callable[[int], object]) -> str:
    """Do something so often, and say its median and its 99th percentile in milliseconds."""
    took = []
    for number in range(count):
        begun = time.perf_counter()
        work(number)
        took.append((time.perf_counter() - begun) * 1000)
    return f"{statistics.median(took):9.2f} {sorted(took)[int(len(took) * 0.99)]:9.2f}"


def row(what: str, measured: str) -> None:
    print(f"{what:<58}{measured}", flush=True)


def once(work: Callable[[], object], size: int = 0) -> str:
    begun = time.perf_counter()
    work()
    seconds = time.perf_counter() - begun
    return f"{seconds * 1000:9.1f}" + (f"   {size / seconds / 1e6:8.1f} MB/s" if size else "")


def of_workspace(kind: str, workspace: Workspace, other: Workspace, count: int) -> None:
    """Measure one kind of workspace; `other` is a second server's, which has no copy of anything."""
    row(f"{kind}: write 1 kB, new", timed(count, lambda number: workspace.write(f"s/{number}", SMALL)))
    row(f"{kind}: write 1 kB, replaced", timed(count, lambda number: workspace.write(f"s/{number}", SMALL + b"y")))
    row(f"{kind}: read 1 kB, a copy is here", timed(count, lambda number: workspace.read(f"s/{number}")))
    row(f"{kind}: read 1 kB, no copy is here", timed(count, lambda number: other.read(f"s/{number}")))
    row(f"{kind}: append 10 bytes", timed(count, lambda _: workspace.write("log", b"0123456789", append=True)))

    def in_pieces() -> None:
        files = workspace.run_files("home")
        opened = files.open("/workspace/large", "w")
        for start in range(0, len(LARGE), 2 * 1024 * 1024):
            files.write("/workspace/large", opened.identity, start, LARGE[start : start + 2 * 1024 * 1024])
        files.sync(opened.identity)
        files.close()

    def read_in_pieces() -> None:
        files = other.run_files("home")
        opened = files.open("/workspace/large", "r")
        for start in range(0, len(LARGE), 2 * 1024 * 1024):
            files.read("/workspace/large", opened.identity, start, 2 * 1024 * 1024)
        files.close()

    row(f"{kind}: write 32 MiB as code does", once(in_pieces, len(LARGE)))
    row(f"{kind}: read 32 MiB as code does, no copy is here", once(read_in_pieces, len(LARGE)))
    row(f"{kind}: read 32 MiB as code does, a copy is here", once(read_in_pieces, len(LARGE)))


def listing(kind: str, workspace: Workspace, other: Workspace) -> None:
    row(f"{kind}: list {workspace.list().count:,} files", once(workspace.list))

    def whole() -> None:
        with other.brought_whole():
            pass

    row(f"{kind}: have all files for full Python, none is here", once(whole))
    row(f"{kind}: the same, nothing changed", once(whole))


class Pages(BaseHTTPRequestHandler):
    """Answers ListObjectsV2 from a sorted list at once, a thousand keys to a page; S3 servers for tests take seconds."""

    keys: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        start = int(asked.get("continuation-token", ["0"])[0])
        page = self.keys[start : start + 1000]
        more = start + 1000 < len(self.keys)
        rows = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{index:032x}&quot;</ETag><Size>100</Size></Contents>"
            for index, key in enumerate(page, start)
        )
        next_token = f"<NextContinuationToken>{start + 1000}</NextContinuationToken>" if more else ""
        body = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{next_token}{rows}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def many(count: int, folder: Path) -> None:
    """List very many objects, which a server of one's own gives in pages without looking for them."""
    Pages.keys = [f"p/d{number // 1000:04}/{number:07}.txt" for number in range(count)]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
    }
    bucket = Bucket(StoreUrl("s3", "many", "p"), environment)
    with open_database(None, folder) as database:
        counts = WorkspaceCounts(lambda: database)
        with StoredWorkspace(folder / "many", bucket, counts, quota_bytes=QUOTA) as workspace:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            row(f"client alone: {count:,} objects in pages", once(lambda: sum(1 for _ in bucket.walk())))
            row(f"objects: list {count:,} files, all of them", once(workspace.list))
            row(f"objects: list {count:,} files, 100 of them", once(lambda: workspace.list(limit=100)))
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            row("objects: memory that this took at most", f"{grown:9.1f} MB")
    server.shutdown()


@contextlib.contextmanager
def a_store(address: str | None) -> Iterator[S3Server | None]:
    if address is not None:
        yield None
        return
    with moto() as server:
        yield server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=2000, help="how many files are listed")
    parser.add_argument("--count", type=int, default=100, help="how often each small thing is done")
    parser.add_argument("--address", help="an S3 store; the credentials are in the standard variables")
    parser.add_argument("--bucket", default="bench")
    parser.add_argument("--many", type=int, default=100_000, help="how many objects are listed in pages; 0 for none")
    parser.add_argument("--only-many", action="store_true")
    chosen = parser.parse_args()
    if chosen.many:
        with tempfile.TemporaryDirectory() as top:
            many(chosen.many, Path(top))
    if chosen.only_many:
        return
    with tempfile.TemporaryDirectory() as top, a_store(chosen.address) as server, contextlib.ExitStack() as stack:
        environment = dict(os.environ if server is None else server.environment)
        bucket = chosen.bucket if server is None else server.bucket()
        url = StoreUrl("s3", bucket, f"bench-{os.getpid()}")
        plain = Bucket(url.below("plain"), environment)
        client = plain._client(0)
        print(f"{'':<58}{'median ms':>9} {'p99 ms':>9}")
        row("obstore alone: put 1 kB", timed(chosen.count, lambda number: obstore.put(client, f"s/{number}", SMALL)))
        row("obstore alone: head", timed(chosen.count, lambda number: obstore.head(client, f"s/{number}")))
        row("obstore alone: get 1 kB", timed(chosen.count, lambda number: obstore.get(client, f"s/{number}").bytes()))
        row("obstore alone: put 32 MiB in parts", once(lambda: obstore.put(client, "large", LARGE), len(LARGE)))
        row("obstore alone: get 32 MiB", once(lambda: obstore.get(client, "large").bytes(), len(LARGE)))
        with contextlib.suppress(ImportError):
            with_boto3(environment, bucket, chosen.count)
        folder = stack.enter_context(Workspace(Path(top) / "folder", quota_bytes=QUOTA, files_max=200_000))
        of_workspace("folder", folder, folder, chosen.count)
        database = stack.enter_context(open_database(None, Path(top)))
        counts = WorkspaceCounts(lambda: database)
        one, two = (
            stack.enter_context(
                StoredWorkspace(Path(top) / name, Bucket(url.below("files"), environment), counts, quota_bytes=QUOTA)
            )
            for name in ("one", "two")
        )
        of_workspace("objects", one, two, chosen.count)
        for number in range(chosen.files):
            plain_files = one.bucket._client(0)
            obstore.put(plain_files, f"many/{number:06}", b"x" * 100)
            folder.write(f"many/{number:06}", b"x" * 100)
        listing("folder", folder, folder)
        listing("objects", one, two)
        row("obstore alone: list", once(lambda: sum(len(page) for page in obstore.list(plain_files, chunk_size=1000))))


def with_boto3(environment: dict[str, str], bucket: str, count: int) -> None:
    import boto3  # type: ignore[import-untyped]  # it comes with moto, for comparison alone

    client = boto3.client(
        "s3",
        endpoint_url=environment.get("AWS_ENDPOINT_URL"),
        aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY"),
        region_name=environment.get("AWS_REGION", "us-east-1"),
    )
    row("boto3: put 1 kB", timed(count, lambda number: client.put_object(Bucket=bucket, Key=f"b/{number}", Body=SMALL)))
    row(
        "boto3: get 1 kB",
        timed(count, lambda number: client.get_object(Bucket=bucket, Key=f"b/{number}")["Body"].read()),
    )
    row("boto3: put 32 MiB", once(lambda: client.put_object(Bucket=bucket, Key="large", Body=LARGE), len(LARGE)))


if __name__ == "__main__":
    main()
