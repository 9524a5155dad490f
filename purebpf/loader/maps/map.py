"""A BPF map as a Python mapping."""

from __future__ import annotations

import errno
from collections.abc import (
    AsyncIterator,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    ValuesView,
)
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast, overload

from purebpf.abi.bpf import BPF_NOEXIST, bpf_map_type
from purebpf.errors import KernelError, NotSupportedError, SchemaError
from purebpf.loader.maps import map_bulk, map_traits
from purebpf.loader.maps.map_base import MapHandle
from purebpf.loader.maps.map_core import Store
from purebpf.syscall.map_element import Element, Errno
from purebpf.typevars import K2, V2, K, Raw, T, V

if TYPE_CHECKING:
    import builtins

    from purebpf.loader.rings.record_types import RecordCodec, RecordType, Short

__all__ = ["Map"]

_MISSING: Any = object()


class Map(MapHandle, MutableMapping[K, V]):
    """A map in the kernel, alive as long as a descriptor, a pin or a program holds it.

    `Map[int, Call]` tells type checkers the types of keys and values.

    Keys and values have the Python types of their BTF (`purebpf.btf.codec.codecs`). Without BTF
    they are bytes, or ints for kinds where the kernel defines that (indexes, ids); bytes of the
    right length always go in. Per-CPU values are tuples with a value for each possible CPU, in the
    order of `purebpf.loader.host.cpus.possible()`. In a map of maps, a value is a `Map`: put one
    in, and close the ones that come out. A stack trace is a tuple of addresses
    (`purebpf.loader.maps.map_stacks`). Descriptors may be numbers or objects with `fileno()`. The
    keys of task storage are process and thread ids, or pidfds with `fileno()`; keys of cgroup and
    inode storage may be paths.

    Programs may change the map at any time: iterating never ends in an endless loop, see
    `purebpf.loader.maps.map_bulk`. `items()` and `values()` read in bulk and `len()` counts, O(n):
    write `dict(map.items())`, not `dict(map)`.

    Every method raises `KernelError` when the kernel refuses for a reason other than a missing
    key, which is a `KeyError`; `SchemaError` for a key or value that its type cannot hold, and
    `ValueError` when the map is closed.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    # One element

    def __getitem__(self, key: K | Raw) -> V:
        store = self._store
        try:
            value: V = store.look_up(key)
        except SchemaError as error:
            raise store.named(error, "key") from None
        if value.__class__ is Errno:
            if value == errno.ENOENT:
                raise KeyError(key)
            raise self._explain_lookup(cast("int", value), key)
        return value

    @overload
    def get(self, key: K | Raw, default: None = None, *, flags: int = 0) -> V | None: ...
    @overload
    def get(self, key: K | Raw, default: T, *, flags: int = 0) -> V | T: ...
    def get(self, key: Any, default: Any = None, *, flags: int = 0) -> Any:
        """The value, or `default`. `flags`: BPF_F_LOCK, to read a value with a spin lock whole."""
        store = self._store
        try:
            value = store.look_up(key, flags)
        except SchemaError as error:
            raise store.named(error, "key") from None
        if value.__class__ is Errno:
            if value == errno.ENOENT:
                return default
            raise self._explain_lookup(value, key)
        return value

    def _explain_lookup(self, error: int, key: Any) -> KernelError:
        return self._store.explain_failure(error, "reading", "LOOKUP_ELEM", repr(key))

    def __contains__(self, key: object) -> bool:
        store = self._store
        element = store.elements.take()
        try:
            if self.type == bpf_map_type.BPF_MAP_TYPE_BLOOM_FILTER:
                element.value[:] = store.encode_value(key)
            else:
                _kept = element.key[:] = store.encode_key(key)  # descriptors too
            result = element.lookup()
        finally:
            store.elements.give(element)
        if result not in (0, -errno.ENOENT):
            raise store.explain_failure(-result, "looking into", "LOOKUP_ELEM", repr(key))
        return result == 0

    def put(self, key: K | Raw, value: V | Raw | list[Any], flags: int = 0) -> None:
        """Store one value. `flags`: BPF_NOEXIST (EEXIST), BPF_EXIST (ENOENT), BPF_F_LOCK."""
        store = self._store
        try:
            result = store.update(key, value, flags)
        except SchemaError as error:
            raise store.misfit(error, key) from None
        if result:
            raise store.explain_failure(-result, "updating", "UPDATE_ELEM", repr(key))

    def __setitem__(self, key: K | Raw, value: V | Raw | list[Any]) -> None:
        self.put(key, value)

    def __delitem__(self, key: K | Raw) -> None:
        if not self.delete([key]):
            raise KeyError(key)

    @overload
    def pop(self, key: K | Raw = ...) -> V: ...
    @overload
    def pop(self, key: K | Raw, default: T) -> V | T: ...
    @overload
    def pop(self, *, default: T) -> V | T: ...
    def pop(self, key: Any = _MISSING, default: Any = _MISSING) -> Any:
        """Take out the value of `key`, or without a key the next one of a queue or stack.

        In one step on queues (Linux 4.20, commit bd513cd08f10) and hashes (5.14,
        commit 3e87f192b405), else a lookup and a deletion.

        Raises:
            KeyError: not there, or empty, and no default.
        """
        if self.type in map_traits.MAP_VALUES and key is not _MISSING:
            return self._take_map(key, default)
        return self._take("taking from", key, default, map_bulk.take)

    @overload
    def peek(self) -> V: ...
    @overload
    def peek(self, default: T) -> V | T: ...
    def peek(self, default: Any = _MISSING) -> Any:
        """The value of a queue or stack that `pop` would take.

        Raises:
            KeyError: it is empty, and there is no default.
            NotSupportedError: the map is not a queue or stack.
        """
        if self.type == bpf_map_type.BPF_MAP_TYPE_BLOOM_FILTER:
            reason = "a bloom filter does not give values back; ask it with: value in map"
            raise NotSupportedError(f"reading map {self.name!r}", reason)
        return self._take("reading", _MISSING, default, Element.lookup)

    def _take(self, verb: str, key: Any, default: Any, how: map_bulk.Read) -> Any:
        store = self._store
        raw = b"" if key is _MISSING else store.encode_key(key)
        if len(raw) != store.info.key_size:
            raise NotSupportedError(f"{verb} map {self.name!r} without a key", str(store.info))
        element = store.elements.take()
        try:
            element.key[:] = raw
            if not (result := how(element)):
                return store.read_value(element.value)
        finally:
            store.elements.give(element)
        if result != -errno.ENOENT:
            raise store.explain_failure(-result, verb, "LOOKUP_AND_DELETE_ELEM")
        if default is _MISSING:
            raise KeyError("empty" if key is _MISSING else key)
        return default

    def _take_map(self, key: Any, default: Any) -> Any:
        """The inner map, opened before it is deleted: the outer map may hold the last reference."""
        if (inner := self.get(key, _MISSING)) is not _MISSING:
            with ExitStack() as undo:
                undo.callback(inner.close)
                if self.delete([key]):
                    undo.pop_all()
                    return inner
        if default is _MISSING:
            raise KeyError(key)
        return default

    def push(self, value: V | Raw, flags: int = 0) -> None:
        """Add to a queue, stack or bloom filter. `flags`: BPF_EXIST drops the oldest when full.

        Raises:
            NotSupportedError: the map has keys.
            KernelError: E2BIG, a queue or stack is full.
        """
        if self.type not in map_traits.KEYLESS:
            reason = f"push() needs a queue, stack or bloom filter; this is a {self._store.info}"
            raise NotSupportedError(f"pushing to map {self.name!r}", reason)
        self.put(b"", value, flags)

    # Many elements

    def __iter__(self) -> Iterator[K]:
        return map_bulk.keys(self._store)

    def __len__(self) -> int:
        """Return the number of elements, by counting them: O(n)."""
        return map_bulk.count(self._store)

    def __bool__(self) -> bool:
        """Return True if there is an element, without counting."""
        return next(map_bulk.raw_keys(self._store), None) is not None

    def items(self) -> ItemsView[K, V]:
        """Return the pairs, read in bulk. Elements that vanish during the read are skipped."""
        return _Items(self, self._store)

    def values(self) -> ValuesView[V]:
        """Return the values, read in bulk. Elements that vanish during the read are skipped."""
        return _Values(self, self._store)

    def to_numpy(self, *, at_rest: bool = False) -> tuple[Any, Any]:
        """Every key and every value as two numpy arrays, row by row: no Python object for each.

        Structs become structured arrays: `values["total_ns"].sum()`, see
        `purebpf.btf.codec.columns`; values without a type become raw bytes (dtype V). The values of
        a per-CPU map have a column for each possible CPU. Needs numpy: `pip install
        purebpf[numpy]`.

        Args:
            at_rest: no program or process writes elements during the read. Then a BPF program
                copies a hash in a third of the time, without locking its buckets (Linux 5.14);
                where that cannot be done, the map is read as ever. Of a map that does change,
                elements may be missing or there twice.

        Raises:
            NotSupportedError: numpy is not installed.
        """
        from purebpf.loader.maps.map_numpy import map_arrays

        types = (self.btf, self.key_type_id, self.value_type_id)
        return map_arrays(self._store, *types, at_rest=at_rest)

    def from_numpy(self, keys: Any, values: Any) -> None:
        """Store the values of many keys, in bulk, from arrays such as `to_numpy` gives.

        Arrays of other number types are converted where that changes no number. The values of a
        per-CPU map have a column for each possible CPU.

        Raises:
            NotSupportedError: numpy is not installed.
            SchemaError: arrays that do not have the map's types, or not a value for each key.
            KernelError: a refusal; the elements before it are stored.
        """
        from purebpf.loader.maps.map_numpy import store_arrays

        store_arrays(self._store, self.btf, (self.key_type_id, self.value_type_id), keys, values)

    def update(  # type: ignore[override]
        self,
        other: Mapping[Any, V | Raw] | Iterable[tuple[K | Raw, V | Raw | list[Any]]] = (),
        /,
        *,
        flags: int = 0,
        noexist: bool = False,
    ) -> None:
        """Store many values, in bulk; `flags` as in `put`. Stops at the first one refused.

        `noexist` refuses keys that are there (BPF_NOEXIST): a KernelError with EEXIST.
        """
        flags = flags | BPF_NOEXIST if noexist else flags
        map_bulk.update(self._store, other, flags)

    def delete(self, keys: Iterable[K | Raw]) -> int:
        """Delete many keys, in bulk: how many were there."""
        return map_bulk.delete(self._store, map(self._store.encode_key, keys))

    def drain(self) -> list[tuple[K, V]]:
        """Take out every element, in bulk: each is either here or still in the map."""
        return map_bulk.drain(self._store)

    def clear(self) -> None:
        """Delete every element, in bulk; the values of an array become zero."""
        map_bulk.clear(self._store)

    # Records

    @overload
    def bind(self, *, key: type[K2], value: type[V2], text: bool | None = None) -> Map[K2, V2]: ...
    @overload
    def bind(
        self, *, key: None = None, value: type[V2], text: bool | None = None
    ) -> Map[K, V2]: ...
    @overload
    def bind(
        self, *, key: type[K2], value: None = None, text: bool | None = None
    ) -> Map[K2, V]: ...
    @overload
    def bind(self, *, key: None = None, value: None = None, text: bool) -> Map[K, V]: ...
    def bind(
        self, *, key: type | None = None, value: type | None = None, text: bool | None = None
    ) -> Map[Any, Any]:
        """Have keys or values be instances of a NamedTuple or dataclass that mirrors the C struct.

        See `purebpf.btf.codec.record_class`; returns the map itself, to write `counts =
        obj.maps[...].bind(...)`. Keys of an LPM trie come back in the form of
        `key=ipaddress.IPv4Network`, `IPv6Network`, or `str` ("10.0.0.0/8"). With `text=False`, char
        arrays are bytes, with all bytes behind a NUL: in keys, values and the records of a ring.

        Raises:
            SchemaError: the class differs from the struct; shows both side by side.
        """
        self._store.bind(key, value, text=text)
        if text is not None and self._reader is not None:
            self._reader.decode_as(self._reader.record_type)
        return self

    @overload
    def read(
        self, timeout: float | None = None, *, type: None = None, short: Short | None = None
    ) -> Iterator[V]: ...
    @overload
    def read(
        self, timeout: float | None = None, *, type: builtins.type[T], short: Short | None = None
    ) -> Iterator[T]: ...
    @overload
    def read(
        self, timeout: float | None = None, *, type: str | RecordCodec, short: Short | None = None
    ) -> Iterator[Any]: ...
    def read(
        self,
        timeout: float | None = None,
        *,
        type: RecordType = None,  # noqa: A002 - as in RingBuffer
        short: Short | None = None,
    ) -> Iterator[Any]:
        """The records that come within `timeout` seconds, as `Reader.read`.

        For a ring buffer or perf event array. `type` is the type of the records, if the object does
        not declare it (`purebpf.loader.rings.record_types`), and holds for later calls, as `short`
        does: "zero" fills a record shorter than its type with zeros, "error" refuses it. The first
        call creates the reader, before which a perf event array takes no records, and the map
        closes it; for other options, use `reader()`.
        """
        return self._own_reader(type, short).read(timeout)

    def __aiter__(self) -> AsyncIterator[V]:
        """The records as they come, for ever, on the running event loop; typed as in `read`."""
        return self._own_reader().__aiter__()


class _Items(ItemsView[Any, Any]):
    def __init__(self, owner: Map[Any, Any], store: Store) -> None:
        super().__init__(owner)
        self._store = store

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return map_bulk.pairs(self._store)


class _Values(ValuesView[Any]):
    def __init__(self, owner: Map[Any, Any], store: Store) -> None:
        super().__init__(owner)
        self._store = store

    def __iter__(self) -> Iterator[Any]:
        return map_bulk.values(self._store)
