"""`purebpf profile` names the Java methods of samples, without an option, an agent or a perf map.

Each function of the program has one caller, on one line: a stack tells whether it is possible.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from purebpf.results.model.profile import Row
from purebpf.symbols.frame import Frame
from purebpf.tools.profile import ProfileOptions, Profiler
from tests.support.programs import jvms

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "javac", "x86_64"),
    pytest.mark.skipif(not jvms.every(), reason="there is no JVM"),
]
OPTIONS: list[tuple[str, ...]] = [()]
"""Of java; at night also only the interpreter, only compiled code, and another collector."""
if os.environ.get("PUREBPF_NIGHTLY"):
    OPTIONS += [("-Xint",), ("-XX:TieredStopAtLevel=1",), ("-XX:+UseSerialGC",)]
PROGRAM = """
import java.util.Arrays;
import java.util.HashMap;

public class Chain {
    static volatile int sink;

    static int leaf(int n) {
        int found = n;
        for (int turn = 0; turn < 200; turn++) found = found * 1103515245 + 12345 + (found >>> 7);
        return found;
    }

    static int inner(int n) { return leaf(n) + 1; } // inner

    static int sorted(int n) {
        Integer[] pair = {2, 1};
        Arrays.sort(pair, (a, b) -> inner(n) + a - b); // lambda
        return pair[0];
    }

    static final class Key {
        final int n;
        Key(int n) { this.n = n; }
        @Override public int hashCode() { return sorted(n); } // hash
    }

    static int put(int n) {
        HashMap<Key, Integer> map = new HashMap<>();
        map.put(new Key(n), n); // put
        return map.size();
    }

    static int descend(int left) {
        if (left == 0) return put(sink); // bottom
        return descend(left - 1) + 1; // descend
    }

    public static void main(String[] arguments) {
        System.out.println("ready");
        while (true) sink += descend(6); // main
    }
}
"""
MARKS = {
    text.rpartition("// ")[2]: at
    for at, text in enumerate(PROGRAM.splitlines(), 1)
    if "; // " in text or "} // " in text
}
CALLERS = {
    "Chain.leaf": {("Chain.inner", MARKS["inner"])},
    "Chain.inner": {("Chain.lambda$sorted$0", MARKS["lambda"])},
    "Chain.sorted": {("Chain$Key.hashCode", MARKS["hash"])},
    "Chain$Key.<init>": {("Chain.put", MARKS["put"])},
    "Chain.put": {("Chain.descend", MARKS["bottom"])},
    "Chain.descend": {("Chain.descend", MARKS["descend"]), ("Chain.main", MARKS["main"])},
}
PASSED = {"Chain$Key.hashCode": "Chain.put", "Chain.lambda$sorted$0": "Chain.sorted"}
"""Functions that the library calls: the program's own function that is next."""


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("java")
    (folder / "Chain.java").write_text(PROGRAM)
    subprocess.run(["javac", "--release", "11", "-d", folder, folder / "Chain.java"], check=True)
    return folder


@contextmanager
def started(home: Path, classes: Path, *options: str, name: str = "Chain") -> Iterator[int]:
    command = [home / "bin/java", *options, "-cp", classes, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)  # its methods are compiled
            yield process.pid
        finally:
            process.kill()


def own(row: Row) -> list[tuple[str, int]]:
    """The program's own functions in a stack, innermost first, with their lines."""
    frames = [frame for frame in row.user or () if isinstance(frame, Frame)]
    return [(each.name, each.line) for each in frames if each.name.startswith("Chain")]


def check(stack: list[tuple[str, int]]) -> None:
    """Each function's caller is the one that it has in the source, on its line."""
    functions = [each for each in stack if "$$Lambda" not in each[0]]
    for callee, caller in pairwise(functions):
        if callee[0] in PASSED:
            assert caller[0] == PASSED[callee[0]], stack
        else:
            assert caller in CALLERS[callee[0]], stack


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("home", jvms.params())
def test_stacks_are_whole_and_possible(home: Path, classes: Path, options: tuple[str, ...]) -> None:
    count = cut = frames = 0
    with started(home, classes, *options) as pid:
        for _ in range(5):  # until there are enough: the first samples have no tables
            with Profiler(
                ProfileOptions(pids=(pid,), frequency=199, duration_s=3, python_lines=True)
            ) as profiler:
                profiler.wait()
                profile = profiler.stop()
            rows = [row for row in profile.rows() if own(row)]
            whole = [row for row in rows if own(row)[-1][0] == "Chain.main"]
            for row in whole:
                check(own(row))
            count += sum(row.weight for row in whole)
            cut += sum(row.weight for row in rows) - sum(row.weight for row in whole)
            frames += profile.about["java_frames"]
            if count >= 50:
                break
    assert count >= 50
    assert cut <= 0.1 * count
    assert frames > 5 * count


VIRTUAL = """
public class Turns {
    static volatile long sink;

    static long busy(long n) {
        long found = n;
        for (int turn = 0; turn < 200000; turn++) found = found * 1103515245 + (found >>> 17);
        return found;
    }

    static void third() { sink += busy(1); Thread.yield(); sink += busy(2); }
    static void second() { third(); sink += busy(3); }
    static void first() { while (true) { second(); sink += busy(4); } }

    public static void main(String[] arguments) throws Exception {
        var start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int each = 0; each < 4; each++) start.invoke(null, (Runnable) Turns::first);
        System.out.println("ready");
        Thread.sleep(1000000);
    }
}
"""
MARK = "[virtual thread: callers in the heap]"
CHAIN = ["Turns.busy", "Turns.third", "Turns.second", "Turns.first"]


@pytest.mark.parametrize("home", jvms.params())
def test_callers_of_virtual_threads_in_the_heap_are_said_to_be_there(
    home: Path, tmp_path: Path
) -> None:
    if jvms.major(home) < 21:
        pytest.skip("virtual threads need JDK 21")
    (tmp_path / "Turns.java").write_text(VIRTUAL)
    command = ["javac", "--release", "11", "-d", tmp_path, tmp_path / "Turns.java"]
    subprocess.run(command, check=True)
    marked = 0
    with started(home, tmp_path, name="Turns") as pid:
        for _ in range(5):
            with Profiler(ProfileOptions(pids=(pid,), frequency=199, duration_s=3)) as profiler:
                profiler.wait()
                profile = profiler.stop()
            for row in profile.rows():
                names = [frame.name for frame in row.user or () if isinstance(frame, Frame)]
                own = [name for name in names if name in CHAIN]
                if not own:
                    continue
                callers = own[own[0] == "Turns.busy" :]  # which each of the others calls
                at = CHAIN.index(callers[0]) if callers else 0
                assert callers == CHAIN[at : at + len(callers)]
                marked += row.weight * (MARK in names)
            if marked >= 20:
                break
    assert marked >= 20


COMPARE = """
public class Compare {
    static volatile int sink;

    static int many(String[] texts) {
        int sum = 0;
        for (int at = 1; at < texts.length; at++) sum += texts[at - 1].compareTo(texts[at]);
        return sum;
    }

    public static void main(String[] arguments) {
        String[] texts = new String[64];
        for (int at = 0; at < texts.length; at++) texts[at] = "0123456789".repeat(200) + at;
        for (int turn = 0; turn < 30000; turn++) sink += many(texts);
        System.out.println("ready");
        while (true) sink += many(texts);
    }
}
"""


@pytest.mark.parametrize("home", jvms.params())
def test_callers_of_compared_strings_are_there(home: Path, tmp_path: Path) -> None:
    """C2's code pushes a register, and pops it when two strings are compared."""
    (tmp_path / "Compare.java").write_text(COMPARE)
    command = ["javac", "--release", "11", "-d", tmp_path, tmp_path / "Compare.java"]
    subprocess.run(command, check=True)
    whole = total = 0
    with started(home, tmp_path, name="Compare") as pid:
        for _ in range(5):  # the first samples have no tables
            with Profiler(ProfileOptions(pids=(pid,), frequency=199, duration_s=3)) as profiler:
                profiler.wait()
                profile = profiler.stop()
            for row in profile.rows():
                names = [frame.name for frame in row.user or () if isinstance(frame, Frame)]
                if names and names[0] == "Compare.many":
                    total += row.weight
                    is_whole = names[1:2] == ["Compare.main"] and "start_thread" in names
                    whole += row.weight * is_whole
            if total >= 100:
                break
    assert total >= 100
    assert whole >= 0.99 * total
