"""Security boundary: what a pod that runs code may: nothing but compute, for a bounded time.

It has no token of the API, no variables of services, no capability, no way to gain privileges, a system call filter, a
read-only root, a user of its own, and limits of memory and disk. The network is closed by a NetworkPolicy for its label
(deploy/kubernetes/overlays/pods), which the cluster has to enforce; the sandbox inside closes it a second time.

Source: Kubernetes documentation, "Pod Security Standards", profile Restricted.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from ..engine import SCRATCH_MB
from ..running_container import ContainerNeeds

LIFE_SECONDS = 86_400
"""After that the cluster ends a pod, whatever it does and whoever has forgotten it. A session in it ends too."""
LABEL = "app.kubernetes.io/name"
LABELLED = "sealab-sandbox"
OWNER = "sealab/owner"
INSTANCE = "sealab/instance"
CONTAINER = "worker"

_USER_FIRST = 100_000
_USERS = 1_000_000_000
# The image is the operator's, and so is what its Python runs at its start. What it has of sealab has to be of this
# version, since the two speak a protocol of their own.
_FORK_SERVER = (
    "import sys;from importlib.metadata import version;"
    "version('sealab')==sys.argv[1] or sys.exit('the image has sealab '+version('sealab'));"
    "from sealab.sandbox.container.fork_server import main;main()"
)


@dataclass(frozen=True, slots=True)
class PodOwner:
    """The server that has pods: its name, this run of it, and the ids of its own pod, where it knows them.

    With these the cluster deletes what the server left behind once its own pod is deleted.
    """

    name: str
    instance: str
    pod_name: str | None = None
    pod_uid: str | None = None


def manifest(
    needs: ContainerNeeds, image: str, version: str, owner: PodOwner, runtime_class: str | None
) -> dict[str, Any]:
    """Return the pod that runs a fork server, attached to by its standard streams.

    `stdinOnce`: when whoever is attached leaves, its input ends, and with it the fork server, and so the pod.
    """
    memory = f"{needs.memory_mb}Mi"
    cpus = {} if needs.cpus is None else {"cpu": f"{round(needs.cpus * 1000)}m"}
    # Of its own, since a limit of processes counts all of one user on a node (setrlimit(2), RLIMIT_NPROC).
    user = _USER_FIRST + secrets.randbelow(_USERS)
    metadata: dict[str, Any] = {
        "name": needs.name,
        "labels": {LABEL: LABELLED, OWNER: owner.name, INSTANCE: owner.instance},
    }
    if owner.pod_name is not None and owner.pod_uid is not None:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": owner.pod_name, "uid": owner.pod_uid}
        ]
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": LIFE_SECONDS,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": "sandbox",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": image,
                "command": ["python3", "-I", "-X", "utf8", "-c", _FORK_SERVER, version],
                "workingDir": "/",
                "stdin": True,
                "stdinOnce": True,
                "env": [{"name": "OPENBLAS_NUM_THREADS", "value": "1"}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "resources": {
                    "requests": {"memory": memory, "ephemeral-storage": f"{SCRATCH_MB}Mi", **cpus},
                    "limits": {"memory": memory, "ephemeral-storage": f"{2 * SCRATCH_MB}Mi", **cpus},
                },
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - inside
            }
        ],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": f"{SCRATCH_MB}Mi"}}],
    }
    if runtime_class is not None:
        spec["runtimeClassName"] = runtime_class
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
