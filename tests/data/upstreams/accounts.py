"""An upstream server with accounts, and the issuer of its tokens beside it: `accounts.py PORT FILE`.

A browser signs in as the account that its cookie `account` names. Access tokens end after `lasts` seconds, refresh
tokens are rotated, and one that is used twice ends its whole sign-in (RFC 9700, 4.14.2). `/told` gives every secret
that was given out or seen, and `/set` changes how the issuer behaves; `anew` has it behave as usual, with nothing to tell.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sock.bind(("127.0.0.1", int(sys.argv[1])))
sock.listen()
here = f"http://127.0.0.1:{sock.getsockname()[1]}"
USUAL = {"lasts": 3600, "iss": here, "refuses_all": False, "slow": 0, "late": 0, "denies": False}
behaves: dict[str, Any] = dict(USUAL)
clients: dict[str, dict[str, Any]] = {}
codes: dict[str, dict[str, Any]] = {}
access: dict[str, tuple[str, float]] = {}
refresh: dict[str, tuple[str, str, bool]] = {}
"""By token: the account, its sign-in, and whether it was used."""
told: dict[str, list[str]] = {"secrets": [], "seen": [], "revoked": [], "reused": [], "subjects": [], "renewed": []}


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        account, ends = access.get(token, ("", 0.0))
        if behaves["refuses_all"] or time.time() > ends:
            return None
        return AccessToken(token=token, client_id=account, scopes=[], resource=f"{here}/mcp")


server = MCPServer(
    "accounts",
    log_level="ERROR",
    token_verifier=Verifier(),
    auth=AuthSettings(issuer_url=here, resource_server_url=f"{here}/mcp", required_scopes=[]),
)


@server.tool()
def whoami() -> str:
    """Tell whose token this call came with."""
    token = get_access_token()
    return "nobody" if token is None else token.client_id


@server.resource("account://mine")
def mine() -> str:
    """Tell whose token reads this."""
    token = get_access_token()
    return "nobody" if token is None else token.client_id


def given(account: str, sign_in: str) -> Response:
    new, again = f"access-{secrets.token_hex(16)}", f"refresh-{secrets.token_hex(16)}"
    access[new] = account, time.time() + behaves["lasts"]
    refresh[again] = account, sign_in, False
    told["secrets"] += [new, again]
    return JSONResponse(
        {"access_token": new, "token_type": "Bearer", "expires_in": int(behaves["lasts"]), "refresh_token": again}
    )


def refused(error: str) -> Response:
    return JSONResponse({"error": error, "error_description": " ".join(told["secrets"])}, 400)


@server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])
async def metadata(_: Request) -> Response:
    return JSONResponse(
        {
            "issuer": here,
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/token",
            "registration_endpoint": f"{here}/register",
            "revocation_endpoint": f"{here}/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }
    )


@server.custom_route("/register", methods=["POST"])
async def register(request: Request) -> Response:
    asked = await request.json()
    client = {**asked, "client_id": secrets.token_hex(8), "client_secret": f"client-{secrets.token_hex(16)}"}
    clients[client["client_id"]] = client
    told["secrets"].append(client["client_secret"])
    return JSONResponse(client, 201)


@server.custom_route("/authorize", methods=["GET"])
async def authorize(request: Request) -> Response:
    asked = dict(request.query_params)
    client = clients[asked["client_id"]]
    assert asked["redirect_uri"] in client["redirect_uris"]
    assert asked["resource"] == f"{here}/mcp"
    assert asked["code_challenge_method"] == "S256"
    answer = {"state": asked["state"]} | ({"iss": behaves["iss"]} if behaves["iss"] else {})
    if behaves["denies"]:
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer | {'error': 'access_denied'})}", 302)
    code = f"code-{secrets.token_hex(16)}"
    codes[code] = asked | {"account": request.cookies.get("account", "nobody")}
    told["secrets"].append(code)
    return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer | {'code': code})}", 302)


@server.custom_route("/token", methods=["POST"])
async def token(request: Request) -> Response:
    form = {name: str(value) for name, value in (await request.form()).items()}
    await asyncio.sleep(behaves["slow"])
    if form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange":
        told["subjects"].append(form["subject_token"])
        subject = form["subject_token"]
        if subject.count(".") == 2:  # a JWT, whose signature is another issuer's
            claims = json.loads(base64.urlsafe_b64decode(subject.split(".")[1] + "=="))
            return given(f"exchanged for {claims.get('sub') or claims['client_id']}", "exchanged")
        if form["audience"] != "accounts" or not subject.startswith("subject-"):
            return refused("invalid_request")
        return given(subject.split("-")[1], "exchanged")
    basic = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
    client_id, _, secret = basic.partition(":")
    if clients.get(client_id, {}).get("client_secret") != secret:
        return refused("invalid_client")
    if form["grant_type"] == "authorization_code":
        asked = codes.pop(form["code"], None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked is None or asked["client_id"] != client_id or asked["code_challenge"] != digest:
            return refused("invalid_grant")
        assert form["redirect_uri"] == asked["redirect_uri"]
        return given(asked["account"], secrets.token_hex(8))
    account, sign_in, was_used = refresh.get(form["refresh_token"], ("", "", False))
    if was_used:
        told["reused"].append(account)
        for each, (_, of, _used) in list(refresh.items()):
            if of == sign_in:
                del refresh[each]
        return refused("invalid_grant")
    if not account:
        return refused("invalid_grant")
    refresh[form["refresh_token"]] = account, sign_in, True
    told["renewed"].append(account)
    answer = given(account, sign_in)
    await asyncio.sleep(behaves["late"])
    return answer


@server.custom_route("/revoke", methods=["POST"])
async def revoke(request: Request) -> Response:
    gone = str((await request.form())["token"])
    told["revoked"].append(gone)
    access.pop(gone, None)
    refresh.pop(gone, None)
    return Response()


@server.custom_route("/told", methods=["GET"])
async def tell(_: Request) -> Response:
    return JSONResponse(told)


@server.custom_route("/set", methods=["POST"])
async def change(request: Request) -> Response:
    asked = await request.json()
    if asked.pop("anew", False):
        behaves.update(USUAL)
        for each in told.values():
            each.clear()
    if asked.pop("end_access", False):
        access.clear()
    behaves.update(asked)
    return Response()


class Seen(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: Any) -> Response:
        if request.url.path == "/mcp":
            told["seen"].append(request.headers.get("authorization", ""))
        answer: Response = await call_next(request)
        return answer


app = server.streamable_http_app()
app.add_middleware(Seen)
Path(f"{sys.argv[2]}.new").write_text(here)
Path(f"{sys.argv[2]}.new").rename(sys.argv[2])
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([sock])
