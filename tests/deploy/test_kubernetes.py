"""The manifests of deploy/kubernetes: the API takes them, sealab takes what they say, and nothing in them leads nowhere."""

from __future__ import annotations

import copy
import json
import re
import stat
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import kubernetes_validate
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ..server.conftest import http_server
from ..server.protocol.web.raw import get
from .manifest_faults import SECRET, all_faults
from .rendering import KUBERNETES, OVERLAYS, Manifest, of_kind, pod_of, rendered, server_of

ROOT = KUBERNETES.parents[1]
VERSIONS = ("1.31", "1.34", "1.37")
"""Of the API: the oldest that knows appArmorProfile as a field, one between, and the newest that there are schemas of."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with http_server(tmp_path_factory.mktemp("home"), SEALAB_METRICS="on") as url:
        yield url


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_api_takes_each_object(overlay: str, version: str) -> None:
    for manifest in rendered(overlay):
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_sealab_takes_the_settings_and_every_reference_leads_somewhere(overlay: str) -> None:
    assert all_faults(rendered(overlay)) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_server_answers_what_is_probed_and_scraped_and_measured(overlay: str, url: str) -> None:
    manifests = rendered(overlay)
    probes = [server_of(manifests)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
    annotations = of_kind(manifests, "Deployment")[0]["spec"]["template"]["metadata"]["annotations"]
    (port,) = [port["containerPort"] for port in server_of(manifests)["ports"]]
    assert annotations["prometheus.io/port"] == str(port)
    for path in (*(probe["path"] for probe in probes), annotations["prometheus.io/path"]):
        assert get(url, path).status == 200
    shown = get(url, annotations["prometheus.io/path"]).body.decode()
    metrics = {sample.name for family in text_string_to_metric_families(shown) for sample in family.samples}
    for scaler in of_kind(manifests, "HorizontalPodAutoscaler"):
        measured = [each["pods"]["metric"]["name"] for each in scaler["spec"]["metrics"] if each["type"] == "Pods"]
        assert measured
        assert set(measured) <= metrics


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_image_is_that_of_this_version_and_runs_as_its_own_user(overlay: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    pod = pod_of(rendered(overlay))
    assert {each["image"] for each in (*pod["containers"], *pod["initContainers"])} == {f"sealab:{version}"}
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert f"USER {pod['securityContext']['runAsUser']}\n" in dockerfile
    assert f"useradd --uid {pod['securityContext']['runAsUser']} " in dockerfile


def test_several_servers_keep_nothing_on_a_pod_and_one_keeps_all_on_its_volume() -> None:
    several, one = rendered("team"), rendered("small")
    assert not of_kind(several, "PersistentVolumeClaim")
    names = {each["name"] for each in server_of(several)["env"]}
    assert {"SEALAB_DATABASE_URL", "SEALAB_REPLICA_ADDRESS", "SEALAB_VAULT_KEY"} <= names
    assert "replicas" not in of_kind(several, "Deployment")[0]["spec"]
    assert "persistentVolumeClaim" in next(each for each in pod_of(one)["volumes"] if each["name"] == "state")
    assert of_kind(one, "Deployment")[0]["spec"]["strategy"] == {"type": "Recreate"}
    assert "SEALAB_DATABASE_URL" not in {each["name"] for each in server_of(one)["env"]}


def test_no_secret_is_in_the_manifests() -> None:
    for overlay in OVERLAYS:
        manifests = rendered(overlay)
        assert not of_kind(manifests, "Secret")
        for settings in of_kind(manifests, "ConfigMap"):
            assert not any(
                re.search(r"KEY|SECRET|DATABASE_URL", name.replace("VAULT_KEYRING", "")) for name in settings["data"]
            )


def test_the_documentation_names_each_key_of_the_secret() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    assert all(f"{key}=" in page for key in SECRET)


def test_the_home_is_filled_by_the_command_of_the_first_container(tmp_path: Path) -> None:
    pod = pod_of(rendered("small"))
    (container,) = [each for each in pod["initContainers"] if each["name"] == "home"]
    given = tmp_path / "given"
    (given / "..data").mkdir(parents=True)  # as kubelet lays out a ConfigMap
    (given / "..data" / "mcp.json").write_text('{"mcpServers": {}}')
    (given / "mcp.json").symlink_to("..data/mcp.json")
    command = [each.replace("/etc/sealab/home", str(given)) for each in container["command"]]
    home = tmp_path / "state" / "home"
    (tmp_path / "state").mkdir()
    for _start in range(2):
        subprocess.run(command, env={"SEALAB_HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True)
        assert json.loads((home / "mcp.json").read_text()) == {"mcpServers": {}}
        assert [each.name for each in home.iterdir()] == ["mcp.json"]
        assert stat.S_IMODE(home.stat().st_mode) == 0o700


def container(manifests: list[Manifest]) -> Manifest:
    return dict(of_kind(manifests, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0])


def pod(manifests: list[Manifest]) -> Manifest:
    (deployment,) = of_kind(manifests, "Deployment")
    spec: Manifest = deployment["spec"]["template"]["spec"]
    return spec


def settings(manifests: list[Manifest]) -> Manifest:
    (found,) = [each for each in of_kind(manifests, "ConfigMap") if "SEALAB_AUTH" in each["data"]]
    data: Manifest = found["data"]
    return data


FAULTS: dict[str, Callable[[list[Manifest]], object]] = {
    "a setting that there is not": lambda m: settings(m).update(SEALAB_WORKER_MAX="8"),
    "a value that cannot be": lambda m: settings(m).update(SEALAB_REQUIRED_LEVEL="much"),
    "no authentication": lambda m: settings(m).update(SEALAB_AUTH="off"),
    "a longer drain": lambda m: settings(m).update(SEALAB_DRAIN_SECONDS="300"),
    "a secret that nobody makes": lambda m: container(m)["env"][-1]["valueFrom"]["secretKeyRef"].update(key="vault"),
    "a variable before the one it is made of": lambda m: container(m)["env"].reverse(),
    "another port": lambda m: container(m)["ports"][0].update(name="web"),
    "a probe of no port": lambda m: container(m)["readinessProbe"]["httpGet"].update(port="web"),
    "variables of services": lambda m: pod(m).update(enableServiceLinks=True),
    "a volume that there is not": lambda m: container(m)["volumeMounts"].append({"name": "x", "mountPath": "/x"}),
    "another settings map": lambda m: container(m)["envFrom"][0]["configMapRef"].update(name="sealab-settings"),
    "another account": lambda m: pod(m).update(serviceAccountName="default"),
    "a service of nobody": lambda m: of_kind(m, "Service")[0]["spec"].update(selector={"app": "sealab"}),
    "an ingress to no port": lambda m: of_kind(m, "Service")[0]["spec"]["ports"][0].update(name="web"),
    "a scaler of nothing": lambda m: of_kind(m, "HorizontalPodAutoscaler")[0]["spec"]["scaleTargetRef"].update(
        name="x"
    ),
    "a capability": lambda m: container(m)["securityContext"].update(
        capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    ),
    "no filter": lambda m: pod(m)["securityContext"].update(seccompProfile={"type": "Unconfined"}),
    "a token of the API": lambda m: pod(m).update(automountServiceAccountToken=True),
    "a variable of nothing": lambda m: container(m)["env"].append({"name": "POD_NAME", "value": "$(NAME)"}),
    "an open network": lambda m: of_kind(m, "NetworkPolicy")[0]["spec"].update(policyTypes=["Ingress"]),
    "a rule for everywhere": lambda m: of_kind(m, "NetworkPolicy")[0]["spec"]["egress"].append(
        {"ports": [{"port": 443}]}
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    manifests = copy.deepcopy(rendered("team"))
    FAULTS[fault](manifests)
    assert all_faults(manifests) != []
