"""`pack_java_process`: a JVM as bpf_src/include/java_layout.h has it."""

from __future__ import annotations

import struct

from purebpf.runtimes.hotspot.code_cache import BlobKind, CodeCache
from purebpf.runtimes.hotspot.layout import Layout, LayoutError
from purebpf.runtimes.hotspot.methods import symbol_mask

__all__ = ["pack_java_process"]

_PROCESS = struct.Struct("<4Q3Q3Q3Q4Q3QI21HBx")
_HEAPS = 3
_NONE = 0xFFFF
_NAMED = (BlobKind.COMPILED, BlobKind.NATIVE, BlobKind.INTERPRETER, BlobKind.FRAMELESS)
_BLOB_BYTES = 384


def pack_java_process(
    layout: Layout, cache: CodeCache, counter: int, identity: int, generation: int
) -> tuple[bytes, bool]:
    """Return the struct java_process of a JVM, and whether all kinds of its code are known.

    Raises:
        LayoutError: it has more heaps than BPF looks at.
    """
    heaps = cache.heaps
    if len(heaps) > _HEAPS or len({heap.shift for heap in heaps}) != 1:
        raise LayoutError(f"HotSpot {layout.version}: {len(heaps)} code heaps")
    rows = [*heaps, *[None] * (_HEAPS - len(heaps))]
    names = cache.names_of_kinds()
    size = (
        max(
            layout.nmethod_id,
            layout.nmethod_method,
            layout.nmethod_orig_pc,
            layout.nmethod_deopt,
            layout.nmethod_deopt_mh,
            layout.blob_name,
            layout.blob_begin,
        )
        + 8
    )
    packed = _PROCESS.pack(
        identity,
        generation,
        min(heap.low for heap in heaps),
        max(heap.high for heap in heaps),
        *(row.low if row else 0 for row in rows),
        *(row.high if row else 0 for row in rows),
        *(row.segments if row else 0 for row in rows),
        *(names.get(kind, 0) for kind in _NAMED),
        symbol_mask(layout),
        counter,
        names.get(BlobKind.CONTINUATION, 0),
        heaps[0].shift,
        layout.block_size,
        layout.block_used,
        min(size, _BLOB_BYTES),
        layout.blob_name,
        layout.blob_begin,
        layout.blob_complete,
        layout.blob_frame_size,
        layout.nmethod_method,
        layout.nmethod_id,
        layout.nmethod_orig_pc,
        layout.nmethod_deopt,
        layout.nmethod_deopt_mh & _NONE,
        layout.method_constant,
        layout.constant_size,
        layout.constant_code_size,
        layout.thread_saved_pc,
        layout.constant_pool,
        layout.constant_name,
        layout.pool_size,
        layout.pool_class,
        layout.class_name,
        layout.has_offsets,
    )
    return packed, all(kind in names for kind in _NAMED)
