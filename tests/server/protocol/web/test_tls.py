"""A server with a certificate speaks HTTPS, on a public address too, and refuses files that cannot be used."""

from __future__ import annotations

import datetime as dt
import http.client
import json
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ...command_line import sealab
from ...conftest import SEALAB, environment
from .raw import HEADERS, INITIALIZE
from .tokens import made


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
