"""From an address to the code that holds it, also in a code cache that lies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purebpf.runtimes.hotspot.code_cache import Blob, BlobKind, CodeCache
from purebpf.runtimes.hotspot.layout import LayoutError, read_jvm
from purebpf.runtimes.memory import Memory
from tests.unit.runtimes.hotspot.fake_jvm import (
    ARRAY,
    BASE,
    HEAP,
    LOW,
    SEGMENTS,
    VERSIONS,
    FakeJvm,
)

METHOD = BASE + 0x70000


def cache_of(jvm: FakeJvm) -> CodeCache:
    memory = Memory(jvm.read)
    return CodeCache(memory, read_jvm(memory, jvm.describe().symbols))


def found(cache: CodeCache, address: int) -> Blob:
    blob = cache.find(address)
    assert blob is not None
    return blob


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_and_the_last_byte_of_a_method(version: int) -> None:
    jvm = FakeJvm(version)
    begin = jvm.compiled(LOW + 0x2000, METHOD, 77)
    cache = cache_of(jvm)
    blob = found(cache, begin)
    assert blob == found(cache, LOW + 0x27FF)
    assert (blob.kind, blob.compile_id, blob.method) == (BlobKind.COMPILED, 77, METHOD)
    assert (blob.entry, blob.frame_size, blob.complete) == (begin + 8, 32, begin + 16)
    assert (blob.deopt_handlers, blob.orig_pc) == ((begin + 0x300,), 8)
    assert cache.find(begin - 1) is None  # the header is no code
    assert cache.find(LOW + 0x2800) is None  # the next segment is free


def test_a_block_of_many_segments() -> None:
    jvm = FakeJvm()
    begin = jvm.blob(LOW + 0x1000, 0xA000, "StubRoutines (2)", 0)
    assert found(cache_of(jvm), LOW + 0xAFFF).begin == begin


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nmethod", BlobKind.COMPILED),
        ("native nmethod", BlobKind.NATIVE),
        ("Interpreter", BlobKind.INTERPRETER),
        ("vtable chunks", BlobKind.FRAMELESS),
        ("InlineCacheBuffer", BlobKind.FRAMELESS),
        ("StubRoutines (continuation stubs)", BlobKind.CONTINUATION),
        ("SafepointBlob", BlobKind.STUB),
    ],
)
def test_kinds(name: str, kind: BlobKind) -> None:
    jvm = FakeJvm()
    assert found(cache_of(jvm), jvm.blob(LOW + 0x1000, 0x400, name)).kind is kind


def test_a_freed_block_has_no_code() -> None:
    jvm = FakeJvm()
    begin = jvm.blob(LOW + 0x1000, 0x400, "nmethod")
    jvm.put_number(LOW + 0x1000 + jvm.layout.block_used, 1, 0)
    assert cache_of(jvm).find(begin) is None


def test_the_interpreter_and_addresses_outside() -> None:
    cache = cache_of(FakeJvm())
    assert cache.interpreter == (LOW, LOW + 0x1000)
    assert (cache.has(LOW - 1), cache.has(LOW), cache.has(LOW + 0x10000)) == (False, True, False)
    assert cache.find(LOW - 1) is None


@pytest.mark.parametrize("back", [1, 0xFE])
def test_a_segment_map_that_leads_back_for_ever(back: int) -> None:
    jvm = FakeJvm()
    jvm.put_bytes(SEGMENTS, bytes([back]) * 512)
    cache = cache_of(jvm)
    before = jvm.reads
    assert cache.find(LOW + 0xFFFF) is None
    assert jvm.reads - before < 20


@pytest.mark.parametrize("words", [-1, 1 << 30, 0x7FFFFFFF])
def test_a_frame_size_that_no_frame_has(words: int) -> None:
    jvm = FakeJvm()
    begin = jvm.blob(LOW + 0x1000, 0x400, "nmethod", words)
    blob = cache_of(jvm).find(begin)
    assert blob is None or blob.frame_size == 0


def test_code_before_the_jvm_has_any() -> None:
    jvm = FakeJvm().describe()
    jvm.put(BASE + 0x2000, 0)
    memory = Memory(jvm.read)
    described = read_jvm(memory, jvm.symbols)
    with pytest.raises(LayoutError, match="no code cache yet"):
        CodeCache(memory, described)


@pytest.mark.parametrize("count", [0, 17, 0xFFFFFFFF])
def test_a_number_of_heaps_that_no_jvm_has(count: int) -> None:
    jvm = FakeJvm()
    jvm.put_number(ARRAY + jvm.layout.array_length, 4, count)
    with pytest.raises(LayoutError, match=f"{count} code heaps"):
        cache_of(jvm)


def test_a_heap_that_no_jvm_has() -> None:
    jvm = FakeJvm()
    jvm.put_number(HEAP + jvm.layout.heap_shift, 4, 32)
    with pytest.raises(LayoutError, match="code heap"):
        cache_of(jvm)


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=512, max_size=512), st.binary(min_size=512, max_size=512))
def test_any_bytes_are_a_blob_of_possible_size_or_none(segments: bytes, header: bytes) -> None:
    jvm = FakeJvm()
    jvm.put_bytes(SEGMENTS, segments)
    for at in range(0, 0x10000, 512):
        jvm.put_bytes(LOW + at, header)
    cache = cache_of(jvm)
    for address in range(LOW, LOW + 0x10000, 0x333):
        blob = cache.find(address)
        if blob is not None:
            assert blob.begin <= address < blob.end
            assert 0 <= blob.frame_size <= 1 << 20
