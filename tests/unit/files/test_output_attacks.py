"""Other users where root writes its results: their files, links, pipes, and what a kill leaves."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from purebpf.cli import destination
from purebpf.cli.destination import Destination, ResultOptions
from purebpf.cli.output import Output
from purebpf.errors import KernelError
from purebpf.files.binary_file import DataFile
from purebpf.results import Labels, Profile

OTHER = 65534
RENAME_EXCHANGE = 2
AT_FDCWD = -100
SYS_RENAMEAT2 = 316


@pytest.fixture
def sticky(tmp_path: Path) -> Path:
    """A directory like /tmp."""
    directory = tmp_path / "sticky"
    directory.mkdir()
    directory.chmod(0o1777)
    return directory


@pytest.fixture(params=[Output, DataFile])
def kind(request: pytest.FixtureRequest) -> type[Output | DataFile]:
    """Text and binary results."""
    return request.param  # type: ignore[no-any-return]


@pytest.mark.needs("chown")
def test_a_file_that_another_user_made_first_is_refused(
    sticky: Path, kind: type[Output | DataFile]
) -> None:
    target = sticky / "out"
    target.write_text("theirs")
    os.chown(target, OTHER, OTHER)
    with pytest.raises(KernelError, match=r"EACCES. it is there already, belongs to user 65534"):
        kind(str(target))
    assert target.read_text() == "theirs"
    sticky.chmod(0o755)  # no other user may write there: the user of the directory knows it
    kind(str(target)).__exit__(ValueError, None, None)


@pytest.mark.needs("chown")
@pytest.mark.parametrize("mode", [0o1777, 0o755])
def test_a_link_of_another_user_is_refused(
    sticky: Path, kind: type[Output | DataFile], mode: int
) -> None:
    victim = sticky.parent / "victim"
    (sticky / "out").symlink_to(victim)
    os.chown(sticky / "out", OTHER, OTHER, follow_symlinks=False)
    sticky.chmod(mode)
    with pytest.raises(KernelError, match=r"is a link that belongs to user 65534. Name the file"):
        kind(str(sticky / "out"))
    assert not victim.exists()


def test_our_own_links_are_followed_one_after_the_other(sticky: Path) -> None:
    deep = sticky / "deep"
    deep.mkdir()
    (sticky / "out").symlink_to("deep/next")
    (deep / "next").symlink_to("../real")
    with Output(str(sticky / "out")) as output:
        output.write(["text"])
    assert (sticky / "real").read_text() == "text"
    assert (sticky / "out").is_symlink()
    (sticky / "loop").symlink_to("loop")
    with pytest.raises(KernelError, match="ELOOP"):
        Output(str(sticky / "loop"))


def test_a_pipe_without_a_reader_is_not_waited_for(sticky: Path) -> None:
    os.mkfifo(sticky / "out")
    before = time.monotonic()
    with pytest.raises(KernelError, match=r"ENXIO. no process reads from it: start the reader"):
        Output(str(sticky / "out"))
    assert time.monotonic() - before < 10


def test_a_pipe_waits_for_a_reader_that_comes_later(sticky: Path) -> None:
    os.mkfifo(sticky / "out")
    read = sticky / "read"
    reader = ["sh", "-c", f"sleep 0.2; cat {sticky}/out > {read}"]
    with subprocess.Popen(reader), Output(str(sticky / "out")) as output:
        output.write(["x" * (1 << 20)])  # more than fits into the pipe at once
    assert read.stat().st_size == 1 << 20


@pytest.mark.needs("chown")
def test_a_pipe_of_another_user_is_refused(sticky: Path) -> None:
    os.mkfifo(sticky / "out")
    os.chown(sticky / "out", OTHER, OTHER)
    with pytest.raises(KernelError, match="belongs to user 65534"):
        Output(str(sticky / "out"))


def test_standard_output_by_name(tmp_path: Path) -> None:
    """/dev/stdout leads through links of /proc to a pipe, which has no name, or to a file."""
    code = "from purebpf.cli.output import Output\nwith Output('/dev/stdout') as o: o.write(['x'])"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert piped.stdout == b"x"
    with (tmp_path / "out").open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "out").read_text() == "x"


def test_leftovers_of_killed_runs_are_in_no_way(
    sticky: Path, kind: type[Output | DataFile]
) -> None:
    for suffix in (f"{os.getpid()}.part", "1.part", "part"):
        (sticky / f"out.{suffix}").write_text("left")
    with kind(str(sticky / "out")) as output:
        if isinstance(output, DataFile):
            output.commit()
    assert (sticky / "out").exists()


def test_a_killed_run_leaves_nothing(sticky: Path) -> None:
    code = (
        "import os, signal, sys\nfrom purebpf.cli.output import Output\n"
        "o = Output(sys.argv[1]); o.write(['half']); os.kill(os.getpid(), signal.SIGKILL)"
    )
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", code, str(sticky / "out")], check=False)
        assert ended.returncode == -signal.SIGKILL
    left = os.listdir(sticky)
    if has_unnamed_files(sticky):
        assert left == []
    else:  # each has a name that no other run takes
        assert len(left) == 2
        assert all(re.fullmatch(r"out\.[0-9a-f]{8}\.part", name) for name in left)


def has_unnamed_files(folder: Path) -> bool:
    """Whether it has O_TMPFILE; overlayfs since commit 9a87907de359, "ovl: implement tmpfile"."""
    with suppress(OSError):
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
        return True
    return False


def test_no_unnamed_files_here(sticky: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def old_kernel(path: str, flags: int, *arguments: object, **options: object) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "")
        return real(path, flags, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", old_kernel)
    with Output(str(sticky / "out")) as output:
        output.write(["text"])
        (part,) = os.listdir(sticky)
        assert part.startswith("out.")
        assert part.endswith(".part")
        assert stat.S_IMODE((sticky / part).stat().st_mode) & 0o022 == 0
    assert os.listdir(sticky) == ["out"]


def test_what_one_output_cannot_take_keeps_no_other(tmp_path: Path) -> None:
    profile = Profile("title")
    profile.add((), (), 3, Labels("sh", 1))
    first, last = tmp_path / "first", tmp_path / "last"
    to = [
        Destination("folded", str(first)),
        Destination("folded", "/dev/full"),
        Destination("folded", str(last)),
    ]
    with pytest.raises(KernelError, match=r"/dev/full.*ENOSPC"):
        destination.write(profile, ResultOptions(to))
    assert first.read_text() == last.read_text() != ""


@pytest.mark.needs("chown")
def test_a_link_exchanged_again_and_again(sticky: Path) -> None:
    """The other user swaps a file and a link as fast as the kernel can, for as long as we try."""
    victim = sticky.parent / "victim"
    sticky.parent.chmod(0o755)
    ready, tell = os.pipe()
    attacker = os.fork()
    if not attacker:
        try:
            _exchange(sticky, victim, tell)
        finally:
            os._exit(0)
    try:
        os.read(ready, 1)
        for _ in range(300):
            with pytest.raises(KernelError, match=r"EACCES|ESTALE"):
                Output(str(sticky / "r"))
            with pytest.raises(KernelError, match=r"EACCES|ESTALE"):
                DataFile(str(sticky / "r"))
    finally:
        os.kill(attacker, signal.SIGKILL)
        os.waitpid(attacker, 0)
        os.close(ready)
        os.close(tell)
    assert not victim.exists()


def _exchange(sticky: Path, victim: Path, tell: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).syscall
    os.chdir(sticky)
    os.setgid(OTHER)
    os.setuid(OTHER)
    Path("r").touch()
    Path("l").symlink_to(victim)
    os.write(tell, b"x")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for _ in range(1000):
            call(SYS_RENAMEAT2, AT_FDCWD, b"r", AT_FDCWD, b"l", RENAME_EXCHANGE)
