"""Cgroup paths as container runtimes and systemd make them, in both versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purebpf.symbols.cgroup_names import CgroupName, cgroup_name

ID = "3f2a9c1b2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccdde"
OTHER = "0123456789abcdef" * 4
POD = "9f86d081-884c-4d65-9a2f-eaa0c55ad015"
SYSTEMD_POD = POD.replace("-", "_")
KUBE = "/kubepods.slice/kubepods-burstable.slice"
SHORT = ID[:12]

CONTAINERS = {
    # version 2
    f"0::/system.slice/docker-{ID}.scope": CgroupName("docker", SHORT),
    f"0::/docker/{ID}": CgroupName("docker", SHORT),
    f"0::/system.slice/docker-{ID}.scope/system.slice/ssh.service": CgroupName("docker", SHORT),
    f"0::/system.slice/docker-{OTHER}.scope/docker/{ID}": CgroupName("docker", SHORT),
    f"0::/ecstasks.slice/ecstasks-0.slice/docker-{ID}.scope": CgroupName("docker", SHORT),
    f"0::/../docker-{ID}.scope": CgroupName("docker", SHORT),
    f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{ID}.scope": CgroupName(
        "docker", SHORT
    ),
    f"0::/system.slice/nerdctl-{ID}.scope": CgroupName("containerd", SHORT),
    f"0::{KUBE}/kubepods-burstable-pod{SYSTEMD_POD}.slice/cri-containerd-{ID}.scope": CgroupName(
        "containerd", SHORT, "9f86d081"
    ),
    "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
    f"kubelet-kubepods-besteffort-pod{SYSTEMD_POD}.slice/cri-containerd-{ID}.scope": CgroupName(
        "containerd", SHORT, "9f86d081"
    ),
    f"0::/system.slice/containerd.service/kubepods-burstable-pod{SYSTEMD_POD}.slice:"
    f"cri-containerd:{ID}": CgroupName("containerd", SHORT, "9f86d081"),
    f"0::/kubepods/burstable/pod{POD}/{ID}": CgroupName("kubernetes", SHORT, "9f86d081"),
    f"0::{KUBE}/kubepods-burstable-pod{SYSTEMD_POD}.slice/crio-{ID}.scope": CgroupName(
        "cri-o", SHORT, "9f86d081"
    ),
    f"0::{KUBE}/kubepods-burstable-pod{SYSTEMD_POD}.slice/crio-{ID}.scope/container": CgroupName(
        "cri-o", SHORT, "9f86d081"
    ),
    f"0::/machine.slice/libpod-{ID}.scope": CgroupName("podman", SHORT),
    f"0::/machine.slice/libpod-{ID}.scope/container": CgroupName("podman", SHORT),
    "0::/user.slice/user-1000.slice/user@1000.service/user.slice/"
    f"libpod-{ID}.scope/container": CgroupName("podman", SHORT),
    "0::/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_"
    f"{OTHER}.slice/libpod-{ID}.scope": CgroupName("podman", SHORT, OTHER[:8]),
    f"0::/libpod_parent/libpod-{ID}": CgroupName("podman", SHORT),
    f"0::/system.slice/web.service/libpod-payload-{ID}": CgroupName("podman", SHORT),
    "0::/lxc.payload.web": CgroupName("lxc", "web"),
    "0::/lxc.payload.web/system.slice/cron.service": CgroupName("lxc", "web"),
    "0::/machine.slice/machine-debian.scope/payload": CgroupName("machine", "debian"),
    "0::/machine.slice/systemd-nspawn@web.service/payload": CgroupName("machine", "web"),
    "0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/emulator": CgroupName(
        "machine", "qemu-1-vm"
    ),
    f"0::/ecs/0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7/{ID}": CgroupName("ecs", SHORT),
    "0::/ecs/0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7/0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7-123456789": (
        CgroupName("ecs", "0e1f2a3b4c5d")
    ),
    f"0::/garden/{ID}": CgroupName("container", SHORT),
    # version 1, alone and with version 2 beside it
    f"12:pids:/docker/{ID}\n11:cpu,cpuacct:/docker/{ID}\n1:name=systemd:/docker/{ID}": CgroupName(
        "docker", SHORT
    ),
    f"1:name=systemd:/docker/{ID}\n0::/system.slice/containerd.service": CgroupName(
        "docker", SHORT
    ),
    f"11:memory:/kubepods/besteffort/pod{POD}/{ID}\n1:name=systemd:/kubepods/besteffort/pod{POD}/"
    f"{ID}": CgroupName("kubernetes", SHORT, "9f86d081"),
    "4:memory:/lxc/web\n1:name=systemd:/lxc/web": CgroupName("lxc", "web"),
}
OTHERS = {
    "0::/system.slice/nginx.service": CgroupName("unit", "nginx.service"),
    "0::/system.slice/system-postgresql.slice/postgresql@13-main.service": CgroupName(
        "unit", "postgresql@13-main.service"
    ),
    "0::/system.slice/web.service/worker": CgroupName("unit", "web.service"),
    "0::/init.scope": CgroupName("unit", "init.scope"),
    "0::/user.slice/user-1000.slice/session-2.scope": CgroupName("unit", "session-2.scope"),
    "0::/user.slice/user-1000.slice/user@1000.service/init.scope": CgroupName(
        "unit", "user@1000/init.scope"
    ),
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-foo\\x2dbar.service": (
        CgroupName("unit", "user@1000/app-foo-bar.service")
    ),
    "0::/system.slice/dev-hugepages.mount": CgroupName("unit", "dev-hugepages.mount"),
    "0::/machine.slice/libpod-conmon-" + ID + ".scope": CgroupName(
        "unit", f"libpod-conmon-{SHORT}.scope"
    ),
    "5:memory:/system.slice/cron.service\n1:name=systemd:/system.slice/cron.service\n0::/": (
        CgroupName("unit", "cron.service")
    ),
    "0::/user.slice": CgroupName("slice", "user.slice"),
    "0::/batch/job 7 (deleted)": CgroupName("path", "/batch/job 7"),
    "4:memory:/batch:night\n0::/": CgroupName("path", "/batch:night"),
    "0::/": CgroupName("path", ""),
    "0::/../..": CgroupName("path", ""),
    "": CgroupName("path", ""),
    "no line of this form\n::\n": CgroupName("path", ""),
}


@pytest.mark.parametrize(("text", "name"), [*CONTAINERS.items(), *OTHERS.items()])
def test_a_cgroup_path_is_the_name_of_its_container(text, name):
    assert cgroup_name(text) == name
    assert cgroup_name(f"{text}\n") == name


@pytest.mark.parametrize(
    ("name", "label"),
    [
        (CgroupName("docker", SHORT), "docker:3f2a9c1b2d3e"),
        (CgroupName("cri-o", SHORT, "9f86d081"), "pod:9f86d081/cri-o:3f2a9c1b2d3e"),
        (CgroupName("unit", "nginx.service"), "nginx.service"),
        (CgroupName("path", ""), ""),
    ],
)
def test_a_cgroup_name_has_a_label(name, label):
    assert name.label == label


@given(st.text(st.sampled_from("0:/.-_\\x2d \ndockerslicpunb@af\x00\udcff"), max_size=200))
def test_any_text_has_a_name(text):
    found = cgroup_name(text)
    assert found.kind
    assert isinstance(found.label, str)
