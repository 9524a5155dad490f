"""A map as a kernel object: creating, finding, pinning, freezing, mapping and closing it."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from purebpf.abi.bpf import BPF_F_MMAPABLE, bpf_map_type
from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host import pins
from purebpf.loader.maps import map_pin, map_traits
from purebpf.loader.maps.map_core import Store
from purebpf.loader.maps.map_create import create
from purebpf.loader.maps.map_info import MapInfo, read_info
from purebpf.spec import MapSpec
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.memory import Memory

if TYPE_CHECKING:
    from purebpf.btf.types.parse import Btf
    from purebpf.loader.maps.arena import Arena
    from purebpf.loader.maps.map_plain_codecs import Codec
    from purebpf.loader.programs.link import Link
    from purebpf.loader.rings.readers import Reader
    from purebpf.loader.rings.record_types import RecordType, Short, Wakeable
    from purebpf.loader.rings.user_ring_buffer import UserRingBuffer

__all__ = ["MapHandle"]

_TAKEN_FIRST = 4
"""How often a pin may appear and vanish again while purebpf opens it."""


class MapHandle(Closing):
    """The part of `Map` that is not about elements.

    Attributes:
        name: its name in the object, in full; of a map found elsewhere, the kernel's.
        type: enum bpf_map_type.
        max_entries: elements; bytes of a ring buffer.
        info: the kernel's description of it.
        btf: the types, or None.
        key_type_id: in `btf`, or 0.
        value_type_id: in `btf`, or 0; of a ring, the type of its records.
        inner: the spec of the maps in a map of maps, if available.
        frozen: whether `freeze` was called through this object, or the one that it replaces.
        pinned: where it was pinned last through this object, or None.
        struct_ops: the name that a struct_ops map of an object registers; b"" of another map.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        *,
        name: str = "",
        btf: Btf | None = None,
        key_type_id: int = 0,
        value_type_id: int = 0,
        inner: MapSpec | None = None,
    ) -> None:
        """Own `descriptor`, which is a map's.

        Raises:
            KernelError: EINVAL, it is not a map; EMFILE, how many CPUs there are cannot be read.
                The descriptor is closed then.
        """
        try:
            self.info: MapInfo = read_info(descriptor.fd)
            self._store = Store(descriptor, self.info, btf, key_type_id, value_type_id)
            if self.info.type in map_traits.MAP_VALUES:
                self._store.make_values = partial(self._inner_maps, btf, inner)
        except BaseException:
            descriptor.close()
            raise
        self.name = name or self.info.name
        self._store.name = self.name
        descriptor.owner = f"map {self.name!r}"
        self.type = self.info.type
        self.max_entries = self.info.max_entries
        self.btf = btf
        self.key_type_id = key_type_id
        self.value_type_id = value_type_id
        self.inner = inner
        self._reader: Reader | None = None
        self._readers: WeakSet[Wakeable] = WeakSet()
        self.frozen = False
        self.pinned: pins.Pinned | None = None
        self.struct_ops = b""
        self._arena: Arena | None = None

    @classmethod
    def _inner_maps(cls, btf: Btf | None, inner: MapSpec | None) -> Codec:
        """The codec of a map's values that are maps."""
        from purebpf.loader.maps.map_inner import InnerMaps

        return InnerMaps(cls.from_id, btf, inner)

    @classmethod
    def create(
        cls,
        spec: MapSpec,
        *,
        btf: Btf | None = None,
        btf_fd: int = 0,
        object_name: str = "",
        complete: Callable[[Self], None] | None = None,
    ) -> Self:
        """Create a map, fill in `spec.contents`, and freeze it if `spec.frozen`.

        Args:
            spec: the map.
            btf: the types that `spec` refers to.
            btf_fd: the same in the kernel (BPF_BTF_LOAD); 0: none.
            object_name: begins the kernel's name of a data section.
            complete: does the remaining work on a new map; the map is closed if it raises.

        Raises:
            KernelError: refused, see `map_create.create`.
            LinkError: a map of maps without an inner map.
        """
        map_handle = cls(
            create(spec, btf_fd, object_name),
            name=spec.name,
            btf=btf,
            key_type_id=spec.key_type_id,
            value_type_id=spec.value_type_id,
            inner=spec.inner,
        )
        try:
            if spec.contents and map_handle.type == bpf_map_type.BPF_MAP_TYPE_ARENA:
                end = spec.contents_offset + len(spec.contents)
                map_handle.arena.view[spec.contents_offset : end] = spec.contents
            elif spec.contents:
                map_handle.fill(spec.contents)
            if spec.frozen:
                map_handle.freeze()
            if complete is not None:
                complete(map_handle)
        except BaseException:
            map_handle.close()
            raise
        return map_handle

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, flags: int = 0) -> Self:
        """The map pinned at `path`. `flags`: BPF_F_RDONLY or BPF_F_WRONLY.

        Flags need Linux 4.15 (commit 6e71b04a8224).

        Raises:
            KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is not a map.
        """
        return cls._adopt(pins.open_map(os.fsdecode(path), flags))

    @classmethod
    def from_id(cls, map_id: int, *, flags: int = 0) -> Self:
        """The map that the kernel knows as `map_id`; needs CAP_SYS_ADMIN.

        Raises:
            KernelError: ENOENT, there is none (any more); EPERM.
        """
        return cls._adopt(map_pin.open_id(map_id, flags))

    @classmethod
    def all(cls) -> Iterator[Self]:
        """Every map of this machine, opened; the caller closes each.

        Raises:
            KernelError: EPERM, no CAP_SYS_ADMIN.
        """
        from purebpf.loader.host.ids import walk

        return walk(bpf.map_get_next_id, cls.from_id)

    @classmethod
    def from_fd(cls, fd: int) -> Self:
        """The map behind a descriptor, which is duplicated and stays the caller's.

        Raises:
            KernelError: EINVAL, it is not a map; EBADF.
            OSError: EMFILE, there is no free descriptor.
        """
        pins.require_map(fd)
        borrowed = Descriptor(fd)
        try:
            return cls._adopt(borrowed.duplicate())
        finally:
            borrowed.detach()

    @classmethod
    def shared(
        cls,
        spec: MapSpec,
        path: str | os.PathLike[str],
        *,
        btf: Btf | None = None,
        btf_fd: int = 0,
        object_name: str = "",
        complete: Callable[[Self], None] | None = None,
    ) -> Self:
        """The map pinned at `path` if it is like `spec`, else a new one that is now pinned there.

        A new map is complete before others can find it. Its directory is created as well (mode
        0700), but not the ones above.

        Raises:
            NotSupportedError: the pinned map differs; the text says how.
            KernelError: as `open`, `create` and `pin`; EPERM, the pin or its directory is another
                user's, who could write to it or replace it (`Map.open` opens it all the same);
                EEXIST, the path cannot be opened: a symbolic link without a target.
        """
        path = os.fsdecode(path)
        for last in (*[False] * _TAKEN_FIRST, True):
            try:
                return cls._like(spec, pins.open_own_map(path), path, btf)
            except KernelError as error:
                if error.errno != errno.ENOENT:
                    raise
            map_handle = cls.create(
                spec, btf=btf, btf_fd=btf_fd, object_name=object_name, complete=complete
            )
            try:
                pins.make_directory(os.path.dirname(path))
                map_handle.pin(path)
            except BaseException as error:
                map_handle.close()
                taken = isinstance(error, KernelError) and error.errno == errno.EEXIST
                if last or not taken:
                    raise
                # Another process was faster: open what it pinned.
            else:
                return map_handle
        raise AssertionError("the last round returns or raises")

    def fill(self, contents: bytes) -> None:
        """Give a data section its image.

        Raises:
            KernelError: refused; EPERM, the section is frozen.
        """
        try:
            index, sizes = bytes(map_traits.FD_SIZE), self._store.elements.sizes
            bpf.map_update_elem(self.fileno(), index, contents, known=sizes)
        except KernelError as error:
            raise self._store.explain_failure(error.errno or 0, "filling", "UPDATE_ELEM") from None

    @classmethod
    def _with_types(cls, descriptor: Descriptor, spec: MapSpec, btf: Btf | None) -> Self:
        return cls(
            descriptor,
            name=spec.name,
            btf=btf,
            key_type_id=spec.key_type_id,
            value_type_id=spec.value_type_id,
            inner=spec.inner,
        )

    def retyped(self, spec: MapSpec, btf: Btf) -> Self:
        """The same map with the types of `spec`; it takes over the descriptor."""
        return self._with_types(self._store.descriptor, spec, btf)

    @classmethod
    def _like(cls, spec: MapSpec, descriptor: Descriptor, path: str, btf: Btf | None) -> Self:
        handle = cls._with_types(descriptor, spec, btf)
        if different := map_pin.differences(spec, handle.info):
            handle.close()
            raise NotSupportedError(
                f"sharing the map pinned at {path}",
                f"it has {', '.join(different)}; remove it with: rm {path}",
            )
        return handle

    @classmethod
    def _adopt(cls, descriptor: Descriptor) -> Self:
        """Return a map of another process, with the BTF of its creation, if that is readable."""
        handle = cls(descriptor)
        if not handle.info.btf_id:
            return handle
        from purebpf.loader.types.map_btf import read_btf

        try:
            btf = read_btf(handle.info.btf_id)
        except KernelError:  # no CAP_SYS_ADMIN: the map is of use without types
            return handle
        except BaseException:
            handle.close()
            raise
        key, value = handle.info.key_type_id, handle.info.value_type_id
        return cls(descriptor, btf=btf, key_type_id=key, value_type_id=value)

    @property
    def text(self) -> bool:
        """True if char arrays are text, False for bytes (`Map.bind(text=False)`)."""
        return self._store.text

    def fileno(self) -> int:
        """The descriptor's number. Raises ValueError when closed."""
        elements = self._store.elements
        return elements.fileno() if elements.closed else elements.descriptor.fd

    def pin(self, path: str | os.PathLike[str]) -> None:
        """Give the map a name in a bpf file system; `os.unlink` takes it away.

        Raises:
            KernelError: EEXIST; EPERM, no bpf file system or no capability; ENOENT, no directory.
        """
        self.pinned = pins.pin(self.fileno(), os.fsdecode(path))

    def freeze(self) -> None:
        """Forbid writes from user space (Linux 5.2, commit 87df15de441b); again is harmless.

        Raises:
            KernelError: EBUSY, it is mapped writable, or already frozen.
        """
        if not self.frozen:
            try:
                bpf.map_freeze(self.fileno())
            except KernelError as error:
                raise self._store.explain_failure(error.errno or 0, "freezing", "FREEZE") from None
            self.frozen = True

    def attach(self) -> Link:
        """Register the functions of a struct_ops map, until the link is closed.

        A map of `.struct_ops.link` gives a bpf_link (Linux 6.4, commit 68b04864ca42), which can be
        pinned, and made to go to another such map with `link.update(other)`.

        Raises:
            NotSupportedError: the map is none that an object's functions are in.
            AttachError: EEXIST, something of that name is registered; EINVAL, a member is missing.
        """
        if not self.struct_ops:
            reason = "only struct_ops maps of loaded objects can be attached"
            raise NotSupportedError(f"attaching map {self.name!r} ({self.info})", reason)
        from purebpf.loader.attach.struct_ops import attach

        return attach(self)

    def prepare_update(self) -> None:
        """Write the table of a struct_ops map before a link changes to it; of others, do nothing.

        Raises:
            AttachError: EINVAL, a member that must be set is not.
        """
        if self.struct_ops:
            from purebpf.loader.attach.struct_ops import write_before_link

            write_before_link(self)

    def mmap(self, *, writable: bool = True) -> Memory:
        """The values of an array with BPF_F_MMAPABLE, or an arena, as memory.

        Linux 5.5 (commit fc9702273e2e); arenas, 6.9 (commit 317460317a02).

        Value `i` of an array is at `i` times the value size, rounded up to 8. The caller closes
        the memory, also when the map is closed before.

        Raises:
            NotSupportedError: the map was created without BPF_F_MMAPABLE.
            KernelError: EPERM, writable memory of a map that is frozen or opened read-only.
        """
        info = self.info
        if info.type == bpf_map_type.BPF_MAP_TYPE_ARENA:
            size = info.max_entries * mmap.PAGESIZE
            return Memory(self.fileno(), size, writable=writable, address=info.map_extra)
        if info.flags & BPF_F_MMAPABLE:
            size = -(-info.value_size // 8) * 8 * info.max_entries
            size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        else:
            reason = "it was created without BPF_F_MMAPABLE"
            raise NotSupportedError(f"mapping map {self.name!r} ({info})", reason)
        return Memory(self.fileno(), size, writable=writable)

    @property
    def arena(self) -> Arena:
        """The pages of an arena (Linux 6.9), mapped writable until the map is closed.

        The address is the same for programs and for every process: `map_extra`, or the address of
        the first mapping. A page comes into being when it is touched, here or by a program.

        Raises:
            NotSupportedError: the map is not an arena.
            KernelError: EEXIST, this process has something else at that address; EINVAL, its first
                mapping is another process's.
        """
        if self.type != bpf_map_type.BPF_MAP_TYPE_ARENA:
            raise NotSupportedError(
                f"pages of map {self.name!r} ({self.info})", "the map is not an arena"
            )
        if self._arena is None:
            from purebpf.loader.maps.arena import Arena

            size, at = self.info.max_entries * mmap.PAGESIZE, self.info.map_extra
            self._arena = Arena(self.fileno(), size, address=at, btf=self.btf)
        return self._arena

    def reader(self, *args: Any, **options: Any) -> Reader:
        """A new reader of a ring buffer or perf event array, which the caller closes.

        Takes the arguments of `RingBuffer` or `PerfBuffer` after the map, and raises as they do.
        Type checkers know the options of only one of them from `RingBuffer(map)` or
        `PerfBuffer(map)`.

        Raises:
            NotSupportedError: the map holds no records.
        """
        if self.type == bpf_map_type.BPF_MAP_TYPE_RINGBUF:
            from purebpf.loader.rings.ring_buffer import RingBuffer

            return RingBuffer(self, *args, **options)
        if self.type == bpf_map_type.BPF_MAP_TYPE_PERF_EVENT_ARRAY:
            from purebpf.loader.rings.perf_buffer import PerfBuffer

            return PerfBuffer(self, *args, **options)
        reason = f"a {map_traits.type_name(self.type)} has elements, not records"
        if self.type == bpf_map_type.BPF_MAP_TYPE_USER_RINGBUF:
            reason = "a USER_RINGBUF takes records: see `Map.writer()`"
        raise NotSupportedError(f"records of map {self.name!r}", reason)

    def wakes(self, reader: Wakeable) -> None:
        """Wake this reader when the map is closed."""
        self._readers.add(reader)

    def writer(self, *args: Any) -> UserRingBuffer:
        """A new writer of a user ring buffer, which the caller closes.

        Takes the arguments of `UserRingBuffer` after the map, and raises as it does.

        Raises:
            NotSupportedError: the map is not a user ring buffer.
        """
        if self.type != bpf_map_type.BPF_MAP_TYPE_USER_RINGBUF:
            kind = map_traits.type_name(self.type)
            raise NotSupportedError(
                f"writing to map {self.name!r}", f"a {kind} is not a user ring buffer"
            )
        from purebpf.loader.rings.user_ring_buffer import UserRingBuffer

        return UserRingBuffer(self, *args)

    def _own_reader(self, records: RecordType = None, short: Short | None = None) -> Reader:
        """The reader that is closed with the map."""
        if self._reader is None:
            self._reader = self.reader(records, short=short or "error")
        elif records is not None or short is not None:
            same = self._reader.record_type
            self._reader.decode_as(same if records is None else records, short)
        return self._reader

    def close(self) -> None:
        """Let go of the map; again is harmless. Memory and readers from here on are the caller's.

        Who waits for a reader's records wakes up with ValueError.

        The kernel drops the contents of a map, and empties a PROG_ARRAY, when its last reference
        closes.
        """
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._arena is not None:
            self._arena.close()
            self._arena = None
        self._store.close()
        for reader in tuple(self._readers):
            reader.wake()

    def __repr__(self) -> str:
        state = ", closed" if self._store.elements.closed else ""
        return f"<{type(self).__name__} {self.name!r}: {self.info}{state}>"
