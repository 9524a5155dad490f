"""Code that node and CPython generate, named by what they themselves write down about it.

With both of its options node writes the same names twice, as a perf map and as a jitdump, by
different code: the one says what to expect of the other. It writes the jitdump in pieces of 2 MiB,
so the program generates code until there are some.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from purebpf.observe.symbols.symbolizer import Symbolizer
from purebpf.symbols.frame import Frame, Reason, Unknown
from tests.support.nightly import by_day
from tests.support.patience import until
from tests.support.programs.pythons import newest

pytestmark = pytest.mark.any_kernel

NODE = """
function spin_here(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
const kept = [];  // or their room is given to others
setInterval(() => {
  spin_here(1e6);
  for (let i = 0; i < 100 && kept.length < 5000; i++) {
    kept.push(new Function(`return ${kept.length}`));
    kept.at(-1)();
  }
}, 10);
"""
BOTH = ("--perf-basic-prof", "--perf-prof", "--interpreted-frames-native-stack")
PYTHON = """
def spin_here():
    return sum(i ** 0.5 for i in range(1000))
spin_here()
print(flush=True)
input()
"""
LINE = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) (JS:\*spin_here .*)$", re.MULTILINE)


@contextmanager
def running(
    *command: str | Path, cwd: Path, program: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a directory, which reads its program where it may not open the file."""
    text = program.read_bytes() if program else b""
    child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.write(text)
    child.stdin.close()
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for left in (f"/tmp/perf-{child.pid}.map", f"/tmp/jit-{child.pid}.dump"):
            Path(left).unlink(missing_ok=True)


def listed(path: Path) -> list[tuple[int, int, str]]:
    """Address, size and name of the functions that a perf map has for spin_here."""
    text = path.read_text() if path.exists() else ""
    return [(int(at, 16), int(size, 16), name) for at, size, name in LINE.findall(text)]


def expected(perf_map: Path) -> tuple[list[int], list[tuple[str, int, str]]]:
    """An address in the newest function of a map, once it is there, and what it is."""
    assert until(lambda: bool(listed(perf_map)))
    found = listed(perf_map)[-1:]
    addresses = [at + size // 2 for at, size, _ in found]
    return addresses, [(name, size // 2, "[jit]") for _, size, name in found]


def holds(dump: Path, names: list[tuple[str, int, str]]) -> bool:
    """Whether the dump was written as far as the last of these functions."""
    return names[-1][0].encode() in dump.read_bytes()


def answers(pid: int, addresses: list[int]) -> list[tuple[str, int, str]]:
    frames = Symbolizer().user(pid, addresses)
    assert all(isinstance(each, Frame) for each in frames), frames
    return [(each.name, each.offset, each.module) for each in frames if isinstance(each, Frame)]


@pytest.mark.needs("node")
def test_node_by_its_perf_map_and_by_its_jitdump(tmp_path: Path) -> None:
    program = tmp_path / "loop.js"
    program.write_text(NODE)
    with running("node", *BOTH, program, cwd=tmp_path) as child:
        perf_map = Path(f"/tmp/perf-{child.pid}.map")
        addresses, names = expected(perf_map)
        assert answers(child.pid, addresses) == names
        perf_map.unlink()
        (dump,) = tmp_path.glob("jit-*.dump")
        assert until(lambda: holds(dump, names))
        assert answers(child.pid, addresses) == names
        dump.unlink()
        assert answers(child.pid, addresses) == names  # it is still mapped


@pytest.mark.needs("node", "unshare")
def test_node_in_a_container(tmp_path: Path) -> None:
    """It has another pid, and other directories, than we see."""
    program = tmp_path / "loop.js"
    program.write_text(NODE)
    shell = (
        'mount -t tmpfs none /tmp && mount -t tmpfs none /mnt && cp "/proc/self/fd/3" /mnt/loop.js '
        f"&& cd /mnt && exec node {' '.join(BOTH)} loop.js"
    )
    unshared = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    with running(*unshared, "sh", "-c", f'exec 3<"$0"; {shell}', program, cwd=tmp_path) as unshare:
        children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
        assert until(lambda: bool(children.read_text()))
        pid = int(children.read_text())
        perf_map = Path(f"/proc/{pid}/root/tmp/perf-1.map")
        addresses, names = expected(perf_map)
        assert answers(pid, addresses) == names
        perf_map.unlink()
        assert until(lambda: holds(Path(f"/proc/{pid}/root/mnt/jit-1.dump"), names))
        assert answers(pid, addresses) == names


@pytest.mark.needs("node", "chown")
def test_a_perf_map_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    program = tmp_path / "loop.js"
    program.write_text(NODE)
    with running("node", "--perf-basic-prof", program, cwd=tmp_path) as child:
        perf_map = Path(f"/tmp/perf-{child.pid}.map")
        addresses, names = expected(perf_map)
        os.chown(perf_map, 65534, 65534)
        found = Symbolizer().user(child.pid, addresses)
        assert {each.reason for each in found if isinstance(each, Unknown)} == {
            Reason.UNTRUSTED_PERF_MAP
        }
        os.chown(perf_map, 0, 0)
        assert answers(child.pid, addresses) == names


@pytest.mark.needs("node")
def test_a_perf_map_of_an_earlier_process_is_not_believed(tmp_path: Path) -> None:
    program = tmp_path / "loop.js"
    program.write_text(NODE)
    with running("node", "--perf-basic-prof", program, cwd=tmp_path) as child:
        perf_map = Path(f"/tmp/perf-{child.pid}.map")
        addresses, names = expected(perf_map)
        left = perf_map.read_bytes()
        perf_map.unlink()
        perf_map.write_bytes(left)
        os.utime(perf_map, (0, 0))
        found = Symbolizer().user(child.pid, addresses)
        reasons = {each.reason for each in found if isinstance(each, Unknown)}
        assert reasons == {Reason.STALE_PERF_MAP}
        os.utime(perf_map)
        assert answers(child.pid, addresses) == names


@pytest.mark.needs("node", "setpriv")
def test_an_ordinary_user_s_perf_map_is_trusted_while_the_process_lives(tmp_path: Path) -> None:
    program = tmp_path / "loop.js"
    program.write_text(NODE)
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    command = (*user, "node", "--perf-basic-prof", "-")
    with running(*command, cwd=Path("/"), program=program) as child:
        perf_map = Path(f"/tmp/perf-{child.pid}.map")
        addresses, names = expected(perf_map)
        assert perf_map.stat().st_uid == 65534
        assert answers(child.pid, addresses) == names


@pytest.mark.needs("python_with_jitdump")
def test_cpython_s_jitdump_which_is_whole_when_the_process_has_exited(tmp_path: Path) -> None:
    python = newest()
    assert python is not None
    program = tmp_path / "loop.py"
    program.write_text(PYTHON)
    symbolizer = Symbolizer()
    child = subprocess.Popen(
        [python.path, "-X", "perf_jit", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    dump = Path(f"/tmp/jit-{child.pid}.dump")
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert symbolizer.remember(child.pid)
        child.communicate(b"\n")
        start, size = located(dump.read_bytes(), b"py::spin_here:")
        (found,) = symbolizer.user(child.pid, [start + size - 1])
    finally:
        dump.unlink(missing_ok=True)
    name = f"py::spin_here:{program}"
    assert isinstance(found, Frame)
    assert (found.name, found.offset, found.module) == (name, size - 1, "[jit]")


def located(dump: bytes, name: bytes) -> tuple[int, int]:
    """Address and size of a function: the third and fourth word before its name."""
    at = dump.index(name)
    words = [int.from_bytes(dump[at - back : at - back + 8], "little") for back in (24, 16)]
    return words[0], words[1]


@pytest.mark.needs("node", "bpf", "perf_event", "x86_64")
@pytest.mark.parametrize("options", by_day([(), ("--perf-basic-prof",)], [()]))
def test_node_needs_no_flag_and_no_hint(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = tmp_path / "loop.js"
    program.write_text(NODE.replace("1e6", "1e7"))
    with running("node", *options, program, cwd=tmp_path) as child:
        command = [sys.executable, "-m", "purebpf", "profile", "--format", "json", "-p"]
        found = subprocess.run(
            [*command, str(child.pid), "-F", "99", "3"], check=True, capture_output=True, text=True
        )
    assert "--perf-basic-prof" not in found.stderr
    tree = json.loads(found.stdout)
    assert "hints" not in tree
    assert any(frame.get("name") == "spin_here" for frame in tree["frames"])
