"""No wrong name and no wrong line of Java while classes are redefined, and code is deoptimised."""

from __future__ import annotations

import re
import subprocess
import zipfile
from itertools import pairwise
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
TURNS = 10
MARKS = "\n".join(
    f"    static int mark{number}(int n) {{ return Redefine.busy(n) + {number}; }}"
    for number in range(TURNS)
)
TURN = """
public class Turn {
%s
    static int middle(int n) { return mark@(n) + 1; }
    public static int step(int n) { return middle(n) + 1; }
}
"""
"""In a version, `middle` and `step` are on lines of its own, and `middle` calls its own mark."""
REDEFINE = """
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;

public class Redefine {
    static Instrumentation tool;
    static volatile int sink;

    public static void premain(String argument, Instrumentation given) { tool = given; }

    static int busy(int n) {
        int found = n;
        for (int turn = 0; turn < 300; turn++) found = found * 1103515245 + (found >>> 7);
        return found;
    }

    static void spin(int ms) {
        long until = System.nanoTime() + ms * 1_000_000L;
        while (System.nanoTime() < until) sink += Turn.step(sink);
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        byte[][] code = new byte[count][];
        for (int at = 0; at < count; at++)
            code[at] = Files.readAllBytes(Path.of(arguments[0], "turn" + at, "Turn.class"));
        Thread other = new Thread(() -> { while (true) spin(1000); });
        other.setDaemon(true);
        other.start();
        for (int round = 0; ; round++) {
            tool.redefineClasses(new ClassDefinition(Turn.class, code[round % count]));
            spin(20);
            System.out.println(round);
        }
    }
}
"""
FIRST_LINE = TURNS + 3
"""Of `middle`, in version 0."""
STEP_LINES = range(FIRST_LINE + 1, FIRST_LINE + 1 + 2 * TURNS, 2)


def redefined_wrong(frames: list[Frame]) -> str:
    """Why a stack cannot be: a mark whose caller is not on the line of its version."""
    for callee, caller in pairwise(frames):
        mark = re.fullmatch(r"Turn\.mark(\d+)", callee.name)
        if mark and (caller.name, caller.line) != ("Turn.middle", FIRST_LINE + 2 * int(mark[1])):
            return f"{callee.name} < {caller.name}:{caller.line}"
        is_step = caller.name == "Turn.step" and caller.line in STEP_LINES
        if callee.name == "Turn.middle" and not is_step:  # the caller may be of an older version
            return f"{callee.name}:{callee.line} < {caller.name}:{caller.line}"
    return ""


def compiled(to: Path, *sources: Path) -> None:
    """Compile classes for all versions."""
    subprocess.run(["javac", "--release", "11", "-d", to, *sources], check=True)


@pytest.fixture(scope="module")
def redefined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent, and a folder for each version of the class."""
    folder = tmp_path_factory.mktemp("redefined")
    (folder / "Redefine.java").write_text(REDEFINE)
    source = folder / "Turn.java"
    for number in range(TURNS):
        blank = "\n" * (2 * number)
        source.write_text((TURN % (MARKS + blank)).replace("@", str(number)))
        sources = [source, folder / "Redefine.java"]
        compiled(folder / f"turn{number}", *sources)
    compiled(folder, *sources)
    with zipfile.ZipFile(folder / "agent.jar", "w") as jar:
        text = "Premain-Class: Redefine\nCan-Redefine-Classes: true\n"
        jar.writestr("META-INF/MANIFEST.MF", text)
    return folder


@pytest.mark.parametrize("home", jvms.params())
def test_no_name_or_line_is_wrong_while_classes_are_redefined(home: Path, redefined: Path) -> None:
    said = redefined / f"said-{home.name}"
    options: list[str | Path] = ["-Xmx64m", f"-javaagent:{redefined}/agent.jar"]
    program: list[str | Path] = ["-cp", redefined, "Redefine", redefined, str(TURNS)]
    with said.open("w") as file:
        process = subprocess.Popen([home / "bin/java", *options, *program], stdout=file, text=True)
    try:
        judged = judge(process, lambda frame: frame.name.startswith("Turn."), redefined_wrong)
    finally:
        process.kill()
        process.wait()
    print(f"{home.name}, redefined: {judged[:3]}")
    assert not judged.wrong, judged.problems[:5]
    assert judged.total >= SAMPLES
    assert judged.named > judged.total / 20
    assert int(said.read_text().split()[-2]) > 5 * TURNS


UNIT = """
public class Unit@ {
    static volatile int sink;
    static boolean isLate;

    abstract static class Shape@ { abstract int take@(int n); }
    static final class First@ extends Shape@ { int take@(int n) { return late@(n); } }
    static final class Second@ extends Shape@ { int take@(int n) { return n; } }
    static Shape@ shape = new First@();

    static int inner@(int n) {
        int found = n;
        for (int turn = 0; turn < 300; turn++) found = found * 1103515245 + (found >>> 7);
        return found;
    }

    static int late@(int n) {
        if (!isLate) return inner@(n);
        isLate = false;
        int sum = new Second@().take@(n);
        long until = System.nanoTime() + 10_000_000L;
        while (System.nanoTime() < until) sum += inner@(sum);
        return sum;
    }

    static int outer@(int n) { return shape.take@(n) + 1; }

    static int run@(int n) { return outer@(n) + 1; }

    public static void start() {
        long until = System.nanoTime() + 20_000_000L;
        while (System.nanoTime() < until) sink += run@(sink);
        isLate = true;
        sink += run@(sink);
    }
}
"""
"""The class `Second` is loaded when compiled callers are on the stack that know only of `First`."""
RUNNER = """
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;

public class Deoptimise {
    public static void main(String[] arguments) throws Exception {
        URL[] places = {Path.of(arguments[0]).toUri().toURL()};
        int count = Integer.parseInt(arguments[1]);
        for (int round = 0; ; round++) {
            URLClassLoader loader = new URLClassLoader(places, null);
            loader.loadClass("Unit" + round % count).getMethod("start").invoke(null);
            loader.close();
            if (round % 20 == 19) System.gc();
            System.out.println(round);
        }
    }
}
"""
UNITS = 30
OWN = re.compile(r"Unit(\d+)(?:\$(?:Shape|First|Second)(\d+))?\.(inner|late|take|outer|run)(\d+)$")
CALLERS = {"inner": {"late"}, "late": {"take"}, "take": {"outer"}, "outer": {"run"}}


def deoptimised_wrong(frames: list[Frame]) -> str:
    """Why a stack cannot be: numbers of two classes, or a caller that a function has not."""
    matches = [match for frame in frames if (match := OWN.match(frame.name))]
    if len({number for each in matches for number in each.group(1, 2, 4) if number}) > 1:
        return str([frame.name for frame in frames])
    kinds = [match[3] for match in matches]
    if kinds[:2] == ["take", "late"]:
        del kinds[0]  # of the second class
    for callee, caller in pairwise(kinds):
        if caller not in CALLERS.get(callee, ()):
            return str([frame.name for frame in frames])
    return ""


@pytest.fixture(scope="module")
def deoptimised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner in one folder, the classes that it loads in another."""
    folder = tmp_path_factory.mktemp("deoptimised")
    (folder / "Deoptimise.java").write_text(RUNNER)
    compiled(folder / "runner", folder / "Deoptimise.java")
    for number in range(UNITS):
        source = folder / f"Unit{number}.java"
        source.write_text(UNIT.replace("@", str(number)))
    compiled(folder / "units", *folder.glob("Unit*.java"))
    return folder


@pytest.mark.parametrize("options", [(), ("-XX:TieredStopAtLevel=1",)], ids=["C2", "C1"])
@pytest.mark.parametrize("home", jvms.params())
def test_no_name_is_wrong_while_code_is_deoptimised(
    home: Path, deoptimised: Path, options: tuple[str, ...]
) -> None:
    said = deoptimised / f"said-{home.name}-{len(options)}"
    java: list[str | Path] = [home / "bin/java", "-Xmx64m", "-XX:+PrintCompilation", *options]
    program: list[str | Path] = [deoptimised / "runner", "Deoptimise", deoptimised / "units"]
    with said.open("w") as file:
        command = [*java, "-cp", *program, str(UNITS)]
        process = subprocess.Popen(command, stdout=file, text=True)
    try:
        judged = judge(process, lambda frame: OWN.match(frame.name), deoptimised_wrong)
    finally:
        process.kill()
        process.wait()
    print(f"{home.name}, deoptimised: {judged[:3]}")
    assert not judged.wrong, judged.problems[:5]
    assert judged.total >= SAMPLES
    assert judged.named > judged.total / 20
    assert said.read_text().count("made not entrant") > UNITS
