"""Descriptors and threads that grow in number, and numbers that do not."""

from __future__ import annotations

import pytest

from purebpf.findings.facts import Facts, JavaHeap, MemoryUse, Process
from purebpf.findings.find import find
from tests.support.builders.facts import PYTHON, THREAD, facts, native, own, running, waiting

STEADY = tuple(range(100, 200, 10))


def measured(**more: object) -> Facts:
    process = Process(7, 1, "spool", PYTHON, **more)  # type: ignore[arg-type]
    links = {7: dict.fromkeys(range(3, 190), "/etc/hosts")}
    stays = [waiting(7, tid, "futex", own("wait_for_receipt", 8), *THREAD) for tid in range(20, 23)]
    return facts(*stays)._replace(processes=(process,), descriptors=links)


def about_growth(facts_: Facts) -> list[str]:
    return [
        "; ".join((finding.text, *finding.evidence))
        for finding in find(facts_)
        if finding.kind == "growth"
    ]


def test_descriptors_that_are_not_closed() -> None:
    (text,) = about_growth(measured(files=STEADY))
    assert "opens 10 descriptors a second that it does not close (190 open files now)" in text
    assert "187 of 187 are /etc/hosts" in text


def test_few_readings_on_a_busy_machine() -> None:
    (text,) = about_growth(measured(files=(190, 370, 640)))
    assert "opens 50 descriptors a second that it does not close (640 open files now)" in text


def test_threads_that_do_not_end() -> None:
    (text,) = about_growth(measured(thread_counts=STEADY))
    assert "starts 10 threads a second that do not end (190 threads now)" in text
    assert "3 of them are in wait_for_receipt (app.py:8)" in text


@pytest.mark.parametrize(
    "counts",
    [
        (100,) * 10,
        (100, 110, 105, 120, 115, 130, 125, 140, 135, 150),
        (100, 150, 180, 190, 195, 196, 197, 198, 199, 200),
        tuple(range(3, 13)),
        (100, 120, 140),
        (100, 280, 300),
        (),
    ],
    ids=["constant", "up and down", "warms up", "few", "too few", "early", "not read"],
)
def test_numbers_that_stay_in_bounds(counts: tuple[int, ...]) -> None:
    assert about_growth(measured(files=counts, thread_counts=counts)) == []


# Memory


def test_memory_that_grows_in_one_jump_is_no_leak() -> None:
    steady = (39868, 41500, 43000, 44900, 46300, 48100, 49900, 51276)
    jumping = (39868, 39868, 39860, 42120, 48876, 49248, 49360, 51276)
    kinds = [one.kind for one in find(measured(anon=tuple(kib << 10 for kib in steady)))]
    assert "growth" in kinds
    kinds = [one.kind for one in find(measured(anon=tuple(kib << 10 for kib in jumping)))]
    assert "growth" not in kinds


def growing(*mib: int, **more: object) -> str:
    texts = (
        f"{one.text}; {'; '.join(one.evidence)}"
        for one in find(measured(anon=tuple(one << 20 for one in mib), **more))
        if one.kind == "growth"
    )
    return next(texts, "")


def test_few_readings_of_a_busy_machine_tell_of_a_leak_that_is_fast_and_even() -> None:
    """Three readings in ten seconds: they are no second apart."""
    assert "grows by 5.24 MB a second, always (80 MiB now)" in growing(40, 60, 80)
    assert growing(40, 41, 42) == ""
    assert growing(40, 75, 80) == ""
    assert growing(40, 60, 60) == ""
    assert growing(40, 80) == ""


# Java

MIB = 1 << 20
RISING = tuple(n * 4 * MIB for n in range(10, 20))


def jvm(used: tuple[int, ...] = RISING, anon: tuple[int, ...] = RISING, **more: int) -> Facts:
    """A JVM whose own function allocates; `used` is its old generation, `anon` its memory."""
    heap = JavaHeap(7, used, **{"most": 600 * MIB, "young": 9, "before": 1, **more})
    java = Process(7, 1, "java", "/opt/jdk/bin/java", anon=anon)
    libjvm = "/opt/jdk/lib/server/libjvm.so"
    code = (
        *(native("MemAllocator::allocate() const", libjvm), native("Portal.open", "[jit]")),
        native("java.lang.Thread.run", "[jit]"),
    )
    stay = running(7, 8, *code, seconds=0.2)
    return facts(stay)._replace(processes=(java,), java_heaps=(heap,))


def test_a_java_heap_whose_objects_outlive_collections() -> None:
    (text,) = about_growth(jvm())
    assert "its Java heap grows by 4.2 MB a second: objects outlive the collections" in text
    assert "allocated in Portal.open" in text
    assert "old generation: 76 of 600 MiB, after 9 young collections; it is full in 131 s" in text


def test_a_heap_before_its_first_old_collection_is_no_finding() -> None:
    (line,) = find(jvm(before=0))
    assert line.is_busy
    assert "its Java heap grows by 4.2 MB a second: objects outlive the young" in line.text
    assert line.evidence[1].startswith("no old collection yet")
    assert not find(jvm())[0].is_busy


def test_few_looks_at_a_java_heap_must_all_show_more() -> None:
    looks = (40 * MIB, 60 * MIB, 78 * MIB)
    assert about_growth(jvm(used=looks, anon=looks)) != []
    assert about_growth(jvm(used=looks[:2], anon=looks[:2])) == []
    assert about_growth(jvm(used=(*looks[:2], looks[1]), anon=looks)) == []


def test_what_old_collections_leave() -> None:
    """A leak leaves more each time; a cache that drops its oldest entries leaves the same."""
    leak = tuple(n * MIB for n in (300, 500, 340, 500, 380, 500, 420, 500, 460, 560))
    (text,) = about_growth(jvm(used=leak, old=4))
    assert "its Java heap grows: objects outlive the collections; allocated in" in text
    assert "4 old collections left more and more: 340 MiB, then 460 of 600 MiB" in text
    cache = tuple(n * MIB for n in (300, 500, 342, 500, 341, 500, 343, 500, 342, 500))
    assert about_growth(jvm(used=cache, old=4)) == []


@pytest.mark.parametrize(
    "well",
    [
        jvm(used=(40 * MIB,) * 10),
        jvm(anon=(900 * MIB,) * 10),
        jvm(old=1),
        jvm(young=2),
        jvm(used=(*RISING[:9], RISING[2])),
        jvm(used=tuple(40 * MIB + n * 4 * MIB for n in (0, 3, 6, 7, 8, 8, 8, 8, 8, 9))),
    ],
    ids=["young only", "as before", "collected", "few collections", "it falls", "warms up"],
)
def test_java_heaps_that_tell_nothing(well: Facts) -> None:
    assert about_growth(well) == []


def direct(part: int = 9) -> Facts:
    """A JVM whose new pages are a direct buffer's so many times of ten, else those of its heap."""
    libjvm = "/opt/jdk/lib/server/libjvm.so"
    code = (native("Frames.keep", "[jit]"), native("java.lang.Thread.run", "[jit]"))
    buffer = (native("Unsafe_SetMemory0", libjvm), native("java.nio.ByteBuffer.allocate", "[jit]"))
    uses = (
        MemoryUse(7, "faults", 100 * part, (*buffer, *code)),
        MemoryUse(7, "faults", 100 * (10 - part), (native("memset"), *code)),
    )
    return jvm(used=(MIB,) * 10)._replace(memory=uses)


def test_direct_buffers_that_are_kept() -> None:
    (text,) = about_growth(direct())
    assert "grows by 3.8 MB a second outside of the Java heap: direct buffers" in text
    assert "allocated in Frames.keep" in text
    assert about_growth(direct(part=2)) == []


def test_classes_that_are_kept() -> None:
    libjvm = "/opt/jdk/lib/server/libjvm.so"
    parser = (native("metaspace::MetaspaceArena::allocate(ulong)", libjvm),)
    code = (native("Rules.reload", "[jit]"), native("java.lang.Thread.run", "[jit]"))
    measured = jvm(used=(MIB,) * 10)
    uses = (
        MemoryUse(7, "faults", 900, (*parser, *code)),
        MemoryUse(7, "faults", 50, (native("memset"), *code)),
    )
    (text,) = about_growth(measured._replace(memory=uses))
    assert (
        "grows by 4.0 MB a second outside of the Java heap: classes (metaspace), defined in" in text
    )
    assert "Rules.reload" in text
    assert about_growth(measured._replace(memory=uses[1:])) == []


def test_direct_buffers_of_a_heap_that_does_not_grow() -> None:
    assert about_growth(direct()._replace(processes=jvm(anon=(MIB,) * 10).processes)) == []
