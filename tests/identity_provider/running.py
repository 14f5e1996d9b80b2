"""A real identity provider for tests: `provider.mjs`, which `make upstreams` installs what it needs for."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.api_jws import PyJWS

from sealab.server.base.identity import Right

INSTALLED = Path(__file__).parent.parent.parent / ".upstreams"
MODULE = INSTALLED / "node_modules" / "oidc-provider" / "lib" / "index.js"
RESOURCE = "https://sealab.example/mcp"
SECRET = "a secret & one with/odd characters: 20%"
SERVER = ("sealab", "the server's own secret")
"""The name and the secret by which the server introspects."""

needs_identity_provider = pytest.mark.skipif(
    not MODULE.exists() and not os.environ.get("TEST_UPSTREAMS_REQUIRED"),
    reason="the identity provider is not installed: run `make upstreams`",
)


class SigningKey:
    """A private key with its id, as the provider is given it and as tests sign with it."""

    def __init__(self, name: str, algorithm: str = "RS256") -> None:
        self.name = name
        self.algorithm = algorithm
        is_curve = algorithm == "ES256"
        self.private: Any = (
            ec.generate_private_key(ec.SECP256R1()) if is_curve else rsa.generate_private_key(65537, 2048)
        )
        form = ECAlgorithm if is_curve else RSAAlgorithm
        more = {"kid": name, "alg": algorithm, "use": "sig"}
        self.jwk: dict[str, Any] = {**form.to_jwk(self.private, as_dict=True), **more}
        self.jwk.pop("key_ops", None)
        self.public_jwk: dict[str, Any] = {**form.to_jwk(self.private.public_key(), as_dict=True), **more}
        self.public_jwk.pop("key_ops", None)

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """Return a JWT; a member of the header that is None is left out."""
        return self.sign_text(json.dumps(claims), **header)

    def sign_text(self, text: str, **header: Any) -> str:
        """Return a JWT that says this text."""
        given = {"kid": self.name, "typ": "at+jwt", **header}
        given = {name: value for name, value in given.items() if value is not None}
        return PyJWS().encode(text.encode(), self.private, given.pop("alg", self.algorithm), given)


class IdentityProvider:
    """A provider that runs: its issuer, its keys, and tokens from it."""

    def __init__(self, process: subprocess.Popen[str], issuer: str, keys: list[SigningKey]) -> None:
        self._process = process
        self.issuer = issuer
        self.keys = keys
        metadata = httpx2.get(f"{issuer}/.well-known/openid-configuration").json()
        self.token_endpoint: str = metadata["token_endpoint"]
        self.revocation_endpoint: str = metadata["revocation_endpoint"]
        self.introspection_endpoint: str = metadata["introspection_endpoint"]
        self.jwks_uri: str = metadata["jwks_uri"]

    def change(self, **settings: Any) -> None:
        """Go on with other settings."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "{}\n"

    def rotate(self, *keys: SigningKey) -> None:
        """Sign with the first of these keys from now on, and publish them all."""
        self.keys = list(keys)
        self.change(keys=[key.jwk for key in keys])

    def token(self, client: str = "signed", resource: str = RESOURCE, scope: str = "run files") -> str:
        """Return an access token that a client gets for itself (RFC 6749, 4.4)."""
        form = {"grant_type": "client_credentials", "resource": resource, "scope": scope}
        answer = httpx2.post(self.token_endpoint, data=form, auth=(client, quote_plus(SECRET)))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def revoke(self, token: str, client: str) -> None:
        answer = httpx2.post(self.revocation_endpoint, data={"token": token}, auth=(client, quote_plus(SECRET)))
        assert answer.status_code == 200, answer.text

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return claims that let somebody in, but for those that are changed; one that is None is left out."""
        now = time.time()
        given = {
            "iss": self.issuer,
            "aud": RESOURCE,
            "sub": "ada",
            "client_id": "somebody",
            "iat": now,
            "exp": now + 300,
            "jti": uuid.uuid4().hex,
            "scope": "run files",
            **changed,
        }
        return {name: value for name, value in given.items() if value is not None}


@contextmanager
def identity_provider(
    *,
    port: int = 0,
    path: str = "",
    keys: list[SigningKey] | None = None,
    claims: Mapping[str, Any] | None = None,
    seconds: int = 300,
    callback: str | None = None,
) -> Iterator[IdentityProvider]:
    """Run a provider. `claims` are those that the tokens of a client or a user have besides the usual ones.

    Browsers come back to `callback` that the server itself sends there.
    """
    keys = keys or [SigningKey("first")]
    clients = [
        {
            "client_id": name,
            "client_secret": secret,
            "grant_types": ["client_credentials"],
            "response_types": [],
            "redirect_uris": [],
        }
        for name, secret in (("signed", SECRET), ("opaque", SECRET), ("opaque-other", SECRET), SERVER)
    ]
    if callback is not None:
        of_code = {"grant_types": ["authorization_code"], "response_types": ["code"], "redirect_uris": [callback]}
        clients[-1] |= of_code
    settings = {
        "module": MODULE.as_uri(),
        "port": port,
        "path": path,
        "keys": [key.jwk for key in keys],
        "clients": clients,
        "claims": dict(claims or {}),
        "scopes": list(Right),
        "seconds": seconds,
        "user": "ada",
    }
    with subprocess.Popen(
        [INSTALLED / "node", Path(__file__).with_name("provider.mjs"), json.dumps(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield IdentityProvider(process, json.loads(process.stdout.readline())["issuer"], keys)
        finally:
            process.kill()


def unsigned(claims: Mapping[str, Any], **header: Any) -> str:
    """Return a JWT with an empty signature."""
    parts = ({"alg": "none", "typ": "at+jwt", **header}, dict(claims))
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
