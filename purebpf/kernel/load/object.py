"""A loaded object: its maps, programs and globals, and the links that `attach()` makes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from purebpf.abi.bpf import bpf_map_type
from purebpf.btf.types.parse import Btf
from purebpf.closable import Closing
from purebpf.errors import NotSupportedError
from purebpf.kernel.attach import attaches_itself
from purebpf.kernel.host.pins import BPFFS
from purebpf.kernel.load.btf_upload import Upload
from purebpf.kernel.load.globals import Globals
from purebpf.kernel.load.kernel_types import KernelTypes
from purebpf.kernel.load.load_maps import create_maps, fill_program_arrays, with_program_hashes
from purebpf.kernel.load.load_programs import ProgramLoader
from purebpf.kernel.load.upload_btf import upload
from purebpf.kernel.maps.map import Map
from purebpf.kernel.programs.link import Link
from purebpf.kernel.programs.program import Program
from purebpf.relocate import Linker
from purebpf.spec import ObjectSpec
from purebpf.syscall import proc

if TYPE_CHECKING:
    from purebpf.elf.reader import Source
    from purebpf.kernel.load.struct_ops import StructOps, StructOpsMap
    from purebpf.kernel.programs.attach_target import AttachTarget

__all__ = ["Object", "load"]

_KCONFIG = ".kconfig"
_ARENA = bpf_map_type.BPF_MAP_TYPE_ARENA
_STRUCT_OPS = bpf_map_type.BPF_MAP_TYPE_STRUCT_OPS
_CONTEXT_TAG = b"\0arg:ctx\0"
_DELEGATED = "LIBBPF_BPF_TOKEN_PATH"
_USDT = "__bpf_usdt_specs"
_LOG_LEVELS = range(16)
_Owned = TypeVar("_Owned")


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
    """Put an object into the kernel: its maps, then its BTF, then its programs.

    Args:
        source: what `purebpf.read_object` gave, or what it takes: a path, bytes, a file.
        btf: kernel types to match CO-RE relocations against, instead of those of the running
            kernel and its modules; or the path of a file that has them (BTFHub, a vmlinux).
        kconfig: lines of a .config, `"CONFIG_HZ=1000"`, that win over this kernel's own for the
            object's `__kconfig` externs.
        log_level: keep the verifier's log of accepted programs too, in `Program.log`: 1 for the
            path that it followed last, 2 for every instruction, 4 for statistics.
        pin_path: where maps that ask to be pinned by name are, or go.
        token: where a bpf file system is mounted that delegates what the object needs, for a
            process without privileges outside of its user namespace; or a token's descriptor. The
            environment's LIBBPF_BPF_TOKEN_PATH says where when this does not, and /sys/fs/bpf is
            tried when nothing does. "" is for no token.
        maps: maps to use instead of making those of these names; they stay the caller's.
        targets: for programs of these names, the loaded program whose function they replace
            (`SEC("freplace/function")`) or watch (`fentry`, `fexit`).

    Programs in a section `SEC("?...")` are not loaded: `spec.only("name")` asks for them.

    Raises:
        VerifierError: the kernel refused a program; says which line decided, and why.
        KernelError: it refused a map, or had no memory or descriptors left.
        FormatError, LinkError, CoreRelocationError, NotSupportedError, OSError: as `read_object`;
            or a program that refers to what this kernel, or purebpf, does not have.
        SchemaError: a configuration value that its extern's type does not take.
        ValueError: a log level that there is not.
        KeyError: a map or target that is given for nothing in the object.

    Whatever it raises, nothing stays open, and the maps that it pinned are unpinned again.
    """
    if log_level not in _LOG_LEVELS:
        raise ValueError(f"log_level is 0, or a sum of 1, 2, 4 and 8, not {log_level!r}")
    if isinstance(source, ObjectSpec):
        spec = source
    else:
        from purebpf.elf import read_object

        spec = read_object(source)
    if spec.byteorder != sys.byteorder:
        reason = f"its code is {spec.byteorder}-endian and this machine is {sys.byteorder}-endian"
        raise NotSupportedError(f"loading {spec.source}", reason)
    if isinstance(btf, str | os.PathLike):
        from purebpf.kernel.types.btf_file import read_btf_file

        btf = read_btf_file(btf)
    if _KCONFIG in spec.maps:
        from purebpf.kernel.load.kconfig import configured

        spec = configured(spec, kconfig)
    with ExitStack() as stack, ExitStack() as undo:
        with _rights(token), _upload(spec) as uploaded, KernelTypes(spec, btf) as types:
            btf_fd = uploaded.descriptor.fileno() if uploaded.descriptor is not None else 0
            spec = _with_arena(spec, maps or {})
            plan, tables, members = _struct_ops(spec, types) or (spec, {}, {})
            linker = Linker(plan, types.core_targets, types.extern)
            plan = with_program_hashes(plan, linker)
            created = create_maps(
                plan,
                btf_fd,
                os.fsdecode(pin_path),
                stack,
                undo=undo,
                given=maps or {},
                struct_ops=tables,
            )
            fds = {name: each.fileno() for name, each in created.items()}
            places = {**members, **_functions(plan, targets or {})}
            loader = ProgramLoader(plan, uploaded, fds, types, log_level=log_level, targets=places)
            programs = {
                name: stack.enter_context(loader.load(each, linker.link(name)))
                for name, each in plan.programs.items()
                if each.autoload
            }
        _complete(plan, created, programs, tables)
        loaded = Object(spec, created, programs, stack.pop_all(), btf_problem=uploaded.problem)
        undo.pop_all()  # what was pinned stays
        return loaded


@contextmanager
def _rights(token: str | os.PathLike[str] | int | None) -> Iterator[None]:
    """The rights that are delegated to this process, inside the block."""
    if token is None:
        token = os.environ.get(_DELEGATED)
    if token == "" or (token is None and proc.in_first_user_namespace()):  # which has no tokens
        yield
        return
    from purebpf.kernel.load.token import open_token, usual_token
    from purebpf.syscall.token import using

    with ExitStack() as stack:
        if not isinstance(token, int):
            opened = usual_token() if token is None else open_token(token)
            token = -1 if opened is None else stack.enter_context(opened).fileno()
        stack.enter_context(using(token))
        yield


def _with_arena(spec: ObjectSpec, given: Mapping[str, Map]) -> ObjectSpec:
    """`spec`, whose arena says where its variables go on this kernel."""
    if all(each.type != _ARENA for each in spec.maps.values()):
        return spec
    from purebpf.kernel.load.arena import place_variables

    return place_variables(spec, given)


def _struct_ops(spec: ObjectSpec, types: KernelTypes) -> StructOps | None:
    """What the object's struct_ops maps are on this kernel; None when it has none."""
    if all(each.type != _STRUCT_OPS for each in spec.maps.values()):
        return None
    from purebpf.kernel.load.struct_ops import resolve

    return resolve(spec, types)


def _functions(spec: ObjectSpec, targets: Mapping[str, Program]) -> dict[str, AttachTarget]:
    """The functions of other programs that programs of the object are for."""
    if not targets:
        return {}
    if unknown := targets.keys() - spec.programs.keys():
        raise KeyError(f"{spec.source}: no program {', '.join(sorted(unknown))}")
    from purebpf.kernel.programs.attach_target import function_target

    return {name: function_target(spec.programs[name], target) for name, target in targets.items()}


def _complete(
    spec: ObjectSpec,
    maps: Mapping[str, Map],
    programs: Mapping[str, Program],
    tables: Mapping[str, StructOpsMap],
) -> None:
    """Put the programs where the maps want them."""
    fill_program_arrays(spec, maps, programs)
    for name, table in tables.items():
        maps[name].struct_ops = table.value(programs)
    if _USDT in maps:
        _describe_probes_in(maps, programs.values())


def _upload(spec: ObjectSpec) -> Upload:
    """The object's BTF in the kernel; an object without BTF has nothing to upload."""
    if spec.btf is None:
        return Upload(None, functions=False, problem="")
    if _CONTEXT_TAG in spec.btf.data:
        from purebpf.kernel.load.arg_ctx import upload_with_contexts

        return upload_with_contexts(spec, spec.btf)
    return upload(spec.btf)


def _describe_probes_in(maps: Mapping[str, Map], programs: Iterable[Program]) -> None:
    """Show the programs where to say what USDT probes they run at."""
    from purebpf.kernel.attach._common.usdt_specs import UsdtSpecs

    specs = UsdtSpecs.of(maps)
    for program in programs:
        program.usdt = specs


class Object(Closing):
    """What `load` made; `close()`, or the end of a `with` block, undoes all of it.

    Closing detaches the links that `attach()` made here and in its programs' name; what was
    pinned stays. An Object that is collected while open warns (ResourceWarning), and closes.

    Attributes:
        spec: what it was loaded from.
        btf_problem: what the kernel refused of the object's BTF, or "".
    """

    def __init__(
        self,
        spec: ObjectSpec,
        maps: Mapping[str, Map],
        programs: Mapping[str, Program],
        owned: ExitStack,
        *,
        btf_problem: str = "",
    ) -> None:
        self.spec = spec
        self.btf_problem = btf_problem
        self._maps = MappingProxyType(dict(maps))
        self._programs = MappingProxyType(dict(programs))
        self._globals = Globals(spec, self._maps)
        self._links: list[Link] = []
        self._owned = owned
        self._open = True

    @property
    def name(self) -> str:
        """The object's name: its file's, up to the first dot."""
        return self.spec.name

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._open

    @property
    def maps(self) -> Mapping[str, Map]:
        """Its maps by name, those of data sections (".rodata") included. ValueError if closed."""
        return self._use(self._maps)

    @property
    def programs(self) -> Mapping[str, Program]:
        """The programs that were loaded, by name. ValueError if closed."""
        return self._use(self._programs)

    @property
    def globals(self) -> Globals:
        """Its global variables, by name. ValueError if closed."""
        return self._use(self._globals)

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that `attach()` has made and that are still open. ValueError if closed."""
        return self._use(tuple(link for link in self._links if not link.closed))

    def attach(self) -> tuple[Link, ...]:
        """Attach each program where its section says, and each struct_ops map; the links.

        The object owns them. As in libbpf, a program whose section does not say where
        (`perf_event`, `xdp`, a bare `tp`) is left for `obj.programs[name].attach(target)`. When
        one cannot be attached, those before it are detached again.

        Raises:
            AttachError, NotSupportedError: as `Program.attach`.
            FormatError: what a section says is not a target of its kind (`SEC("uprobe/malloc")`).
            ValueError: the object is closed.
        """
        programs = self.programs
        with ExitStack() as stack:
            made = tuple(
                stack.enter_context(program.attach())
                for program in programs.values()
                if attaches_itself(program)
            )
            made += tuple(
                stack.enter_context(each.attach()) for each in self.maps.values() if each.struct_ops
            )
            stack.pop_all()
        self._links += made
        return made

    def close(self) -> None:
        """Detach, unload and free everything that is not pinned. Twice is harmless.

        Raises:
            AttachError, OSError: a link could not be undone. All else is closed then; of several
                such errors, the first.
        """
        self._open = False
        problems: list[Exception] = []
        with self._owned:  # closed last
            for each in (self._globals, *reversed(self._links)):
                try:
                    each.close()
                except Exception as problem:  # noqa: BLE001 - raised when all are closed
                    problems.append(problem)
            self._links.clear()
            if problems:
                raise problems[0]

    def _use(self, owned: _Owned) -> _Owned:
        if not self._open:
            raise ValueError(f"object {self.name!r} is closed: its maps and programs are gone")
        return owned

    def __repr__(self) -> str:
        maps, programs = len(self._maps), len(self._programs)
        state = "" if self._open else " (closed)"
        return f"<Object {self.name}: {programs} programs, {maps} maps{state}>"

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            try:  # the warning may be an error
                warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            finally:
                self.close()
