"""No wrong name of Java while class loaders come and go, and compiled code is replaced.

Each class has methods that bear its number and call only each other: a name that belongs to code
that was there before, or comes after, breaks the rule.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from purebpf.symbols.frame import Frame
from tests.support.programs import jvms
from tests.support.programs.java_samples import SAMPLES, judge

pytestmark = [
    pytest.mark.needs("bpf", "perf_event", "task_pt_regs", "vmlinux_btf", "javac", "x86_64"),
    pytest.mark.skipif(not jvms.every(), reason="there is no JVM"),
    pytest.mark.nightly,
]
UNITS = 50
UNIT = """
public class Unit@ {
    static volatile int sink;

    static int inner@(int n) {
        int found = n;
        for (int turn = 0; turn < 300; turn++) found = found * 1103515245 + (found >>> 7);
        return found;
    }

    static int outer@(int n) { return inner@(n) + inner@(n + 1); }

    public static void start() {
        long until = System.nanoTime() + 20_000_000L;
        while (System.nanoTime() < until) sink += outer@(sink);
    }
}
"""
RUNNER = """
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

public class Races {
    static final List<WeakReference<ClassLoader>> LOADERS = new ArrayList<>();

    static void run(int number, URL[] places) throws Exception {
        URLClassLoader loader = new URLClassLoader(places, null);
        LOADERS.add(new WeakReference<>(loader));
        loader.loadClass("Unit" + number).getMethod("start").invoke(null);
        loader.close();
    }

    public static void main(String[] arguments) throws Exception {
        URL[] places = {Path.of(arguments[0]).toUri().toURL()};
        int gone = 0;
        for (int round = 0; ; round++) {
            run(round % Integer.parseInt(arguments[1]), places);
            if (round % 5 != 4) continue;
            System.gc();
            int before = LOADERS.size();
            LOADERS.removeIf(each -> each.get() == null);
            gone += before - LOADERS.size();
            System.out.println(gone);
        }
    }
}
"""
OWN = re.compile(r"Unit(\d+)\.(?:(inner|outer)(\d+)|start)$")
ORDER = {"inner": 0, "outer": 1, None: 2}


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner in one folder, the classes that it loads in another."""
    folder = tmp_path_factory.mktemp("races")
    (folder / "Races.java").write_text(RUNNER)
    names = [folder / f"Unit{number}.java" for number in range(UNITS)]
    for number, path in enumerate(names):
        path.write_text(UNIT.replace("@", str(number)))
    for sources, to in (([folder / "Races.java"], "runner"), (names, "units")):
        command: list[str | Path] = ["javac", "--release", "11", "-d", folder / to, *sources]
        subprocess.run(command, check=True)
    return folder


def wrong(frames: list[Frame]) -> str:
    """The names of a stack that cannot be; "" for a possible one."""
    own = [(frame, match) for frame in frames if (match := OWN.match(frame.name))]
    numbers = {number for _, match in own for number in (match[1], match[3]) if number}
    order = [ORDER[match[2]] for _, match in own]
    files = {frame.file for frame, _ in own if frame.line}
    is_possible = len(numbers) <= 1 and order == sorted(set(order))
    if is_possible and files <= {f"Unit{number}.java" for number in numbers}:
        return ""
    return " < ".join(f"{frame.name} ({frame.file})" for frame in frames)


def options_of(collector: str) -> list[str]:
    """Options of java: little memory for code, so that it is swept, and a collector."""
    options = ["-XX:ReservedCodeCacheSize=4m", "-Xmx64m"]
    return options if collector == "default" else [*options, "-XX:+UseZGC"]


@pytest.mark.parametrize("collector", ["default", "ZGC"])
@pytest.mark.parametrize("home", jvms.params())
def test_no_name_is_wrong_while_classes_come_and_go(
    home: Path, classes: Path, collector: str
) -> None:
    """ZGC unloads classes while the program runs."""
    if collector == "ZGC" and jvms.major(home) < 12:
        pytest.skip("ZGC unloads classes since JDK 12")
    runner: list[str | Path] = ["-cp", classes / "runner", "Races", classes / "units", str(UNITS)]
    said = classes / f"said-{home.name}-{collector}"
    command = [home / "bin/java", *options_of(collector), *runner]
    with said.open("w") as file:
        process = subprocess.Popen(command, stdout=file, text=True)
    try:
        judged = judge(process, lambda frame: OWN.match(frame.name), wrong)
    finally:
        process.kill()
        process.wait()
    print(f"{home.name}, {collector}: {judged[:3]}")
    assert not judged.wrong, judged.problems[:5]
    assert judged.total >= SAMPLES
    assert judged.named > judged.total / 50  # compilers and the collector take most of the time
    assert int(said.read_text().split()[-2]) >= UNITS  # class loaders that were unloaded
