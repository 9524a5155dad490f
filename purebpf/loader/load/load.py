"""`load`: an object file into the kernel, in six stages that read in order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.btf.types.parse import Btf
from purebpf.loader.host.pins import BPFFS
from purebpf.loader.load.create_maps import create_maps
from purebpf.loader.load.delegated_rights import delegated_rights
from purebpf.loader.load.kernel_types import KernelTypes
from purebpf.loader.load.link_programs import link_programs
from purebpf.loader.load.load_programs import load_programs
from purebpf.loader.load.object import Object
from purebpf.loader.load.prepare_spec import prepare_spec
from purebpf.loader.load.upload_btf import upload_btf
from purebpf.loader.load.wire_up import wire_up
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.program import Program
from purebpf.spec import ObjectSpec

if TYPE_CHECKING:
    from purebpf.elf.reader import Source

__all__ = ["load"]

_LOG_LEVELS = range(16)


def load(
    source: ObjectSpec | Source,
    btf: Btf | str | os.PathLike[str] | None = None,
    *,
    kconfig: str = "",
    log_level: int = 0,
    pin_path: str | os.PathLike[str] = BPFFS,
    maps: Mapping[str, Map] | None = None,
    token: str | os.PathLike[str] | int | None = None,
    targets: Mapping[str, Program] | None = None,
) -> Object:
    """Put an object into the kernel: its BTF, then its maps, then its programs.

    Args:
        source: a result of `purebpf.read_object`, or an argument for it: a path, bytes, a file.
        btf: kernel types to match CO-RE relocations against, instead of the running kernel's and
            its modules'; or the path of a file that has them (BTFHub, a vmlinux).
        kconfig: lines of a .config, `"CONFIG_HZ=1000"`, that win over this kernel's own for the
            object's `__kconfig` externs.
        log_level: keep the verifier's log of accepted programs too, in `Program.log`: 1 for the
            path that it followed last, 2 for every instruction, 4 for statistics.
        pin_path: where maps that ask to be pinned by name are, or go.
        token: the mount point of a bpf file system that delegates the required rights, for a
            process without privileges outside of its user namespace; or a token's descriptor. By
            default the environment's LIBBPF_BPF_TOKEN_PATH, then /sys/fs/bpf is tried. "" means no
            token.
        maps: maps to use in place of the object's maps with these names; they stay the caller's.
        targets: for programs of these names, the loaded program that has the function they replace
            (`SEC("freplace/function")`) or watch (`fentry`, `fexit`).

    Programs in a section `SEC("?...")` are not loaded: `spec.only("name")` asks for them.

    Raises:
        VerifierError: the kernel refused a program; says which line decided, and why.
        KernelError: it refused a map, or had no memory or descriptors left.
        FormatError, LinkError, CoreRelocationError, NotSupportedError, OSError: as `read_object`;
            or a program that needs a feature that this kernel, or purebpf, lacks.
        SchemaError: a configuration value that its extern's type does not take.
        ValueError: a log level that there is not.
        KeyError: a map or target does not belong to anything in the object.

    Whatever it raises, nothing stays open, and the maps that it pinned are unpinned again.
    """
    if log_level not in _LOG_LEVELS:
        raise ValueError(f"log_level must be 0 or a sum of 1, 2, 4 and 8, not {log_level!r}")
    if not isinstance(source, ObjectSpec):
        from purebpf.elf import read_object

        source = read_object(source)
    if isinstance(btf, str | os.PathLike):
        from purebpf.loader.types.btf_file import read_btf_file

        btf = read_btf_file(btf)
    with ExitStack() as owned, ExitStack() as pins, ExitStack() as temporary:
        temporary.enter_context(delegated_rights(token))
        types = KernelTypes(source, btf)
        temporary.callback(types.close)
        prepared = prepare_spec(
            source, types, kconfig=kconfig, given=maps or {}, replaced=targets or {}
        )
        linked = link_programs(prepared.spec, types)
        upload = upload_btf(prepared.btf)
        if upload.descriptor is not None:
            temporary.callback(upload.descriptor.close)
        created_maps = create_maps(
            prepared, linked, upload, pin_path=os.fsdecode(pin_path), owned=owned, pins=pins
        )
        programs = load_programs(
            prepared,
            linked,
            upload,
            created_maps,
            fd_array=types.fd_array if source.externs else b"",
            owned=owned,
            log_level=log_level,
        )
        wire_up(prepared, created_maps, programs)
        loaded = Object(
            prepared.spec, created_maps, programs, owned.pop_all(), btf_problem=upload.problem
        )
        pins.pop_all()  # what was pinned stays
        return loaded
