"""stat on workloads of a known size, with the kernel's own accounts and perf as the truth."""

from __future__ import annotations

import json
import mmap
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from purebpf.tools.stat import Counter, Result, StatOptions
from tests.support.environment import run, start
from tests.support.host import cgroups
from tests.support.host.users import as_user

pytestmark = [
    pytest.mark.needs("perf_event"),
    pytest.mark.alone,  # a BPF program at a tracepoint would hide its passes
]

PAGES, SLEEPS, MOVES, CALLS = 1009, 101, 53, 1013

GETPPID = "syscalls:sys_enter_getppid"
WORK = f"""
import os, threading
def work():
    for _ in range({CALLS}):
        os.getppid()
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
if not os.fork():
    work()
    os._exit(0)
os.wait()
"""
"""3 * CALLS calls: in two threads and in a child."""


class Worker:
    """A child that works when it is asked to, and says what the kernel has accounted for it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._asked, self._ask = os.pipe()
        self._done, self._say = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._ask)
            while os.read(self._asked, 1):
                before = accounts()
                work()
                since = [now - then for now, then in zip(accounts(), before, strict=True)]
                os.write(self._say, json.dumps(since).encode())
            os._exit(0)

    def do(self) -> list[int]:
        """Minor faults, context switches, nanoseconds of CPU, while it worked once."""
        os.write(self._ask, b"!")
        since: list[int] = json.loads(os.read(self._done, 200))
        return since

    def end(self) -> None:
        for fd in (self._ask, self._asked, self._done, self._say):
            os.close(fd)
        os.waitpid(self.pid, 0)


def accounts() -> tuple[int, int, int]:
    import time

    used = resource.getrusage(resource.RUSAGE_SELF)
    return (
        used.ru_minflt,
        used.ru_nvcsw + used.ru_nivcsw,
        time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID),
    )


@contextmanager
def worker(work: Callable[[], None]) -> Iterator[Worker]:
    one = Worker(work)
    try:
        one.do()  # what is done for the first time costs more
        yield one
    finally:
        one.end()


def value(result: Result, name: str) -> float:
    (found,) = [count.value for count in result.counts if count.event.name == name]
    assert found is not None
    return found


def touch() -> None:
    import mmap

    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1


def test_page_faults_are_those_of_the_kernels_account():
    with (
        worker(touch) as one,
        Counter(StatOptions((("page-faults",),), pids=(one.pid,))) as counter,
    ):
        minor, _, _ = one.do()
        result = counter.stop()
    assert minor <= value(result, "page-faults") <= minor + 3  # the accounts themselves
    assert PAGES <= minor <= PAGES + 20


@pytest.mark.needs("cgroup2")
def test_each_cgroup_is_counted_alone_at_any_depth():
    """Of a program that is 12 levels down, the cgroup there and those above count the same."""
    with ExitStack() as stack:
        first = stack.enter_context(cgroups.made())
        deep, names = first, [first.name]
        for _ in range(11):
            deep = stack.enter_context(cgroups.made(deep))
            names.append(f"{names[-1]}/{deep.name}")
        idle = first / "idle"
        idle.mkdir()
        stack.callback(idle.rmdir)
        one = stack.enter_context(worker(touch))
        (deep / "cgroup.procs").write_text(str(one.pid))
        options = StatOptions((("page-faults",),), for_each_cgroup=(f"{first.name}*",))
        with Counter(options) as counter:
            minor, _, _ = one.do()
            result = counter.stop()
    counts = {count.key: count.counted for count in result.counts}
    assert [count.key for count in result.counts] == sorted([*names, f"{first.name}/idle"])
    assert counts.pop(f"{first.name}/idle") == 0
    assert {*counts.values()} == {counts[first.name]}
    assert minor <= counts[first.name] <= minor + 3


def test_a_pattern_that_fits_no_cgroup_is_an_error():
    done = run("stat", "--for-each-cgroup", "no/such*", "--", "true")
    assert done.returncode == 1
    assert "no cgroup fits 'no/such*'" in done.stderr


def test_context_switches_are_those_of_the_kernels_account():
    import time

    def sleep() -> None:
        for _ in range(SLEEPS):
            time.sleep(0.001)  # long enough to be off the CPU on an emulated one, too

    with worker(sleep) as one, Counter(StatOptions((("cs",),), pids=(one.pid,))) as counter:
        _, switches, _ = one.do()
        result = counter.stop()
    assert switches >= SLEEPS
    assert switches <= value(result, "cs") <= switches + 3  # it waits for its pipe


def test_the_clock_of_a_task_is_its_cpu_time():
    def spin() -> None:
        sum(range(3_000_000))

    with worker(spin) as one, Counter(StatOptions((("task-clock",),), pids=(one.pid,))) as counter:
        _, _, used_ns = one.do()
        result = counter.stop()
    assert value(result, "task-clock") == pytest.approx(used_ns, rel=0.05)


def test_every_move_to_another_cpu_is_a_migration():
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("a task can migrate only where there are two CPUs")

    def move() -> None:
        for turn in range(MOVES):
            os.sched_setaffinity(0, {cpus[(turn + 1) % 2]})
        os.sched_setaffinity(0, cpus)

    with worker(move) as one:
        os.sched_setaffinity(one.pid, {cpus[0]})
        with Counter(StatOptions((("cpu-migrations",),), pids=(one.pid,))) as counter:
            one.do()
            result = counter.stop()
    assert MOVES <= value(result, "cpu-migrations") <= MOVES + 1


def counts_of(*arguments: str) -> dict[str, float]:
    done = run("stat", "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)["counts"]
    return {count["event"]: count["value"] for count in counts}


@pytest.mark.needs("tracefs")
def test_threads_and_children_of_a_command_count():
    command = ("--", sys.executable, "-c", WORK)
    assert counts_of("-e", GETPPID, *command) == {GETPPID: 3 * CALLS}
    assert counts_of("--no-inherit", "-e", GETPPID, *command) == {GETPPID: 0}


@pytest.mark.needs("tracefs")
@pytest.mark.parametrize("tree", [False, True])
def test_children_that_a_process_starts_later_count_with_tree(tree):
    children = 7

    def fork() -> None:
        for _ in range(children):
            pid = os.fork()
            if not pid:
                os.getppid()
                os._exit(0)
            os.waitpid(pid, 0)
        os.getppid()

    options = StatOptions(groups=((GETPPID,),), tree=tree)
    with worker(fork) as one, Counter(options._replace(pids=(one.pid,))) as counter:
        one.do()
        result = counter.stop()
    assert value(result, GETPPID) == 1 + children * tree


@pytest.mark.needs("tracefs", "perf")
def test_counts_are_those_of_perf():
    command = ("--", sys.executable, "-I", "-c", WORK)
    events = f"{GETPPID},page-faults,page-faults:u"
    ours = counts_of("-e", events, *command)
    perf = subprocess.run(
        ["perf", "stat", "-x,", "-e", events, *command], capture_output=True, text=True, check=True
    )
    rows = [line.split(",") for line in perf.stderr.splitlines() if "," in line]
    theirs = {row[2]: float(row[0]) for row in rows}
    assert ours[GETPPID] == theirs[GETPPID] == 3 * CALLS
    for name, number in theirs.items():
        assert ours[name] == pytest.approx(number, rel=0.02), name


@contextmanager
def perf_counting(pid: int, events: str, file: Path) -> Iterator[None]:
    """perf stat of a process, which has said that it counts, and then that it has stopped."""
    control, ack = os.pipe(), os.pipe()
    fds = f"fd:{control[0]},{ack[1]}"
    command = ["perf", "stat", "-x,", "-o", str(file), "-e", events, "-p", str(pid), "-D", "-1"]
    command += ["--control", fds]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdout=nowhere, stderr=nowhere, pass_fds=(control[0], ack[1])
    ) as perf:
        try:
            for order in (b"enable\n", b"disable\n"):
                os.write(control[1], order)
                assert select.select([ack[0]], [], [], 30)[0]
                assert os.read(ack[0], 8).startswith(b"ack")
                if order == b"enable\n":
                    yield
        finally:
            perf.send_signal(signal.SIGINT)
            perf.wait()
            for fd in (*control, *ack):
                os.close(fd)


@pytest.mark.needs("tracefs", "perf")
def test_perf_counts_the_same_at_the_same_time(tmp_path: Path):
    """Of one process, while both watch it: what it does is known, and equal to the last digit."""

    def work() -> None:
        for _ in range(CALLS):
            os.getppid()
        touch()

    names = (GETPPID, "page-faults", "page-faults:u")
    with (
        worker(work) as one,
        Counter(StatOptions((names[:1], names[1:]), pids=(one.pid,))) as counter,
        perf_counting(one.pid, ",".join(names), tmp_path / "perf"),
    ):
        one.do()
        result = counter.stop()
    rows = [line.split(",") for line in (tmp_path / "perf").read_text().splitlines()]
    theirs = {row[2]: float(row[0]) for row in rows if len(row) > 3}
    assert theirs == {name: value(result, name) for name in names}
    assert theirs[GETPPID] == CALLS
    assert theirs["page-faults"] >= PAGES


@pytest.mark.needs("tracefs")
@pytest.mark.needs("gcc")
def test_breakpoints_count_what_touches_an_address(tmp_path):
    source, program = tmp_path / "touch.c", tmp_path / "touch"
    source.write_text(
        "volatile int counter; void called(void) { counter++; }\n"
        f"int main(void) {{ for (int i = 0; i < {CALLS}; i++) called(); return 0; }}\n"
    )
    options = ["-O1", "-fno-inline", "-no-pie"]
    subprocess.run(["gcc", *options, "-o", program, source], check=True)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    places = {
        line.split()[2]: f"0x{line.split()[0]}" for line in symbols.splitlines() if line[0] != " "
    }
    written, executed = f"mem:{places['counter']}/4:w:u", f"mem:{places['called']}:x:u"
    out = tmp_path / "out"
    words = ("-e", f"{written},{executed}", "--format", "json", "-o", str(out), "--", str(program))
    done = run("stat", *words)
    assert done.returncode == 0, done.stderr
    counts = {count["event"]: count["value"] for count in json.loads(out.read_text())["counts"]}
    assert counts == {written: CALLS, executed: CALLS}


def test_intervals_add_up():
    line = ("-I", "100", "--format", "json", "-e", f"{{{GETPPID},cs}}")
    code = f"import time; time.sleep(0.25); {WORK.strip()}"
    done = run("stat", *line, "--", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    documents = [json.loads(text) for text in done.stdout.splitlines()]
    assert len(documents) > 2
    assert sum(document["counts"][0]["value"] for document in documents) == 3 * CALLS
    times = [document["time_s"] for document in documents]
    assert times == sorted(times)


@pytest.mark.needs("tracefs")
def test_rows_of_cpus_and_threads_add_up():
    groups = ((GETPPID,),)

    def call() -> None:
        for _ in range(CALLS):
            os.getppid()

    with worker(call) as one:
        for by in ("cpu", "thread"):
            with Counter(StatOptions(groups, pids=(one.pid,), by=by)) as counter:
                one.do()
                counts = counter.stop().counts
            assert sum(count.value or 0 for count in counts) == CALLS
    assert [count.key.rpartition("-")[2] for count in counts] == [str(one.pid)]


def test_repeats_run_the_command_so_often(tmp_path):
    log = tmp_path / "log"
    done = run("stat", "-r", "3", "--", "sh", "-c", f"echo x >> {log}")
    assert done.returncode == 0, done.stderr
    assert log.read_text() == "x\n" * 3
    assert "mean of 3 runs" in done.stdout


def test_an_event_that_is_not_supported_is_said_so_once():
    done = run("stat", "-e", "cycles,page-faults", "--strict", "--", "true")
    if "n/s" not in done.stdout:
        assert done.returncode == 0, done.stderr
        pytest.skip("this machine has hardware counters")
    assert done.returncode == 3
    assert "1 event cannot be counted here (cycles)" in " ".join(done.stderr.split())


@pytest.mark.parametrize("status", [0, 7])
def test_the_status_is_that_of_the_command(status):
    assert run("stat", "--", "sh", "-c", f"exit {status}").returncode == status


def test_ctrl_c_prints_what_was_counted():
    process = start("stat")
    assert process.stderr is not None
    assert select.select([process.stderr], [], [], 60)[0], "nothing was said in a minute"
    assert "Hit Ctrl-C" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    printed, messages = process.communicate(timeout=60)
    assert process.returncode == 0, messages
    assert "context-switches" in printed


def test_a_user_counts_its_own_code_and_reads_what_is_missing():
    paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid not in (2, 3):
        pytest.skip(f"kernel.perf_event_paranoid is {paranoid}: nothing is refused, or everything")

    def count() -> object:
        with Counter(StatOptions((("page-faults",),), pids=(os.getpid(),))) as counter:
            result = counter.stop()
        return result.counts[0].event.spaces, result.notes

    answer = as_user(65534, count)
    is_refused = answer[0] in ("KernelError", "RefusedError")
    if paranoid > 2 and is_refused:  # a patch of Debian's; others go on like 2
        assert "kernel.perf_event_paranoid" in answer[1]
        return
    spaces, (note,) = answer
    assert spaces == "u"
    assert note.startswith("counted in user space only: page-faults.")


def test_a_user_may_not_count_everything():
    kind, text = as_user(65534, lambda: Counter(StatOptions((("page-faults",),))).__enter__())
    assert kind == "RefusedError"
    assert "CAP_PERFMON" in text


def test_every_event_of_a_group_runs_with_its_leader():
    """Also one of another unit than the leader's: a clock is not of that of the other events."""
    groups = (("cpu-clock", "page-faults", "context-switches"),)
    for options in (StatOptions(groups), StatOptions(groups, pids=(os.getpid(),))):
        with Counter(options) as counter:
            time.sleep(0.1)
            with mmap.mmap(-1, mmap.PAGESIZE) as memory:
                memory[0] = 1
            counts = counter.stop().counts
        assert [count.uncounted for count in counts] == [0, 0, 0], counts
        assert all(count.counted for count in counts), counts
