"""A whole map, or the records of a ring, as numpy arrays: one object for all instead of one for
each.

numpy is an optional dependency (`pip install purebpf[numpy]`), imported when needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from purebpf.btf.codec.columns import dtype, numpy
from purebpf.errors import SchemaError
from purebpf.loader.maps import map_bulk, map_traits
from purebpf.loader.maps.map_dump_program import copy_rows

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.maps.map_core import Store

__all__ = ["map_arrays", "store_arrays"]


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
    key = _key_dtype(store, btf, key_type)
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


def store_arrays(
    store: Store, btf: Btf | None, type_ids: tuple[int, int], keys: Any, values: Any
) -> None:
    """Store the values of many keys; see `Map.from_numpy`.

    Raises:
        NotSupportedError: no numpy.
        SchemaError: arrays that do not have the types of the map, or not one value for each key.
        KernelError: a refusal; the elements before it are stored.
    """
    np = numpy()
    size = store.info.value_size
    try:
        key_rows = _fit(np, keys, _key_dtype(store, btf, type_ids[0]), "keys")
        value_rows = _fit(np, values, dtype(btf, type_ids[1], size), "values")
        shape = key_rows.shape
        if store.info.type in map_traits.PER_CPU:
            stride = -(-size // 8) * 8
            shape = (*shape, store.shape.value_size // stride)
    except SchemaError as error:
        raise SchemaError(f"map {store.name!r}: {error}") from None
    if key_rows.ndim != 1 or value_rows.shape != shape:
        problem = f"values have shape {value_rows.shape}, not {shape}"
        raise SchemaError(f"map {store.name!r}: {problem}")
    if len(shape) == 2:
        padded = np.zeros((*shape, stride), "u1")
        padded[:, :, :size] = value_rows.view("u1").reshape(*shape, size)
        value_rows = padded
    map_bulk.store_rows(store, _memory(key_rows), _memory(value_rows))


def _key_dtype(store: Store, btf: Btf | None, key_type: int) -> Any:
    key = dtype(btf, key_type, store.info.key_size)
    if key.kind == "V" and key.names is None and store.info.type in map_traits.INDEXED:
        return numpy().dtype("=u4")
    return key


def _fit(np: Any, given: Any, wanted: Any, description: str) -> Any:
    """The array with the map's type, as contiguous memory; numbers must be the same in it."""
    array = np.asarray(given)
    if array.dtype == wanted:
        return np.ascontiguousarray(array)
    if wanted.kind == "V" and wanted.names is None and array.dtype.itemsize == wanted.itemsize:
        return np.ascontiguousarray(array).view(wanted)
    if array.dtype.names != wanted.names:
        raise SchemaError(f"{description} of dtype {array.dtype}, not {wanted}")
    try:
        cast = array.astype(wanted)
        same = bool((cast == array).all())
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise SchemaError(f"{description} of dtype {array.dtype} do not fit into {wanted}")
    return np.ascontiguousarray(cast)


def _memory(rows: Any) -> memoryview:
    return memoryview(rows.view("u1").reshape(-1))
