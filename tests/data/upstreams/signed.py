"""An upstream server that wants a user to sign in, and the authorization server beside it: `signed.py PORT FILE SECONDS`.

Its user agrees at once. Access tokens end after SECONDS and can be renewed; `whoami` tells how many were given out.
"""

from __future__ import annotations

import secrets
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
sock.bind(("127.0.0.1", int(sys.argv[1])))
sock.listen()
here = f"http://127.0.0.1:{sock.getsockname()[1]}"
lasts = float(sys.argv[3])
given: dict[str, float] = {}
renewed = [0]


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken | None:
        if time.time() > given.get(token, 0):
            return None
        return AccessToken(token=token, client_id="c", scopes=[], resource=f"{here}/mcp")


server = MCPServer(
    "signed",
    log_level="ERROR",
    token_verifier=Verifier(),
    auth=AuthSettings(issuer_url=here, resource_server_url=f"{here}/mcp", required_scopes=[]),
)


@server.tool()
def whoami() -> int:
    """Tell how often tokens were renewed."""
    return renewed[0]


@server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])
async def metadata(_: Request) -> Response:
    return JSONResponse(
        {
            "issuer": here,
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/odd/token",
            "registration_endpoint": f"{here}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }
    )


@server.custom_route("/register", methods=["POST"])
async def register(request: Request) -> Response:
    asked = await request.json()
    return JSONResponse({**asked, "client_id": "c", "token_endpoint_auth_method": "none"}, 201)


@server.custom_route("/authorize", methods=["GET"])
async def authorize(request: Request) -> Response:
    asked = request.query_params
    answer = {"code": "the-code", "state": asked["state"]}
    return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}")


@server.custom_route("/odd/token", methods=["POST"])
async def token(request: Request) -> Response:
    form = await request.form()
    if form["grant_type"] == "refresh_token":
        renewed[0] += 1
    access = secrets.token_hex()
    given[access] = time.time() + lasts
    answer = {"access_token": access, "token_type": "Bearer", "expires_in": int(lasts), "refresh_token": "again"}
    return JSONResponse(answer)


Path(f"{sys.argv[2]}.new").write_text(here)
Path(f"{sys.argv[2]}.new").rename(sys.argv[2])
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([sock])
