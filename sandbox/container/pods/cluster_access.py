"""The Kubernetes API as a pod's service account reaches it: a few requests, each tried again where that helps.

Source: Kubernetes documentation, "Accessing the Kubernetes API from a Pod" (where address, token, certificate and
namespace are), "API concepts" (the object Status, Retry-After).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...errors import ContainerMissing, WorkerLost

if TYPE_CHECKING:
    import httpx2

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token and the namespace of its account, and the certificate of the API."""
ANSWER_SECONDS = 10.0
TRIES = 4
_PAUSE_SECONDS = 0.25
_PAUSE_SECONDS_MAX = 5.0
_MESSAGE_CHARS_MAX = 300
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_OUTSIDE = (
    "CONTAINER_RUNTIME is kubernetes, but this is no pod with a service account. Run the server in the cluster, with "
    "automountServiceAccountToken, as deploy/kubernetes/overlays/pods does."
)


class ApiRefused(Exception):
    """The API answered a request with an error. `reason` is its word for it, such as AlreadyExists."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}"[:_MESSAGE_CHARS_MAX])
        self.status = status
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Where the API is, and with whose rights it is asked. The token is read each time, since the cluster renews it."""

    url: str
    namespace: str
    token_file: Path
    certificate_file: Path

    @classmethod
    def of_pod(cls, environment: Mapping[str, str], account: Path | None = None) -> ClusterAccess:
        """Find what a pod was given. Raises `ContainerMissing` outside of one."""
        account = account or ACCOUNT
        host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            namespace = (account / "namespace").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            namespace = ""
        if not host or not namespace or not (account / "token").is_file():
            raise ContainerMissing(_OUTSIDE)
        in_url = f"[{host}]" if ":" in host else host
        return cls(f"https://{in_url}:{port}", namespace, account / "token", account / "ca.crt")

    @property
    def pods(self) -> str:
        """The path of the pods of the namespace."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def authorization(self) -> dict[str, str]:
        """Return the header with the token, as it is now. Raises `ContainerMissing` where there is none."""
        try:
            return {"Authorization": f"Bearer {self.token_file.read_text(encoding='ascii').strip()}"}
        except (OSError, ValueError):
            raise ContainerMissing(_OUTSIDE) from None

    def trust(self) -> ssl.SSLContext:
        """Return what trusts the API's certificate alone. Raises `ContainerMissing` where that cannot be read."""
        try:
            return ssl.create_default_context(cafile=str(self.certificate_file))
        except (OSError, ssl.SSLError) as error:
            raise ContainerMissing(
                f"The certificate of the cluster's API cannot be used: {error}. Look at {self.certificate_file}."
            ) from None


class ClusterClient:
    """Asks the API. Requests that may pass the next time are sent up to `TRIES` times: each names its object."""

    def __init__(self, access: ClusterAccess) -> None:
        import httpx2

        self.access = access
        self.trusted = access.trust()
        self._http = httpx2.AsyncClient(
            base_url=access.url, verify=self.trusted, timeout=ANSWER_SECONDS, trust_env=False, follow_redirects=False
        )

    async def ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send a request and return the object that is answered.

        Raises `ApiRefused` for an answer that stays an error, `ContainerMissing` where the account is not known or may
        not do that, `WorkerLost` where the API cannot be reached.
        """
        import httpx2

        pause, trouble, refused = _PAUSE_SECONDS, "it was not asked", None
        for _try in range(TRIES):
            try:
                answer = await self._http.request(
                    method, path, json=body, params=query, headers=self.access.authorization()
                )
            except httpx2.HTTPError as error:
                trouble, refused = f"{type(error).__name__} {error}".strip(), None
            else:
                if answer.is_success:
                    return _object(answer)
                refused = _refused(answer)
                if not _may_pass(refused):
                    _judge(refused)
                    raise refused
                trouble = str(refused)
                pause = max(pause, _asked_to_wait(answer))
            await asyncio.sleep(min(pause, _PAUSE_SECONDS_MAX))
            pause *= 2
        if refused is not None and refused.status == 401:  # noqa: PLR2004
            raise ContainerMissing(
                f"The cluster's API does not know this server's account: {refused}. Renew its token."
            )
        raise WorkerLost(f"The cluster's API does not answer as it should: {trouble[:_MESSAGE_CHARS_MAX]}.")

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()


def _object(answer: httpx2.Response) -> dict[str, Any]:
    try:
        said = answer.json()
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise WorkerLost("The cluster's API answered with what is no object.")
    return cast("dict[str, Any]", said)


def _refused(answer: httpx2.Response) -> ApiRefused:
    """Read the object Status, which an error should have."""
    try:
        said = answer.json()
    except ValueError:
        said = None
    status = said if isinstance(said, dict) else {}
    return ApiRefused(answer.status_code, str(status.get("reason") or ""), str(status.get("message") or ""))


def _may_pass(refused: ApiRefused) -> bool:
    """Return whether the same request may succeed in a moment: a token may have been renewed just now."""
    return refused.status in _PASSING | {401} or (refused.status == 409 and refused.reason != "AlreadyExists")  # noqa: PLR2004


def _judge(refused: ApiRefused) -> None:
    """Raise `ContainerMissing` for what the operator has to change."""
    if refused.status == 403 and "exceeded quota" not in refused.message:  # noqa: PLR2004
        raise ContainerMissing(
            f"The account of this server may not do that in the cluster: {refused.message[:_MESSAGE_CHARS_MAX]}. Give "
            "it the role of deploy/kubernetes/overlays/pods."
        )


def _asked_to_wait(answer: httpx2.Response) -> float:
    try:
        return max(0.0, float(answer.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
