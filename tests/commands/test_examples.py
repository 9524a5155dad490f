"""The programs of examples/, compiled by their Makefile and run as users run them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent

import pytest

import purebpf
from tests.commands.conftest import Workloads

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "examples"
NAMES = sorted(path.parent.name for path in SOURCE.glob("*/*.bpf.c"))
PRIME = 13
PATIENCE_S = 60

pytestmark = [pytest.mark.any_kernel, pytest.mark.needs("clang", "bpf")]
traced = pytest.mark.needs("perf_event", "vmlinux_btf")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of them, compiled."""
    folder = tmp_path_factory.mktemp("examples") / "examples"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("*.bpf.o", "__pycache__"))
    subprocess.run(["make", "-s", "-C", str(folder)], check=True)
    return folder


class Running:
    """An example that observes, from when it is attached until Ctrl-C."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._new = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._new:
                self.lines.append(line.rstrip("\n"))
                self._new.notify()

    def wait_for(self, pattern: str) -> list[str]:
        """What it has printed, once a line has a pattern."""
        with self._new:
            found = self._new.wait_for(
                lambda: any(re.search(pattern, line) for line in self.lines), PATIENCE_S
            )
            assert found, (pattern, self.lines)
            return [*self.lines]

    def end(self) -> list[str]:
        """Press Ctrl-C; all that it has printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)
        self._reader.join()
        return self.lines


@contextmanager
def running(
    examples: Path, name: str, *arguments: str, prefix: tuple[str, ...] = ()
) -> Iterator[Running]:
    command = [*prefix, sys.executable, str(examples / name / f"{name}.py"), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "Ctrl-C ends" in said, said + process.stderr.read()
        example = Running(process)
        try:
            yield example
            example.end()
            rest = process.stderr.read()
            assert process.returncode == 0, rest
            assert "lost: 0" in rest or "lost:" not in rest
        finally:
            process.kill()


def words(lines: list[str], name: str) -> list[list[str]]:
    """The lines that have a word, in words."""
    return [line.split() for line in lines if name in line.split()]


def test_there_are_twelve_and_each_has_a_page() -> None:
    assert len(NAMES) == 12
    index = (SOURCE / "README.md").read_text()
    for name in NAMES:
        page = (SOURCE / name / "README.md").read_text().splitlines()
        assert 8 <= len(page) <= 14, name
        assert page[0].startswith(f"# {name}: ")
        assert f"[{name}]({name})" in index


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*/*.py")), ids=lambda path: path.name)
def test_only_public_names_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("purebpf")
        elif isinstance(node, ast.Import):
            ours = [each.name for each in node.names if each.name.startswith("purebpf")]
            assert ours in ([], ["purebpf"])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id != "purebpf" or node.attr in purebpf.__all__


@traced
def test_execsnoop_prints_each_program_with_its_arguments(examples: Path) -> None:
    with running(examples, "execsnoop") as example:
        for number in range(PRIME):
            subprocess.run(["/bin/echo", "a b", f"execsnoop-{number}"], check=True)
        long = [str(number) for number in range(500)]
        subprocess.run(["/bin/echo", "execsnoop-end", *long], check=True, capture_output=True)
        example.wait_for("execsnoop-end")
    lines = example.lines
    for number in range(PRIME):
        (line,) = words(lines, f"execsnoop-{number}")
        assert int(line[1]) == os.getpid()
        assert line[2:] == [
            str(os.getuid()),
            "echo",
            "/bin/echo",
            "'a",
            "b'",
            f"execsnoop-{number}",
        ]
    (cut,) = words(lines, "execsnoop-end")
    assert cut[-1] == "..."


@pytest.mark.needs("perf_event", "tracefs")
def test_opensnoop_prints_what_failed(examples: Path, tmp_path: Path) -> None:
    present, missing = tmp_path / "present", tmp_path / "missing"
    present.touch()
    with running(examples, "opensnoop", "-x", "-p", str(os.getpid())) as example:
        for _ in range(PRIME):
            os.close(os.open(present, os.O_RDONLY))
            with pytest.raises(FileNotFoundError):
                os.open(missing, os.O_RDONLY)
        with pytest.raises(NotADirectoryError):
            os.open(present / "end", os.O_RDONLY)
        example.wait_for("present/end")
    assert not words(example.lines, str(present))
    failed = words(example.lines, str(missing))
    assert len(failed) == PRIME
    assert {tuple(line[-3:]) for line in failed} == {("-", "ENOENT", str(missing))}
    assert words(example.lines, str(present / "end"))[0][-2] == "ENOTDIR"


@traced
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_tcpstates_follows_a_connection(examples: Path, family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        with running(examples, "tcpstates", "-P", str(port)) as example:
            client = socket.create_connection((host, port))
            accepted, _ = server.accept()
            own = client.getsockname()[1]
            client.close()
            accepted.close()
            example.wait_for("LAST_ACK +CLOSE ")
            lines = example.wait_for("FIN_WAIT2 +CLOSE |FIN_WAIT1 +CLOSE ")
    ends: dict[str, list[str]] = {}
    for line in (line.split() for line in lines if f":{port}" in line):
        ends.setdefault(line[0], []).append(line[-2])
    assert ["SYN_SENT", "ESTABLISHED", "FIN_WAIT1", "FIN_WAIT2", "CLOSE"] in ends.values()
    assert ["SYN_RECV", "ESTABLISHED", "CLOSE_WAIT", "LAST_ACK", "CLOSE"] in ends.values()
    shown = f"[{host}]:{own}" if family == socket.AF_INET6 else f"{host}:{own}"
    assert words(lines, shown)


@contextmanager
def loop_device(tmp_path: Path) -> Iterator[str]:
    """A disk of ours alone; skips where there can be none."""
    image = tmp_path / "disk"
    image.write_bytes(bytes(1 << 20))
    command = ["losetup", "--find", "--show", "--direct-io=off", str(image)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@traced
@pytest.mark.skipif(shutil.which("losetup") is None, reason="losetup is not installed")
def test_block_latency_counts_the_requests_of_a_disk(examples: Path, tmp_path: Path) -> None:
    with loop_device(tmp_path) as device:
        numbers = Path("/sys/block") / Path(device).name / "stat"
        with running(examples, "block_latency", "-d", device) as example:
            before = [int(word) for word in numbers.read_text().split()]
            command = ["dd", "if=/dev/zero", f"of={device}", "bs=4k", f"count={PRIME}"]
            subprocess.run([*command, "oflag=direct"], check=True, capture_output=True)
            after = [int(word) for word in numbers.read_text().split()]
    counted = dict(re.findall(r"^(reads|others): (\d+)$", "\n".join(example.lines), re.MULTILINE))
    reads, writes = after[0] - before[0], after[4] - before[4]
    assert writes == PRIME
    assert int(counted["others"]) >= PRIME  # dd may flush the device when it closes it
    assert int(counted["others"]) <= PRIME + after[15] - before[15] + 1
    assert int(counted["reads"]) == reads
    drawn = re.findall(r"\d+ +-> \d+ +: (\d+) ", "\n".join(example.lines))
    assert sum(map(int, drawn)) == int(counted["others"]) + int(counted["reads"])


@pytest.mark.needs("perf_event")
def test_malloc_sizes_counts_calls_by_size_and_stack(examples: Path, workloads: Workloads) -> None:
    with subprocess.Popen(
        [workloads.path("allocate")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with running(examples, "malloc_sizes", str(process.pid)) as example:
            process.stdin.write(b"1")
            process.stdin.flush()
            assert process.stdout.readline() == b"done\n"
            process.stdin.close()
            process.wait(PATIENCE_S)  # its stacks have names all the same
    text = "\n".join(example.lines)
    assert re.search(r" 64 -> 127 +: 1009 ", text)
    assert re.search(r" 4096 -> 8191 +: 101 ", text)
    big, small = re.findall(r"^\d+ bytes in \d+ calls:\n(?: +.*\n?)+", text, re.MULTILINE)
    assert big.startswith(
        "505000 bytes in 101 calls:\n    malloc+0x0 [libc.so.6]\n    allocate_big+"
    )
    assert small.startswith("100900 bytes in 1009 calls:\n    malloc+0x0 [libc.so.6]\n")
    assert re.search(r"allocate_small\+\w+ \[allocate\]\n    main\+", small)


@pytest.mark.needs("net_namespace")
def test_xdp_count_counts_packets_of_a_namespace(examples: Path) -> None:
    inside = f"""
import os, socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
example = subprocess.Popen([sys.executable, "xdp_count.py", "lo"], stderr=subprocess.PIPE)
example.stderr.readline()
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    with socket.socket(family, socket.SOCK_DGRAM) as box:
        box.bind((host, 0))
        for _ in range({PRIME}):
            box.sendto(b"x" * 10, box.getsockname())
example.send_signal(2)
sys.exit(example.wait())
"""
    ended = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", inside],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=examples / "xdp_count",
    )
    # Ethernet, IP and UDP headers, and ten bytes
    size = PRIME * (14 + 20 + 8 + 10) + PRIME * (14 + 40 + 8 + 10)
    assert words(ended.stdout.splitlines(), "udp") == [["udp", str(2 * PRIME), str(size)]]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A program that calls a function, and touches new pages, 1,009 times; the event of a call."""
    folder = tmp_path_factory.mktemp("calls")
    source = folder / "calls.c"
    source.write_text(
        "#include <sys/mman.h>\n"
        "static char *pages;\n"
        "__attribute__((noinline)) void step(int at) { pages[at * 4096L] = 1; }\n"
        "int main(void) {\n"
        "  pages = mmap(0, 1009 * 4096L, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
        "  madvise(pages, 1009 * 4096L, MADV_NOHUGEPAGE);\n"
        "  for (int at = 0; at < 1009; at++) step(at);\n"
        "}\n"
    )
    program = folder / "calls"
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", str(program), str(source)], check=True)
    table = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout
    address = next(line.split()[0] for line in table.splitlines() if line.endswith(" T step"))
    return program, f"mem:0x{address}:x"


def purebpf_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of a command in a folder."""
    command = [sys.executable, "-m", "purebpf", *arguments]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder, env=surroundings
    )


def record(folder: Path, example: Path, event: str, *command: str) -> str:
    """Record with an example's program; the words that the recorder printed."""
    program = example / f"{example.name}.bpf.o"
    options = ["-e", event, "-c", "1", "--program", str(program)]
    return " ".join(purebpf_in(folder, "record", *options, "--", *command).stderr.split())


@traced
@pytest.mark.needs("gcc")
def test_count_by_member_shows_the_priority_that_we_chose(
    examples: Path, calls: tuple[Path, str], tmp_path: Path
) -> None:
    command = "nice", "-n", "7", str(calls[0])
    said = record(tmp_path, examples / "count_by_member", "page-faults", *command)
    (records,) = re.findall(r"(\d+) records", said)
    table = purebpf_in(tmp_path, "report", "--records", "prio").stdout.splitlines()[2:]
    counts = {line.split()[2]: int(line.split()[0]) for line in table}
    assert sum(counts.values()) == int(records)
    before = 120 + os.nice(0)
    after = min(before + 7, 139)
    assert counts[str(after)] >= 1009
    assert set(counts) <= {str(before), str(after)}


@traced
@pytest.mark.needs("gcc", "x86_64")
def test_every_hundredth_keeps_ten_of_1009_calls(
    examples: Path, calls: tuple[Path, str], tmp_path: Path
) -> None:
    program, event = calls
    said = record(tmp_path, examples / "every_hundredth", event, str(program))
    assert "program every_hundredth: 999 samples dropped" in said
    text = purebpf_in(tmp_path, "report").stdout
    assert text.startswith(f"10 samples of {event} in perf.data")


@traced
def test_list_tasks_agrees_with_proc(examples: Path) -> None:
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(PRIME)]
    for thread in threads:
        thread.start()
    command = [sys.executable, str(examples / "list_tasks/list_tasks.py")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = {
        (int(line[0]), int(line[1])): line
        for line in map(str.split, ended.stdout.split("\n")[1:-1])
    }
    ours = {(os.getpid(), int(path.name)) for path in Path("/proc/self/task").iterdir()}
    done.set()
    for thread in threads:
        thread.join()
    assert {pid_tid for pid_tid in listed if pid_tid[0] == os.getpid()} == ours
    first = listed[os.getpid(), os.getpid()]
    assert int(first[2]) == os.getppid()
    assert first[6:] == Path("/proc/self/comm").read_text().split()
    assert listed[2, 2][5:] == ["-", "kthreadd"]


@pytest.mark.needs("struct_ops", "struct_ops_links", "vmlinux_btf")
def test_gentle_tcp_carries_connections(examples: Path) -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    with running(examples, "gentle_tcp") as example:
        assert "bpf_gentle" in available.read_text().split()
        with socket.create_server(("127.0.0.1", 0)) as server:
            for _ in range(PRIME):
                with socket.socket() as client:
                    name = b"bpf_gentle"
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                    client.connect(server.getsockname())
                    accepted, _ = server.accept()
                    with accepted:
                        client.sendall(bytes(100_000))
                        client.shutdown(socket.SHUT_WR)
                        assert (
                            sum(map(len, iter(lambda end=accepted: end.recv(65536), b"")))
                            == 100_000
                        )
    assert words(example.lines, "connections:") == [["connections:", str(PRIME)]]
    assert "bpf_gentle" not in available.read_text().split()


@traced
def test_async_rings_joins_starts_and_ends(examples: Path) -> None:
    with running(examples, "async_rings") as example:
        for status in range(PRIME):
            subprocess.run(["bash", "-c", f"exit {status}"], check=False)
        subprocess.run(["bash", "-c", "kill -9 $$"], check=False)
        example.wait_for(r" bash .* -9$")
    ends = Counter(int(line[-1]) for line in words(example.lines, "bash"))
    assert all(ends[status] for status in range(PRIME))
    assert ends[-9]


def test_packet_parser_passes_its_own_tests(examples: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "packet_parser"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=examples)
    assert ended.returncode == 0, ended.stdout
    assert "13 passed" in ended.stdout


def test_the_example_of_testing_tools_passes(examples: Path) -> None:
    page = (ROOT / "docs/testing-tools.md").read_text()
    test, setting = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    folder = examples / "packet_parser"
    (folder / "test_page.py").write_text(
        f"{test}\n\ndef test_packets():\n{indent(setting, '    ')}"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"]
    command += ["-p", "purebpf.testing.plugin"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert "2 passed" in ended.stdout, ended.stdout
