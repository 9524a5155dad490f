"""Profiles to write and read back."""

from __future__ import annotations

from hypothesis import strategies as st

from purebpf.results import Cause, Labels, Loss, Marks, Profile, Waker
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

HOSTILE = (
    "</script><script>document.title='hostile'</script>",
    "line\nbreak\r\tand tab",
    "a;b;c 17",
    "\x1b[31mred",
    "\udcff\ud800 lone",
    '"quoted", comma',
    "=1+1",
    "\u202egnp.exe <img src=x onerror=\"document.title='hostile'\">",
    "&amp;<!--",
    "x" * 65536,
)

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def user(name: str, at: int = 0x1000, module: str = "/srv/app") -> Frame:
    return Frame(name, at & 0xF, module, Address(0x550000 + at), "user", "ab12", FileOffset(at))


def kernel(name: str, at: int = 0x10) -> Frame:
    return Frame(name, at & 0xF, "kernel", Address(0xFFFFFFFF81000000 + at), "kernel")


MAIN, WORK, HELP = user("main", 0x100), user("work", 0x200), user("help", 0x300)
START = user("__libc_start_call_main", 0x400, LIBC)
READ = kernel("vfs_read", 0x50)
ENTRY = kernel("entry_SYSCALL_64", 0x60)
NAMELESS = Unknown(Reason.STRIPPED, "/opt/bin/tool", Address(0x401000), "user")


def example() -> Profile:
    """Two processes; stacks on both sides, on one, on none, lost, recursive and nameless."""
    found = Profile(
        "Sampling at 99 Hertz of all threads by user + kernel stack for 2 secs.",
        about={"event": "cpu-clock", "frequency_hz": 99, "elapsed_s": 2.0, "host": "example"},
        loss=Loss(
            expected=103,
            seen=100,
            tolerance=2,
            causes=(Cause("map_full", 2, "2 found no place. Raise it"), Cause("truncated", 0, "")),
        ),
    )
    found.cost = {"run_time_ns": 12345, "run_cnt": 100}
    app = Labels("app", 185, cpu=0, cgroup="/system.slice/app.service")
    found.add((WORK, MAIN, START), (), 40, app)
    found.add((HELP, WORK, WORK, MAIN, START), (READ, ENTRY), 30, app._replace(cpu=1))
    found.add((HELP, MAIN, START), (), 10, app)
    found.add((NAMELESS, START), (), 9, Labels("tool", 7, cpu=1))
    found.add(None, (READ, ENTRY), 5, Labels("tool", 7, cpu=0))
    found.add((MAIN,), None, 4, Labels("tool", 8, cpu=0))
    found.add((), (), 2, Labels("kworker/0:1", 9, cpu=0))
    return found


def timed() -> Profile:
    """A profile with a time line: ten slots of 20 ms."""
    found = Profile("timed")
    found.slot_ns = 20_000_000
    found.add((WORK, MAIN), (), 6, Labels("app", 1, 2), ((0, 1), (3, 5)))
    found.add((HELP, MAIN), (), 4, Labels("app", 1, 3), ((9, 4),))
    return found


def hostile() -> Profile:
    """Every hostile name as function, module, process and cgroup."""
    found = Profile(HOSTILE[0])
    for number, name in enumerate(HOSTILE, 1):
        labels = Labels(name[:64], number, cgroup=name[:64])
        found.add((user(name, number, name[:4096]), MAIN), (), number, labels)
    return found


_NAMES = st.text(max_size=8) | st.sampled_from(HOSTILE[:-1])
_ADDRESSES = st.integers(0, (1 << 64) - 1).map(Address)
_OFFSETS = st.integers(-1, 1 << 40).map(FileOffset)


def _stacks(kind: str) -> st.SearchStrategy[tuple[Frame | Unknown, ...] | None]:
    frame = st.builds(
        *(Frame, _NAMES, st.integers(0, 99), _NAMES, _ADDRESSES, st.just(kind)),
        *(st.sampled_from(["", "ab12"]), _OFFSETS, _NAMES, st.integers(0, 99)),
    )
    unknown = st.builds(
        *(Unknown, st.sampled_from(Reason), _NAMES, _ADDRESSES, st.just(kind), _NAMES),
        *(st.sampled_from(["", "ab12"]), _OFFSETS),
    )
    return st.none() | st.lists(frame | unknown, max_size=5).map(tuple)


_LABELS = st.builds(
    *(Labels, _NAMES, st.integers(0, 9), st.integers(0, 9), st.integers(-1, 3), _NAMES, _NAMES)
)
_ROWS = st.tuples(_stacks("user"), _stacks("kernel"), st.integers(0, 1 << 50), _LABELS)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    found = Profile(draw(_NAMES), unit=draw(st.sampled_from(["samples", "ns", "calls"])))
    for row in draw(st.lists(_ROWS, max_size=6)):
        found.add(*row)
    return found


def waiting() -> Profile:
    """Time of one thread in three states; another task ended one of the waits."""
    found = Profile("waiting", unit="ns")
    labels = Labels("app", 1, 2)
    found.add((WORK, MAIN), (), 2_000, labels, marks=Marks("on-CPU"))
    found.add((WORK, MAIN), (), 1_000, labels, marks=Marks("run-queue"))
    waker = Waker("other", 7, 8, (HELP,), (READ,))
    found.add(
        (MAIN,), (READ,), 7_000, labels._replace(state="S"), marks=Marks("off-CPU", waker=waker)
    )
    return found


def sides() -> tuple[Profile, Profile]:
    """A profile, and a later one of the same program."""
    before, after = Profile("before"), Profile("after")
    for profile, rows in (
        (before, ((WORK, 60), (HELP, 40))),
        (after, ((WORK, 150), (START, 50))),
    ):
        for leaf, weight in rows:
            profile.add((leaf, MAIN), (), weight, Labels("app", 1))
    return before, after
