"""HTTP and HTTPS: who may speak to a server, and which certificates it refuses."""

from __future__ import annotations

import datetime as dt
import http.client
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ...command_line import sealab
from ...conftest import SEALAB, environment, server_over_http
from .raw import HEADERS, INITIALIZE, METADATA, connected, post, read
from .tokens import made

MODERN: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": METADATA}}
MODERN_HEADERS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}


url = server_over_http()


def test_a_name_or_a_web_page_from_elsewhere_is_refused_in_both_eras(url: str) -> None:
    for status, headers in (
        (200, {}),
        (200, {"Host": "localhost:8000", "Origin": f"http://localhost:{urlsplit(url).port}"}),
        (421, {"Host": "attacker.example"}),
        (421, {"Host": "attacker.example:8000"}),
        (421, {"Host": "127.0.0.1.attacker.example:80"}),
        (421, {"Host": "127.0.0.1:80@attacker.example"}),
        (421, {"Host": "127.0.0.1:"}),
        (421, {"Host": "localhost:8000/"}),
        (421, {"Host": ""}),
        (403, {"Origin": "http://attacker.example"}),
        (403, {"Origin": "https://127.0.0.1.attacker.example"}),
        (403, {"Origin": "http://127.0.0.1:9"}),
        (403, {"Origin": "null"}),
    ):
        assert (headers, post(url, INITIALIZE, **headers).status) == (headers, status)
        assert (headers, post(url, MODERN, **MODERN_HEADERS, **headers).status) == (headers, status)


def status_of(url: str, *headers: tuple[str, str]) -> int:
    """Return the status of a request that is sent with these headers, each of them as often as it is given."""
    connection = connected(url)
    connection.putrequest("POST", "/mcp", skip_host=True)
    body = json.dumps(INITIALIZE).encode()
    for name, value in (*HEADERS.items(), ("Content-Length", str(len(body))), *headers):
        connection.putheader(name, value)
    connection.endheaders(body)
    return read(connection).status


def test_a_second_name_behind_a_good_one_is_refused(url: str) -> None:
    here = f"127.0.0.1:{urlsplit(url).port}"
    host, origin = ("Host", here), ("Origin", f"http://{here}")
    assert status_of(url, host, origin) == 200
    assert status_of(url, host, origin, ("Origin", "http://attacker.example")) == 403
    assert status_of(url, host, ("Origin", "http://attacker.example"), origin) == 403
    assert status_of(url, host, origin, origin) == 403
    assert status_of(url, host, ("Host", "attacker.example")) in {400, 421}
    assert status_of(url) in {400, 421}


def test_only_loopback_is_listened_on(url: str) -> None:
    port = urlsplit(url).port
    listening = [
        line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"
    ]
    assert [entry.split(":")[0] for entry in listening if int(entry.split(":")[1], 16) == port] == ["0100007F"]


def certificate(folder: Path, passphrase: bytes | None = None) -> tuple[Path, Path]:
    """Write a certificate for `sealab.example` that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sealab.example")])
    now = dt.datetime.now(dt.UTC)
    made_of = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("sealab.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made_of.public_bytes(serialization.Encoding.PEM))
    hiding = serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hiding))
    return cert_file, key_file


def test_a_server_with_tls_is_reached_at_every_address_by_its_public_name(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    token = made(tmp_path / "home", "ada")
    env = environment(SEALAB_AUTH="tokens", SEALAB_PUBLIC_URL="https://sealab.example", SEALAB_DRAIN_SECONDS="0")
    files = ["--tls-cert", str(cert), "--tls-key", str(key)]
    started = [*SEALAB, "serve", "--home", str(tmp_path / "home"), *files, "--http", "0.0.0.0:0"]
    with subprocess.Popen(started, stderr=subprocess.PIPE, env=env, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline()
            assert "https://0.0.0.0:" in said
            port = int(said.split(":")[-1].removesuffix("/mcp\n"))
            trusted = ssl.create_default_context(cafile=str(cert))
            trusted.check_hostname = False  # it is reached by an address here, and asked for by its name below
            for host, status in (("sealab.example", 200), ("evil.example", 421)):
                connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=50)
                connection.request("POST", "/mcp", json.dumps(INITIALIZE), {**HEADERS, **token.header, "Host": host})
                answer = connection.getresponse()
                answer.read()
                connection.close()
                assert answer.status == status
            plain = http.client.HTTPConnection("127.0.0.1", port, timeout=50)
            plain.request("GET", "/healthz")
            with pytest.raises((http.client.HTTPException, OSError)):
                plain.getresponse()
            plain.close()
        finally:
            server.terminate()
            server.wait(60)


def test_a_key_that_asks_for_a_passphrase_or_is_anothers_or_is_for_no_address_is_refused_with_a_sentence(
    tmp_path: Path,
) -> None:
    cert, key = certificate(tmp_path, b"secret")
    other = tmp_path / "other"
    other.mkdir()
    for its_key, options, said in (
        (key, ["--http", "127.0.0.1:0"], "cannot be used"),
        (certificate(other)[1], ["--http", "127.0.0.1:0"], "cannot be used"),
        (key, [], "Give --http HOST:PORT too"),
    ):
        files = ["--tls-cert", str(cert), "--tls-key", str(its_key)]
        ended = sealab("serve", "--home", str(tmp_path / "home"), *files, *options)
        assert (said, ended.returncode) == (said, 2)
        assert said in ended.stderr
        assert "Traceback" not in ended.stderr
