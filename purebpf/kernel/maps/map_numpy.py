"""A whole map, or what a ring holds, as numpy arrays: one object for all instead of one for each.

numpy is an optional dependency (`pip install purebpf[numpy]`), imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from purebpf.btf.codec.columns import dtype, numpy
from purebpf.kernel.maps import map_bulk, map_traits
from purebpf.kernel.maps.map_dump_program import copy_rows

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.kernel.maps.map_core import Store

__all__ = ["map_arrays"]


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
    if key.kind == "V" and key.names is None and info.type in map_traits.INDEXED:
        key = np.dtype("=u4")
    if at_rest and (rows := copy_rows(store)):
        value = dtype(btf, value_type, info.value_size)
        places = {"offsets": [0, rows.value_offset], "itemsize": rows.stride}
        row = np.dtype({"names": ["key", "value"], "formats": [key, value], **places})
        table = np.frombuffer(rows.memory, dtype=row, count=rows.filled)
        return table["key"], table["value"]
    keys, values = map_bulk.columns(store)
    first = np.frombuffer(keys, dtype=key)
    if info.type not in map_traits.PER_CPU:
        return first, np.frombuffer(values, dtype=dtype(btf, value_type, info.value_size))
    stride = -(-info.value_size // 8) * 8
    cpus = store.shape.value_size // stride
    raw = np.frombuffer(values, dtype="u1").reshape(len(first), cpus, stride)
    one = np.ascontiguousarray(raw[:, :, : info.value_size])
    return first, one.view(dtype(btf, value_type, info.value_size))[:, :, 0]
