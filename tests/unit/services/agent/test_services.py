"""Services of processes: on trees of cgroups and logs as runtimes and kubelets make them."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.services.agent.config import Rule
from purebpf.services.agent.services import PodNames, Process, Services, pod_owner

ID = "3f2a9c1b" * 8
UID = "9f86d081-884c-4d65-9a2f-eaa0c55ad015"
STATIC = "0123456789abcdef0123456789abcdef"
POD = "shop-7d9f8b6c5d-x2x9z"

SYSTEMD = "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/{}\n"
CGROUPS = {
    "containerd": SYSTEMD.format(UID.replace("-", "_"), f"cri-containerd-{ID}.scope"),
    "cri-o": SYSTEMD.format(UID.replace("-", "_"), f"crio-{ID}.scope"),
    "docker": SYSTEMD.format(UID.replace("-", "_"), f"docker-{ID}.scope"),
    "cgroupfs": f"0::/kubepods/burstable/pod{UID}/{ID}\n",
    "v1": f"11:memory:/kubepods/pod{UID}/{ID}\n1:name=systemd:/kubepods/pod{UID}/{ID}\n",
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "pods" / f"prod_{POD}_{UID}" / "app").mkdir(parents=True)
    (tmp_path / "pods" / f"kube-system_etcd-node1_{STATIC}" / "etcd").mkdir(parents=True)
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / f"{POD}_prod_app-{ID}.log").symlink_to("gone")
    return tmp_path


def resource(process: Process, logs: Path | None = None, *rules: Rule) -> dict[str, object]:
    pods = None
    if logs is not None:
        pods = PodNames(str(logs))
        pods.read()
    return dict(Services(rules, [("env", "prod")], "node1", pods).resource(process))


@pytest.mark.parametrize("runtime", CGROUPS)
def test_a_pod_has_its_names_under_each_runtime(runtime: str, logs: Path) -> None:
    found = resource(Process("python", CGROUPS[runtime], build_id="ab" * 20), logs)
    assert found == {
        "service.name": "shop/app",
        "service.version": "abababababab",
        "host.name": "node1",
        "k8s.namespace.name": "prod",
        "k8s.pod.name": POD,
        "k8s.pod.uid": UID,
        "k8s.container.name": "app",
        "container.id": ID,
        "env": "prod",
    }


def test_a_pod_without_a_link_has_the_name_of_its_folder(logs: Path) -> None:
    cgroup = f"0::/kubepods/pod{STATIC}/{'ab' * 32}\n"
    found = resource(Process("etcd", cgroup), logs)
    assert found["service.name"] == "etcd-node1"
    assert found["k8s.namespace.name"] == "kube-system"


def test_an_old_kubelet_had_the_uid_alone(tmp_path: Path) -> None:
    (tmp_path / "pods" / UID).mkdir(parents=True)
    assert resource(Process("a", CGROUPS["cri-o"]), tmp_path)["k8s.pod.name"] == UID


def test_without_logs_the_container_is_the_service(tmp_path: Path) -> None:
    found = resource(Process("a", CGROUPS["docker"]), tmp_path / "nothing")
    assert found["service.name"] == ID[:12]
    assert found["k8s.pod.uid"] == UID


@pytest.mark.parametrize(
    ("cgroup", "service"),
    [
        ("0::/system.slice/nginx.service\n", "nginx.service"),
        (f"0::/system.slice/docker-{ID}.scope\n", ID[:12]),
        ("0::/user.slice\n", "bash"),
        ("", "bash"),
    ],
)
def test_a_unit_then_a_container_then_the_name(cgroup: str, service: str) -> None:
    assert resource(Process("bash", cgroup))["service.name"] == service


@pytest.mark.parametrize(
    ("comm", "cgroup"),
    [
        ("a\udcff\x1b[2J\n", ""),
        ("bash", "0::/system.slice/a\udcff\x1b[2J\x85.service\n"),
    ],
)
def test_names_beyond_text_are_readable(comm: str, cgroup: str) -> None:
    name = str(resource(Process(comm, cgroup))["service.name"])
    assert name.removesuffix(".service") == "a??[2J?"


def test_the_first_rule_that_matches_names_the_service(logs: Path) -> None:
    rules = (
        Rule("never", comm="^java$", cgroup="kubepods"),
        Rule(r"team-\1\9", exe="^/opt/([a-z]+)/"),
        Rule("late", comm="python"),
    )
    process = Process("python", CGROUPS["cri-o"], "/opt/billing/bin/python")
    assert resource(process, logs, *rules)["service.name"] == "team-billing"
    assert resource(Process("python"), logs, *rules)["service.name"] == "late"


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        (POD, "shop"),
        ("agent-x2x9z", "agent"),
        ("db-0", "db"),
        ("db-12", "db"),
        ("etcd-node-a", "etcd-node-a"),
        ("plain", "plain"),
    ],
)
def test_the_owner_is_the_name_without_what_was_generated(pod: str, owner: str) -> None:
    assert pod_owner(pod) == owner
