"""/proc and /sys, from files made for the purpose."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from purebpf.errors import KernelError
from purebpf.symbols.cgroup_names import cgroup_name
from purebpf.symbols.proc_maps import parse_maps
from purebpf.syscall import pmu, proc


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(proc, "PROC", str(tmp_path / "proc"))
    monkeypatch.setattr(proc, "SYS", str(tmp_path / "sys"))
    monkeypatch.setattr(proc, "BOOT", str(tmp_path / "boot"))
    return tmp_path


def put(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def test_the_real_user_is_the_first_of_four(root):
    put(root / "proc/7/status", b"Name:\tUid:\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n")
    put(root / "proc/8/status", b"Name:\tx\n")
    assert [proc.real_user(pid) for pid in (7, 8, 9)] == [1000, None, None]


def test_status_is_a_dict_of_stripped_text(root):
    put(root / "proc/7/status", b"Name:\tpython: 3\nCapEff:\t000001ffffffffff\nGroups:\t\n")
    assert proc.status(7) == {"Name": "python: 3", "CapEff": "000001ffffffffff", "Groups": ""}


def test_the_parent_is_a_line_of_the_status(root):
    name = b"Name:\t\\nPPid:\t9\nState:\tS\nPPid:\t41\nTracerPid:\t0\n"
    put(root / "proc/7/status", name)
    assert proc.parent(7) == 41
    assert proc.parent(8) is None


def test_a_process_that_is_gone_is_none(root):
    assert [read(7) for read in (proc.status, proc.maps, proc.comm, proc.cgroup)] == [None] * 4


def test_what_exists_and_cannot_be_read_is_an_error(root):
    (root / "proc/7/maps").mkdir(parents=True)
    with pytest.raises(KernelError, match=r"read\(.*/proc/7/maps\) failed with EISDIR"):
        proc.maps(7)


def test_file_names_survive_whatever_their_bytes(root):
    line = b"55d000-55e000 r-xp 00000000 08:01 12 /tmp/\xff\xfe caf\xc3\xa9\n"
    put(root / "proc/7/maps", line)
    text = proc.maps(7)
    assert text is not None
    assert os.fsencode(text) == line


def test_a_comm_keeps_its_spaces(root):
    put(root / "proc/7/comm", b" odd name \n")
    assert proc.comm(7) == " odd name "


def test_sysctl_names_are_dotted_and_a_missing_one_is_none(root):
    put(root / "proc/sys/kernel/perf_event_paranoid", b"2\n")
    assert proc.sysctl("kernel.perf_event_paranoid") == "2"
    assert proc.sysctl("kernel.unprivileged_bpf_disabled") is None


def test_cpu_lists_are_the_kernels_text(root):
    put(root / "sys/devices/system/cpu/possible", b"0-3,8-11\n")
    assert proc.cpu_list("possible") == "0-3,8-11"
    assert proc.cpu_list("online") is None


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (b"[none] integrity confidentiality\n", "none"),
        (b"none [integrity] confidentiality\n", "integrity"),
    ],
)
def test_the_lockdown_mode_is_the_bracketed_one(root, text, mode):
    put(root / "sys/kernel/security/lockdown", text)
    assert proc.lockdown() == mode


def test_no_lockdown_file_is_none(root):
    assert proc.lockdown() is None


def test_mount_points_are_unescaped(root):
    put(
        root / "proc/self/mounts",
        b"bpf /sys/fs/bpf bpf rw 0 0\nnone /mnt/a\\040b\\134c tracefs rw 0 0\n",
    )
    assert proc.mounts() == [("/sys/fs/bpf", "bpf"), ("/mnt/a b\\c", "tracefs")]


def test_the_uid_map_of_a_user_namespace(root):
    put(
        root / "proc/self/uid_map",
        b"         0       1000          1\n         1     100000      65536\n",
    )
    assert proc.uid_map() == "0 1000 1; 1 100000 65536"


def test_the_program_is_that_of_a_thread_that_goes_on(root):
    for pid in (7, 8, 9):
        (root / f"proc/{pid}/task/{pid}").mkdir(parents=True)
    (root / "proc/7/exe").symlink_to("/usr/bin/cat")
    assert proc.program(7) == "/usr/bin/cat"
    assert proc.program(8) is None, "a zombie, or a thread of the kernel"
    (root / "proc/9/task/10").mkdir()
    (root / "proc/10").mkdir()
    assert proc.program(9) is None
    (root / "proc/10/exe").symlink_to("/usr/bin/dog")
    assert proc.program(9) == "/usr/bin/dog"
    assert proc.program(6) is None, "nobody"


def test_this_very_process():
    status = proc.status()
    assert status is not None
    assert int(status["Pid"]) == os.getpid()
    assert "libc" in (proc.maps("self") or "")


def test_the_configuration_is_the_kernels_own_or_that_in_boot(root):
    assert proc.kernel_config() is None
    put(root / f"boot/config-{os.uname().release}", b"CONFIG_HZ=100\n")
    assert proc.kernel_config() == "CONFIG_HZ=100\n"
    put(root / "proc/config.gz", gzip.compress(b"CONFIG_HZ=250\n"))
    assert proc.kernel_config() == "CONFIG_HZ=250\n"


def test_a_performance_unit_and_one_that_is_not_there(root):
    put(root / "sys/bus/event_source/devices/kprobe/format/retprobe", b"config:0\n")
    assert pmu.attribute("kprobe", "format/retprobe") == "config:0"
    assert pmu.attribute("uprobe", "type") is None


def test_cpus_have_been_idle_for_so_many_seconds(root):
    put(
        root / "proc/stat",
        b"cpu  9 9 9 900 90 0 0 0 0 0\ncpu0 1 2 3 500 50 0 0 0 0 0\ncpu7 1 2 3 400 40\nintr 5 4\n",
    )
    ticks = os.sysconf("SC_CLK_TCK")
    assert proc.idle_seconds() == {0: 550 / ticks, 7: 440 / ticks}


def test_a_kernel_without_symbols_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(proc, "KALLSYMS", str(tmp_path / "none"))
    with pytest.raises(KernelError, match=r"read\(.*none\) failed with ENOENT"):
        proc.kallsyms()


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
def test_a_name_cannot_end_a_line(root, end):
    """The kernel escapes only newlines and backslashes in what users call their files."""
    put(root / "proc/7/status", f"Name:\ta{end}Forged:\t1\nUid:\t7\n".encode())
    assert proc.status(7) == {"Name": f"a{end}Forged:\t1", "Uid": "7"}
    line = f"1000-2000 r-xp 00000000 08:01 12 /tmp/x{end}3000-4000 r-xp 0 0:0 9 /bin/su\n"
    put(root / "proc/7/maps", line.encode())
    assert [mapping.start for mapping in parse_maps(proc.maps(7) or "")] == [0x1000]
    mount = f"none /tmp/a{end}b{end}c fuse rw 0 0\nnone /sys/fs/cgroup cgroup2 rw 0 0\n"
    put(root / "proc/self/mounts", mount.encode())
    assert proc.mounts() == [(f"/tmp/a{end}b{end}c", "fuse"), ("/sys/fs/cgroup", "cgroup2")]
    put(root / "proc/7/comm", f"a{end}b\n".encode())
    assert proc.comm(7) == f"a{end}b"
    below = "/user.slice/user-7.slice/user@7.service"
    put(root / "proc/7/cgroup", f"0::{below}/x{end}0::/system.slice/sshd.service\n".encode())
    assert cgroup_name(proc.cgroup(7) or "").label == "user@7/sshd.service"
