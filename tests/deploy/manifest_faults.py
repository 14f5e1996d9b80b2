"""What is wrong with rendered manifests: references that lead nowhere, settings that are none, open doors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields

from sealab.server.app import AUDIT_CLOSING_SECONDS, CLOSING_SECONDS
from sealab.server.base.errors import ServerError
from sealab.server.base.settings import Settings, read_settings
from sealab.server.interfaces.protocol.address import Address, Exposure

from .rendering import KUBERNETES, Manifest, of_kind, pod_of, server_of

SECRET = {
    "vault-key": "a" * 64,
    "database-url": "postgresql://sealab:secret@db.example:5432/sealab",
    "store-key-id": "id",
    "store-key": "key",
}
"""The keys of the Secret that the operator makes, which docs/kubernetes.md tells, and such as may stand there."""
FIELDS = {
    "status.podIP": "10.1.2.3", "metadata.name": "sealab-abc", "metadata.namespace": "sealab", "metadata.uid": "u",
}  # fmt: skip
OF_OTHERS = re.compile(r"AWS_[A-Z_]+|PROXIES|POD_(IP|NAME|UID|NAMESPACE)")
"""Variables that are no settings: those of the store's client, and what others are made of."""
KNOWN = {f"SEALAB_{each.name.upper()}" for each in fields(Settings)} | {"SEALAB_HOME"}


def environment(manifests: list[Manifest]) -> Iterator[tuple[str, str | None]]:
    """Return the variables of the server in order, None for one whose value leads nowhere."""
    maps = {each["metadata"]["name"]: each["data"] for each in of_kind(manifests, "ConfigMap")}
    container, known = server_of(manifests), dict[str, str]()
    for source in container.get("envFrom", []):
        known |= maps.get(source["configMapRef"]["name"], {})
    yield from known.items()
    for each in container.get("env", []):
        given, value = each.get("valueFrom", {}), each.get("value")
        if "secretKeyRef" in given:
            secret = given["secretKeyRef"]
            value = SECRET.get(secret["key"]) if secret["name"] == "sealab" else None
        elif "fieldRef" in given:
            value = FIELDS.get(given["fieldRef"]["fieldPath"])
        elif value is not None:
            value = re.sub(r"\$\(([A-Z_]+)\)", lambda found: known.get(found[1], found[0]), value)
            value = None if "$(" in value else value  # a name that does not stand before it is left as it is
        if value is not None:
            known[each["name"]] = value
        yield each["name"], value


def of_settings(manifests: list[Manifest]) -> Iterator[str]:
    """Sealab itself has to take the environment and the command line of the container."""
    given = dict(environment(manifests))
    for name, value in given.items():
        if value is None:
            yield f"the value of {name} leads nowhere"
        if name not in KNOWN and not OF_OTHERS.fullmatch(name):
            yield f"{name} is no setting"
    taken = {name: value for name, value in given.items() if name in KNOWN and value is not None}
    arguments = [
        re.sub(r"\$\(([A-Z_]+)\)", lambda found: given.get(found[1]) or found[0], each) for each in _args(manifests)
    ]
    chosen = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    try:
        settings = read_settings(file=KUBERNETES / "no", file_required=False, environment=taken, command_line={})
        exposure = Exposure.parse(
            authenticates=settings.auth.value != "off", proxies=chosen["--behind-proxy"], public_url=settings.public_url
        )
        address = Address.parse(chosen["--http"], exposure)
    except (ServerError, KeyError) as error:
        yield f"sealab does not start: {error}"
        return
    ports = [each["containerPort"] for each in server_of(manifests)["ports"] if each["name"] == "http"]
    if (arguments[0], [address.port], address.is_every) != ("serve", ports, True):
        yield "it does not listen at the port of the container"
    pod = pod_of(manifests)
    (_sleep, seconds) = server_of(manifests)["lifecycle"]["preStop"]["exec"]["command"]
    least = float(seconds) + settings.drain_seconds + CLOSING_SECONDS + AUDIT_CLOSING_SECONDS
    if pod["terminationGracePeriodSeconds"] < least:
        yield f"a drain may take {least:g} s"
    if pod["enableServiceLinks"]:
        yield "variables of services begin with SEALAB_ too, and are no settings"


def _args(manifests: list[Manifest]) -> list[str]:
    return list(server_of(manifests)["args"])


def of_references(manifests: list[Manifest]) -> Iterator[str]:
    """What is named has to be there."""
    pod, labels = pod_of(manifests), of_kind(manifests, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    names = {(each["kind"], each["metadata"]["name"]) for each in manifests}
    wanted = [("ServiceAccount", pod["serviceAccountName"])]
    for volume in pod["volumes"]:
        if "configMap" in volume:
            wanted.append(("ConfigMap", volume["configMap"]["name"]))
        if "persistentVolumeClaim" in volume:
            wanted.append(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in (*pod["containers"], *pod["initContainers"]):
        wanted += [("ConfigMap", source["configMapRef"]["name"]) for source in container.get("envFrom", [])]
        if missing := {mount["name"] for mount in container["volumeMounts"]} - volumes:
            yield f"there are no volumes {missing}"
    for scaler in of_kind(manifests, "HorizontalPodAutoscaler"):
        wanted.append((scaler["spec"]["scaleTargetRef"]["kind"], scaler["spec"]["scaleTargetRef"]["name"]))
    services = {each["metadata"]["name"]: each["spec"]["ports"] for each in of_kind(manifests, "Service")}
    for ingress in of_kind(manifests, "Ingress"):
        for rule in ingress["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                service = path["backend"]["service"]
                if service["port"]["name"] not in {port["name"] for port in services.get(service["name"], [])}:
                    yield f"{path['path']} leads to no port of a service"
    yield from (f"there is no {kind} {name}" for kind, name in wanted if (kind, name) not in names)
    ports = {port["name"] for port in server_of(manifests)["ports"]}
    probes = [server_of(manifests)[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")]
    targets = [port["targetPort"] for each in services.values() for port in each]
    yield from (f"the server has no port {port}" for port in (*probes, *targets) if port not in ports)
    selectors = [each["spec"]["selector"] for each in of_kind(manifests, "Service")]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in of_kind(manifests, "PodDisruptionBudget")]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in of_kind(manifests, "Deployment")]
    yield from (f"no pod has the labels {each}" for each in selectors if not each or not each.items() <= labels.items())


def of_confinement(manifests: list[Manifest]) -> Iterator[str]:
    """Pods are confined as the Pod Security Standard `restricted` says, and speak to named places alone."""
    pod = pod_of(manifests)
    if not pod["securityContext"]["runAsNonRoot"] or pod["securityContext"]["seccompProfile"]["type"] == "Unconfined":
        yield "the pod is not confined"
    if pod["automountServiceAccountToken"]:
        yield "a token of the cluster's API is mounted that nothing needs"
    for container in (*pod["containers"], *pod["initContainers"]):
        confined = container["securityContext"]
        if (
            confined["allowPrivilegeEscalation"]
            or confined["capabilities"] != {"drop": ["ALL"]}
            or not confined["readOnlyRootFilesystem"]
        ):
            yield f"{container['name']} is not confined"
        if "memory" not in container["resources"]["limits"]:
            yield f"{container['name']} has no limit of memory"
    policies = of_kind(manifests, "NetworkPolicy")
    if not policies or any(set(each["spec"]["policyTypes"]) != {"Ingress", "Egress"} for each in policies):
        yield "the network is open"
    for rule in (rule for each in policies for rule in each["spec"].get("egress", [])):
        networks = [to.get("ipBlock", {}).get("cidr", "") for to in rule.get("to", [])]
        if not rule.get("to") or not rule.get("ports") or any(each.endswith("/0") for each in networks):
            yield "a rule lets out to everywhere"


CHECKS: tuple[Callable[[list[Manifest]], Iterator[str]], ...] = (of_settings, of_references, of_confinement)


def all_faults(manifests: list[Manifest]) -> list[str]:
    return [fault for check in CHECKS for fault in check(manifests)]
