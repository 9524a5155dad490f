"""Uprobes by a library's name and a process: in the file that this process has."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import purebpf
from purebpf import asm
from purebpf.errors import AttachError
from purebpf.loader.attach._common.probe_place import find_file, in_process
from purebpf.loader.host.process_files import has_other_mounts
from tests.support.programs.own_files import LIBRARY, WAYS, running_with_own_library

pytestmark = pytest.mark.needs("bpf", "perf_event", "gcc")


@pytest.fixture(params=list(WAYS))
def process(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    """A process with its own library; the dynamic linker would take another one here."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "place"))
    with running_with_own_library(request.param, tmp_path) as (pid, _):
        yield pid


@pytest.mark.parametrize(
    "section", ["uprobe", pytest.param("uprobe.multi", marks=pytest.mark.needs("uprobe_multi"))]
)
def test_a_name_means_the_library_of_the_process(process: int, section: str) -> None:
    code = asm.Program("on_call", section)
    code.store_constant(asm.R10, -4, 0, 4)
    out = code.label()
    code.call_helper("map_lookup_elem", asm.MapName("calls"), asm.Stack(-4))
    code.jump("==", asm.R0, 0, out)
    code.move(asm.R1, 1)
    code.atomic_add(asm.R0, 0, asm.R1, 8)
    code.place(out)
    code.move(asm.R0, 0)
    code.exit()
    calls = asm.MapSpec("calls", asm.bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 8, 1)
    with (
        purebpf.load(asm.build("named", [code], maps=[calls])) as obj,
        obj.programs["on_call"].attach(f"{LIBRARY}:work", pid=process),
    ):
        deadline = time.monotonic() + 20
        while int.from_bytes(obj.maps["calls"][0], "little") < 5:
            assert time.monotonic() < deadline, "no call was seen"
            time.sleep(0.05)


def test_a_name_is_refused_if_the_process_may_not_be_looked_into() -> None:
    """The library of this machine may be another one."""
    pid = os.getpid()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setresuid(65534, 65534, 65534)
            for name in ("libc.so.6", "libc", "python3"):
                with pytest.raises(AttachError, match=rf"process {pid} may have another file"):
                    find_file(name, "it", pid)
                with pytest.raises(AttachError, match="name the file by its path"):
                    in_process(name, pid)
            assert in_process("/bin/sh", pid) == "/bin/sh"
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


IN_OTHER_MOUNTS = "mount -t tmpfs none /mnt && echo mounted && exec sleep 60"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_path_is_refused_if_a_process_with_other_mounts_may_not_be_looked_into() -> None:
    """In a container, the file of this machine at that path is another one."""
    words = ["unshare", "--mount", "sh", "-c", IN_OTHER_MOUNTS]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"mounted\n"
            assert has_other_mounts(process.pid)
            assert not has_other_mounts(os.getppid())
            assert in_process("/bin/sh", process.pid).endswith("/bin/sh")
            child = os.fork()
            if not child:
                status = 1
                try:
                    os.setresuid(65534, 65534, 65534)
                    for name in ("/bin/sh", "libc"):
                        with pytest.raises(AttachError, match=r"cannot be read") as caught:
                            in_process(name, process.pid)
                        assert "by its path" not in str(caught.value)
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            process.kill()
