"""A loaded object: its maps, programs and globals, and the links that `attach()` makes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from purebpf.closable import Closing
from purebpf.loader.attach import attach, attaches_itself
from purebpf.loader.load.globals import Globals
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.similar import Named
from purebpf.spec import ObjectSpec

if TYPE_CHECKING:
    from purebpf.btf.codec.named_types import NamedTypes

__all__ = ["Object"]

_Owned = TypeVar("_Owned")


class Object(Closing):
    """The result of `load`; `close()`, or the end of a `with` block, undoes all of it.

    Closing detaches the links that `attach()` made here and in its programs' name; pinned objects
    stay. An Object that is collected while open warns (ResourceWarning), and closes.

    Attributes:
        spec: its source.
        btf_problem: the kernel's complaint about the object's BTF, or "".
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
        named_maps, named_programs = Named(maps), Named(programs)
        named_maps.problem = f"object {spec.name!r}: unknown map"
        named_programs.problem = f"object {spec.name!r}: unknown program"
        self._maps = MappingProxyType(named_maps)
        self._programs = MappingProxyType(named_programs)
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
        """True after it was closed."""
        return not self._open

    @property
    def maps(self) -> Mapping[str, Map]:
        """The maps by name, with data sections (".rodata"). ValueError if closed."""
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
    def types(self) -> NamedTypes:
        """The types of its C, by name: `obj.types["hdr"].decode(data)`. ValueError if closed."""
        from purebpf.btf.codec.named_types import NamedTypes

        return self._use(NamedTypes(self.spec.btf))

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that `attach()` has made and that are still open. ValueError if closed."""
        return self._use(tuple(link for link in self._links if not link.closed))

    def attach(self) -> tuple[Link, ...]:
        """Attach each program where its section says, and each struct_ops map; the links.

        The object owns them. As in libbpf, a program whose section has no target (`perf_event`,
        `xdp`, a bare `tp`) waits for `obj.programs[name].attach(target)`. When one cannot be
        attached, the ones before it are detached again.

        Raises:
            AttachError, NotSupportedError: as `Program.attach`.
            FormatError: the text of a section is not a target of its kind (`SEC("uprobe/malloc")`).
            ValueError: the object is closed.
        """
        links: list[Link] = []
        with ExitStack() as undo:
            for program in self._use(self._programs).values():
                if attaches_itself(program):
                    links.append(attach(program))
                    undo.callback(links[-1].close)
            for bpf_map in self._maps.values():
                if bpf_map.struct_ops:
                    links.append(bpf_map.attach())
                    undo.callback(links[-1].close)
            undo.pop_all()
        self._links += links
        return tuple(links)

    def close(self) -> None:
        """Detach, unload and free everything that is not pinned. Twice is harmless.

        Raises:
            AttachError, OSError: a link could not be undone. All else is closed then; of several
                such errors, the first.
        """
        self._open = False
        problems: list[Exception] = []
        with self._owned:  # closed last
            for part in (self._globals, *reversed(self._links)):
                try:
                    part.close()
                except Exception as problem:  # noqa: BLE001 - raised when all are closed
                    problems.append(problem)
            self._links.clear()
            if problems:
                raise problems[0]

    def _use(self, owned: _Owned) -> _Owned:
        if not self._open:
            raise ValueError(f"object {self.name!r} is closed, with its maps and programs")
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
