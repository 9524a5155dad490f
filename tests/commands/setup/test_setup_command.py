"""`purebpf setup`, by root and by users who may nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from purebpf.observe.filters.pinned_slots import FOLDER
from tests.support.environment import ROOT
from tests.support.host.privilege import as_user
from tests.support.host.users import public_bpffs, users_sampling

pytestmark = pytest.mark.needs("bpf", "bpffs", "perf_event", "vmlinux_btf", "setpriv")

NOBODY = 65534


@pytest.fixture
def bpffs() -> Iterator[str]:
    with public_bpffs() as folder:
        yield folder


@pytest.fixture
def users_may_sample() -> Iterator[None]:
    with users_sampling():
        yield


def setup(*arguments: str, user: str = "") -> subprocess.CompletedProcess[str]:
    prefix = as_user(user) if user else ()
    command = [*prefix, sys.executable, "-m", "purebpf", "setup", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120
    )


def test_pin_status_unpin(bpffs: str) -> None:
    where = ("--bpffs", bpffs)
    folder = f"{bpffs}/{FOLDER}/4711"
    done = setup("pin", "--user", "4711", "--slots", "2", *where)
    assert (done.stdout, done.stderr, done.returncode) == (f"4711 has 2 slots in {folder}\n", "", 0)
    done = setup("status", *where)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "filters of root (uid 0) run in the kernel, each with its own program"
    assert lines[-3:] == [
        "USER  SLOT  STATE       PID  COMMAND",
        "4711     0  free",
        "4711     1  free",
    ]
    done = setup("unpin", *where)
    assert (done.stdout, done.returncode) == (f"4711 had 2 slots in {folder}\n", 0)
    assert setup("unpin", *where).stdout == "no user had any\n"
    assert not os.path.exists(f"{bpffs}/purebpf")


@pytest.mark.needs("pinned_by_users")
def test_a_user_sees_what_is_in_the_way_and_then_that_nothing_is(
    bpffs: str, users_may_sample: None
) -> None:
    where = ("--bpffs", bpffs)
    done = setup("status", *where, user="ordinary")
    assert done.returncode == 1
    text = flat(done.stdout)
    assert "run in user space only" in text
    assert "no own programs this process lacks CAP_BPF" in text
    assert f"no bpf file system {bpffs} has mode 1700, so this user cannot enter it" in text
    command = f"-m purebpf setup pin --user {NOBODY}"
    assert command in text

    assert setup("pin", "--user", "4711", "--slots", "1", *where).returncode == 0
    text = flat(setup("status", *where, user="ordinary").stdout)
    assert f"no pinned slots none in {bpffs}/{FOLDER}/{NOBODY}" in text
    assert command in text
    assert "4711" not in text

    assert setup("pin", "--user", str(NOBODY), "--slots", "1", *where).returncode == 0
    done = setup("status", *where, user="ordinary")
    assert done.returncode == 0
    assert "run in the kernel, with programs that root pinned" in done.stdout
    assert "  ok  pinned slots     1 of 1 free" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["nobody", "0", "free"]
    assert "4711" not in done.stdout


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("action", ["pin", "unpin"])
def test_only_root_may(bpffs: str, action: str) -> None:
    assert setup("pin", "--user", "4711", "--slots", "1", "--bpffs", bpffs).returncode == 0
    done = setup(action, "--user", "4711", "--bpffs", bpffs, user="ordinary")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("purebpf setup: ")
    assert os.path.exists(f"{bpffs}/{FOLDER}/4711/0/program")


def test_what_is_not_a_bpf_file_system_is_refused(tmp_path: object) -> None:
    done = setup("pin", "--user", "4711", "--bpffs", str(tmp_path))
    assert done.returncode == 1
    assert "is not a bpf file system" in " ".join(done.stderr.split())


def test_a_broken_slot_is_shown_and_repaired(bpffs: str) -> None:
    where = ("--bpffs", bpffs)
    setup("pin", "--user", "4711", "--slots", "2", *where)
    os.unlink(f"{bpffs}/{FOLDER}/4711/1/table")
    done = setup("status", *where)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-6:-1] == [
        "USER  SLOT  STATE       PID  COMMAND",
        "4711     0  free",
        "4711     1  broken",
        "",
        "4711, slot 1: table: it does not exist",
    ]
    repair = done.stdout.splitlines()[-1]
    assert repair.endswith(f"pin --user 4711 --slots 2 --bpffs {bpffs}")
    assert setup("pin", "--user", "4711", "--slots", "2", *where).returncode == 0
    assert setup("status", *where).returncode == 0


def test_one_user_s_folder_stops_nothing_for_the_others(bpffs: str) -> None:
    where = ("--bpffs", bpffs)
    for user in ("4711", "4712"):
        setup("pin", "--user", user, "--slots", "1", *where)
    folder = f"{bpffs}/{FOLDER}/4711"
    deep = folder
    for _ in range(12):
        deep = f"{deep}/x"
        os.mkdir(deep)
    os.chown(folder, 4711, 4711)
    done = setup("status", *where)
    assert done.returncode == 1
    assert "it belongs to UID 4711, not to root" in flat(done.stdout)
    assert "4712     0  free" in done.stdout
    done = setup("unpin", *where)
    assert done.returncode == 1
    assert done.stdout == f"4712 had 1 slot in {bpffs}/{FOLDER}/4712\n"
    assert "remove it: rm -r" in flat(done.stderr)
    assert not os.path.exists(f"{bpffs}/{FOLDER}/4712")
