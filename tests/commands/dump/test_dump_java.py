"""`purebpf dump` shows the Java frames that jstack(1) shows, of threads in each kind of code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from purebpf.errors import NotSupportedError
from purebpf.observe.runtimes.hotspot import java_process
from purebpf.observe.runtimes.hotspot.java_process import JavaProcess
from purebpf.observe.runtimes.hotspot.libjvm import find_library
from purebpf.runtimes.hotspot.layout import Jvm
from purebpf.runtimes.memory import Memory
from purebpf.syscall import proc
from purebpf.tools.dump import session
from purebpf.tools.dump.model import ProcessDump
from purebpf.tools.dump.render import document, lines
from tests.support.programs import jvms

pytestmark = [
    pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "javac", "x86_64"),
    pytest.mark.skipif(not jvms.every(), reason="there is no JVM"),
]
JVMS = jvms.params()
OPTIONS: list[tuple[str, ...]] = [()]
"""Of java; at night also only the interpreter, and only compiled code."""
if os.environ.get("PUREBPF_NIGHTLY"):
    OPTIONS += [("-Xint",), ("-Xcomp", "-XX:TieredStopAtLevel=1")]
THREADS = 12
PROGRAM = """
import java.util.Arrays;
import java.util.HashMap;
import java.util.concurrent.locks.LockSupport;

public class Parked {
    static final Object MONITOR = new Object();

    interface Step { int take(int left); }

    static final class Key {
        final int left;
        Key(int left) { this.left = left; }
        @Override public int hashCode() { return descend(left); }
    }

    static int descend(int left) {
        if (left == 0) { stay(); return 1; }
        switch (left % 4) {
            case 0:
                Step step = below -> descend(below);
                return step.take(left - 1) + 1;
            case 1:
                Integer[] pair = {2, 1};
                Arrays.sort(pair, (a, b) -> descend(left - 1) + a - b);
                return pair[0];
            case 2:
                return descend(left - 1) + 1;
            default:
                return new HashMap<Key, Integer>() {{ put(new Key(left - 1), left); }}.size();
        }
    }

    static volatile boolean isWarm;

    static void stay() {
        if (!isWarm) return;
        synchronized (MONITOR) {
            while (true) {
                try { MONITOR.wait(); } catch (InterruptedException e) { throw new Error(e); }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int sum = 0;
        for (int turn = 0; turn < 40000; turn++) sum += descend(turn % 10);
        isWarm = true;
        int count = Integer.parseInt(arguments[0]);
        for (int number = 0; number < count; number++) {
            int left = number;
            Thread thread = new Thread(() -> descend(left), "parked-" + number);
            thread.setDaemon(true);
            thread.start();
            while (thread.getState() != Thread.State.WAITING) Thread.sleep(1);
        }
        System.out.println("ready " + sum % 2);
        LockSupport.park();
    }
}
"""


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("java")
    (folder / "Parked.java").write_text(PROGRAM)
    subprocess.run(["javac", "--release", "11", "-d", folder, folder / "Parked.java"], check=True)
    return folder


@contextmanager
def started(home: Path, classes: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [home / "bin/java", *options, "-cp", classes, "Parked", str(THREADS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield process
        finally:
            process.kill()


def java_frames(dumped: ProcessDump) -> dict[int, list[str]]:
    found = {}
    for thread in dumped.threads:
        java = [frame for frame in thread.frames if frame.kind == "java"]
        if java:
            places = [f"{each.file}:{each.line}" if each.line else each.file for each in java]
            found[thread.tid] = [
                f"{frame.name}({place})" for frame, place in zip(java, places, strict=True)
            ]
    return found


def theirs(process: subprocess.Popen[str], home: Path) -> dict[int, list[str]]:
    """The stacks that the JVM itself prints: for jstack, or on SIGQUIT where there is none."""
    if (home / "bin/jstack").exists():
        command = [home / "bin/jstack", str(process.pid)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        text = _on_signal(process)
    found: dict[int, list[str]] = {}
    thread = 0
    for line in text.splitlines():
        number = re.search(r"nid=(0x[0-9a-f]+|\d+)", line)
        if line.startswith('"') and number:
            thread = int(number[1], 0)
        elif match := re.match(r"\tat (.*)\((.*)\)$", line):
            name = re.sub(r"^(?:[\w.]*//?)?(?:[\w.]+@[\w.+-]+/)?", "", match[1])
            name = re.sub(r"(\$\$Lambda)\$\d+", r"\1", re.sub(r"[+/]0x[0-9a-f]+", "", name))
            place = match[2].rpartition("/")[2].replace("Unknown Source", "")
            found.setdefault(thread, []).append(f"{name}({place})")
    return found


def _on_signal(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    os.kill(process.pid, signal.SIGQUIT)
    read = []
    for line in process.stdout:
        read.append(line)
        if line.startswith("JNI global refs"):
            break
    return "".join(read)


def _settled(pid: int) -> ProcessDump:
    """A dump in which no Java thread was in motion, compiling threads apart."""
    for _ in range(20):
        dumped = session.dump(pid, kernel=False)
        if not any(
            thread.problems for thread in dumped.threads if thread.tid in java_frames(dumped)
        ):
            return dumped
        time.sleep(0.2)
    raise AssertionError([thread for thread in dumped.threads if thread.problems])


@pytest.mark.parametrize("home", JVMS)
@pytest.mark.parametrize("options", OPTIONS)
def test_frames_and_lines_are_those_of_the_jvm(
    home: Path, classes: Path, options: tuple[str, ...]
) -> None:
    with started(home, classes, *options) as process:
        dumped = _settled(process.pid)
        expected = theirs(process, home)
    found = java_frames(dumped)
    assert found == expected
    assert len(found) >= THREADS
    assert sum(map(len, found.values())) > 5 * THREADS
    names = {name.partition("(")[0] for frames in found.values() for name in frames}
    assert {"Parked.descend", "Parked.stay", "java.lang.Object.wait"} <= names
    assert dumped.java.partition(".")[0].isdigit()


HELD = """
public class Held {
    static final class Till {}

    static void keep(Till till) {
        synchronized (till) {
            while (true) {
                try { Thread.sleep(1000000); } catch (InterruptedException e) { return; }
            }
        }
    }

    static void enter(Till till) { synchronized (till) { System.out.println("in"); } }

    static Thread start(String name, Thread.State until, Runnable work) throws Exception {
        Thread thread = new Thread(work, name);
        thread.start();
        while (thread.getState() != until) Thread.sleep(1);
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        Till till = new Till();
        start("keeper", Thread.State.TIMED_WAITING, () -> keep(till));
        for (int number = 0; number < 3; number++) {
            start("customer", Thread.State.BLOCKED, () -> enter(till));
        }
        System.out.println("ready");
    }
}
"""


@pytest.mark.parametrize("home", JVMS)
def test_threads_that_wait_for_a_monitor_name_its_class_and_owner(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "Held.java").write_text(HELD)
    subprocess.run(["javac", "--release", "11", "-d", tmp_path, tmp_path / "Held.java"], check=True)
    command = [home / "bin/java", "-cp", tmp_path, "Held"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        dumped = _settled(process.pid)
        process.kill()
    (keeper,) = [thread for thread in dumped.threads if thread.name == "keeper"]
    waiters = [thread for thread in dumped.threads if thread.name == "customer"]
    assert [(each.waits_for, each.held_by) for each in waiters] == 3 * [
        ("the monitor of a Held$Till", keeper.tid)
    ]
    text = "".join(lines(dumped))
    assert "  3 threads  wait for the monitor of a Java object in Held.enter (Held.java:" in text
    assert f"waits for the monitor of a Held$Till, held by {keeper.tid}" in text


@pytest.mark.parametrize("home", jvms.default()[:1], ids=["default"])
def test_native_frames_above_stay_and_the_jvm_is_left_out(home: Path, classes: Path) -> None:
    with started(home, classes) as process:
        dumped = _settled(process.pid)
        whole = session.dump(process.pid, kernel=False, native=True)
    parked = [each for each in dumped.threads if each.name.startswith("parked")]
    assert parked
    for thread in parked:
        kinds = [frame.kind for frame in thread.frames]
        assert kinds == sorted(kinds, reverse=True)  # "user", then "java"
        assert thread.frames[-1].name == "java.lang.Thread.run"
        assert not any(frame.file.endswith("libjvm.so") for frame in thread.frames)
    files = {frame.file.rpartition("/")[2] for thread in whole.threads for frame in thread.frames}
    assert "libjvm.so" in files
    text = "".join(lines(dumped))
    assert f"HotSpot {dumped.java}\n" in text
    assert re.search(r"\n    Parked\.stay \(Parked\.java:\d+\)\n", text)
    tree: dict[str, Any] = json.loads(document(dumped))
    assert tree["java"] == dumped.java


def test_a_jvm_that_cannot_be_read_any_more_leaves_native_frames(
    classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the middle of its end: only the first look finds its code."""
    first = [JavaProcess.look]

    def look(java: JavaProcess) -> object:
        if first:
            return first.pop()(java)
        raise NotSupportedError("Java frames", "the code cache cannot be read")

    monkeypatch.setattr(JavaProcess, "look", look)
    (home,) = jvms.default()
    with started(home, classes) as process:
        dumped = session.dump(process.pid, kernel=False)
    assert not java_frames(dumped)
    assert any(thread.frames for thread in dumped.threads)


def test_the_next_jvm_of_a_file_and_a_user_is_described_by_the_first(
    classes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home,) = jvms.default()
    read = java_process.read_jvm
    reads = []

    def count(memory: Memory, symbols: dict[str, int]) -> Jvm:
        reads.append(1)
        return read(memory, symbols)

    monkeypatch.setattr(java_process, "read_jvm", count)
    monkeypatch.setattr(java_process, "_known", {})
    with started(home, classes) as first:
        one = java_frames(_settled(first.pid))
    with started(home, classes) as second:
        expected = theirs(second, home)
        assert java_frames(_settled(second.pid)) == expected
        library = find_library(second.pid)
        assert library is not None
        assert java_process._key(library, second.pid) in java_process._known
        monkeypatch.setattr(proc, "other_user", lambda pid: 4711 if pid == second.pid else None)
        assert java_process._key(library, second.pid) not in java_process._known
    assert len(one) == len(expected)
    assert len(reads) == 1


def test_a_file_called_libjvm_is_no_jvm(tmp_path: Path) -> None:
    """A program that maps a library of that name without the tables."""
    library = tmp_path / "libjvm.so"
    library.write_bytes(Path("/bin/true").read_bytes())
    program = (
        "import mmap, time\n"
        f"file = open({str(library)!r}, 'rb')\n"
        "held = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n"
        "print(1, flush=True); time.sleep(1000)\n"
    )
    with subprocess.Popen(["python3", "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        dumped = session.dump(process.pid, kernel=False)
        process.kill()
    assert any("does not describe a HotSpot JVM" in note for note in dumped.notes)
    assert dumped.java == ""
