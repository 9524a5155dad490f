"""Programs that are replaced or deleted while they run.

setarch(8) keeps the addresses; it comes with unshare(1).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from purebpf.observe.symbols import mapped_files
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.symbols.proc_maps import Mapping, parse_maps
from purebpf.syscall import proc

pytestmark = [pytest.mark.needs("unshare"), pytest.mark.any_kernel]

EXECUTES_ITSELF = "echo; read line; exec \"$0\" -c 'echo; read line'"


def code_of(pid: int, path: Path) -> Mapping:
    """The executable mapping of the program's own file."""
    mappings = parse_maps(proc.maps(pid) or "")
    return next(mapping for mapping in mappings if mapping.file.path == str(path))


def test_the_new_file_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    program, following = tmp_path / "program", tmp_path / "following"
    for copy in (program, following):
        shutil.copy(shell, copy)
    command = ["setarch", "-R", program, "-c", EXECUTES_ITSELF, program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        before = code_of(child.pid, program)
        following.rename(program)
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        after = code_of(child.pid, program)
        assert (after.start, after.end) == (before.start, before.end)
        with pytest.raises(FileNotFoundError):
            open_mapped(before, (child.pid,))
        fd = open_mapped(after, (child.pid,))
        try:
            assert os.fstat(fd).st_ino == after.file.inode
        finally:
            os.close(fd)
        child.stdin.write(b"\n")
        child.stdin.close()


@pytest.fixture
def without_map_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the links in /proc/PID/map_files, as from a user without CAP_CHECKPOINT_RESTORE."""
    monkeypatch.setattr(mapped_files, "_map_file", lambda *_: "/nowhere")


@pytest.mark.usefixtures("without_map_files")
def test_a_deleted_program_is_read_through_its_own_link(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    program = Path(shutil.copy(shell, tmp_path / "program"))
    with subprocess.Popen([program, "-c", "echo; read line"], stdin=-1, stdout=-1) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        program.unlink()
        mapping = code_of(child.pid, program)
        assert mapping.file.deleted
        fd = open_mapped(mapping, (child.pid,))
        try:
            assert os.fstat(fd).st_ino == mapping.file.inode
        finally:
            os.close(fd)
        file = mapping.file
        others = [
            file._replace(path="/bin/other"),
            file._replace(inode=0),
            file._replace(inode=file.inode + 1),
            file._replace(minor=file.minor + 1),
        ]
        for other in others:
            with pytest.raises(FileNotFoundError):
                open_mapped(mapping._replace(file=other), (child.pid,))
        child.stdin.close()
