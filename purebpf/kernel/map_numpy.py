"""A whole map, or what a ring holds, as numpy arrays: one object for all instead of one for each.

numpy is an optional dependency (`pip install purebpf[numpy]`), imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from purebpf.btf.columns import dtype_of
from purebpf.errors import NotSupportedError
from purebpf.kernel import map_bulk, map_kinds
from purebpf.kernel.map_copy import copy_rows

if TYPE_CHECKING:
    from purebpf.btf.parse import Btf
    from purebpf.kernel.map_store import Store

__all__ = ["dtype", "map_arrays", "numpy"]


def numpy() -> Any:
    """The module.

    Raises:
        NotSupportedError: it is not installed.
    """
    try:
        import numpy as np
    except ImportError:
        reason = "numpy is not installed: pip install 'purebpf[numpy]'"
        raise NotSupportedError("arrays", reason) from None
    return np


def dtype(btf: Btf | None, type_id: int, size: int) -> Any:
    """The dtype of a type, or of `size` raw bytes where there is none of that size."""
    np = numpy()
    if btf is None or not type_id or btf.sizeof(type_id) != size:
        return np.dtype(f"V{size}")
    return np.dtype(dtype_of(btf, type_id))


def map_arrays(
    store: Store, btf: Btf | None, key_type: int, value_type: int, *, at_rest: bool = False
) -> tuple[Any, Any]:
    """The keys and the values; see `Map.to_numpy`.

    Raises:
        NotSupportedError: no numpy.
        KernelError: the elements of this map cannot be listed.
    """
    np = numpy()
    info = store.info
    key = dtype(btf, key_type, info.key_size)
    if key.kind == "V" and key.names is None and info.type in map_kinds.INDEXED:
        key = np.dtype("=u4")
    if at_rest and (rows := copy_rows(store)):
        value = dtype(btf, value_type, info.value_size)
        places = {"offsets": [0, rows.value_offset], "itemsize": rows.stride}
        row = np.dtype({"names": ["key", "value"], "formats": [key, value], **places})
        table = np.frombuffer(rows.memory, dtype=row, count=rows.filled)
        return table["key"], table["value"]
    keys, values = map_bulk.columns(store)
    first = np.frombuffer(keys, dtype=key)
    if info.type not in map_kinds.PER_CPU:
        return first, np.frombuffer(values, dtype=dtype(btf, value_type, info.value_size))
    stride = -(-info.value_size // 8) * 8
    cpus = store.shape.value_size // stride
    raw = np.frombuffer(values, dtype="u1").reshape(len(first), cpus, stride)
    one = np.ascontiguousarray(raw[:, :, : info.value_size])
    return first, one.view(dtype(btf, value_type, info.value_size))[:, :, 0]
