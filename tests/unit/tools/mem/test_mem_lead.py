"""The first lines of mem: growth, its areas, and the functions that explain it."""

from __future__ import annotations

import pytest

from purebpf.results import Labels, Profile
from purebpf.results.model.profile import Marks
from purebpf.symbols.frame import Address, Frame
from purebpf.tools.mem.areas import sum_areas
from purebpf.tools.mem.cost import CostLimit
from purebpf.tools.mem.growth import Growth
from purebpf.tools.mem.lead import choose_profile, describe_growth
from purebpf.tools.mem.profiles import MemoryUse

MB = 1_000_000
ARENAS = "Python's arenas of objects, and large blocks of malloc (mmap)"


def profile(unit: str, *weights: tuple[int, int, str], times: int = 1) -> Profile:
    """Rows of a process: PID, weight, and the function of its own script."""
    made = Profile("mem", unit=unit)
    for pid, weight, name in weights:
        frame = Frame(name, 0, "/srv/feed.py", Address(0), "python", "", line=9)
        top = Frame("<module>", 0, "/srv/feed.py", Address(0), "python", "", line=15)
        made.add((frame, top), (), weight, Labels("python3", pid), marks=Marks(times=times))
    return made


def use(unfreed: int = 0, faults: int = 0, grown: int = 0, calls: int = 1) -> MemoryUse:
    return MemoryUse(
        profile("bytes", (7, unfreed, "keep")) if unfreed else profile("bytes"),
        profile("bytes"),
        profile("bytes", (7, grown, "map"), (8, 999 * MB, "stranger"), times=calls),
        profile("faults", (7, faults, "touch")) if faults else profile("faults"),
    )


def text(growths: list[Growth], memory: MemoryUse) -> str:
    return "".join(describe_growth(growths, memory, 5.0))


def test_growth_comes_first_with_its_area_and_its_line() -> None:
    growth = Growth(7, "python3", 20 * MB, 32 * MB, {ARENAS: 12 * MB})
    assert text([growth], use(unfreed=300_000, faults=2900, grown=13 * MB)) == (
        "python3 (7) grew by 12.0 MB in 5.0 s (2.4 MB/s), to 32.0 MB\n"
        "    12.0 MB         in Python's arenas of objects, and large blocks of malloc (mmap)\n"
        "  new pages were first used:\n"
        "    11.9 MB  100 %  touch (feed.py:9)\n"
    )


@pytest.mark.parametrize(
    ("memory", "shown"),
    [
        (use(unfreed=11 * MB, faults=2900, grown=12 * MB), "unfreed"),
        (use(unfreed=300_000, faults=2900, grown=12 * MB), "faults"),
        (use(unfreed=300_000, faults=900_000, grown=12 * MB), "grown"),
        (use(unfreed=300_000, faults=4700, grown=12 * MB), "faults"),
        (use(unfreed=300_000, faults=4700, grown=12 * MB, calls=100), "grown"),
    ],
    ids=[
        *("exact", "pages", "pages that are given back and taken again"),
        *("few calls and some pages twice", "many calls"),
    ],
)
def test_the_count_that_explains_the_growth_is_chosen(memory: MemoryUse, shown: str) -> None:
    growth = Growth(7, "python3", 20 * MB, 32 * MB, {})
    assert choose_profile([growth], memory) == shown


def test_a_process_that_does_not_grow_has_one_line() -> None:
    growth = Growth(7, "python3", 32 * MB, 32 * MB + 4096, {"": 4096})
    assert text([growth], use(grown=900 * MB)) == (
        "python3 (7) did not grow: 32.0 MB (+4,096 bytes)\n"
    )
    assert choose_profile([growth], use(grown=900 * MB)) is None


def mapping(start: int, path: str = "", anonymous: int = 100, size: int = 0x100000) -> str:
    return (
        f"{start:x}-{start + size:x} rw-p 00000000 00:00 0      {path}\n"
        f"Rss:                 150 kB\nAnonymous:           {anonymous} kB\nSwap:   8 kB\n"
    )


@pytest.mark.parametrize(
    ("runtime", "start", "area"),
    [
        ("/usr/bin/python3.11", 0x7F0000123000, ARENAS),
        ("/usr/bin/node", 0x1A2B3C4C0000, "V8's heap"),
        ("/usr/bin/node", 0x1A2B3C4C1000, "anonymous mappings (mmap)"),
        ("/usr/lib/jvm/lib/server/libjvm.so", 0x6C0000000, "Java's heap"),
        ("/usr/lib/jvm/lib/server/libjvm.so", 0x7F0000123000, "anonymous mappings (mmap)"),
        ("/srv/shop", 0xC000000000, "Go's heap"),
        ("/srv/shop", 0x7F0004000000, "malloc's arenas of threads"),
    ],
)
def test_anonymous_memory_has_the_name_of_its_user(runtime: str, start: int, area: str) -> None:
    smaps = mapping(0x400000, runtime, anonymous=0) + mapping(start)
    assert sum_areas(smaps) == {"changed pages of files": 8192, area: 108 * 1024}


def test_a_mapping_that_grows_while_it_is_read_counts_once() -> None:
    """The kernel goes on behind the end that it had: there the same mapping is again."""
    heap = mapping(0x400000, "[heap]") + mapping(0x400000, "[heap]", anonymous=200, size=0x200000)
    assert sum_areas(heap) == {"malloc's heap (brk)": 208 * 1024}


def test_mappings_that_become_one_while_they_are_read_count_once() -> None:
    apart = mapping(0x400000) + mapping(0x500000)
    merged = mapping(0x400000, anonymous=300, size=0x300000)
    assert sum_areas(apart + merged) == {"anonymous mappings (mmap)": 308 * 1024}


def test_pages_of_files_are_no_memory_of_the_process_and_shared_memory_is() -> None:
    smaps = mapping(0x400000, "/srv/data.bin", anonymous=0) + mapping(0x7F0000000000, "/dev/shm/q")  # noqa: S108
    assert sum_areas(smaps) == {"changed pages of files": 8192, "shared memory": 158 * 1024}


def test_the_limit_allows_its_share_of_the_whole_run() -> None:
    limit = CostLimit(5, duration_s=10)
    assert not limit.is_over(29_000, 1.2)
    assert limit.is_over(30_000, 1.3)  # 30,000 pairs of 17 us are 0.51 s
    limit.end(30_000, 10.0)
    assert limit.facts() == {
        "malloc_calls_per_s": 46_154,
        "malloc_cost_percent": 39.2,
        "malloc_traced_s": 1.3,
    }


def test_a_slow_program_stays_below_the_limit() -> None:
    limit = CostLimit(5, duration_s=None)
    assert not any(limit.is_over(2_900 * second, second) for second in range(1, 100))


def test_no_limit_is_never_over() -> None:
    assert not CostLimit(0, duration_s=1).is_over(10**9, 0.5)
