"""Attaches the programs of bpf_src/latency.bpf.c to functions, in the ways that the kernel has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from purebpf import objects
from purebpf.btf.types.kinds import Kind
from purebpf.closable import SoleOwner
from purebpf.errors import KernelError, NotSupportedError, PurebpfError
from purebpf.files.regular_file import Identity
from purebpf.loader.attach import kprobe, kprobe_multi, tracepoint, tracing, uprobe, uprobe_multi
from purebpf.loader.attach._common.probe_place import ProbePlaces
from purebpf.loader.features.features import have_attach, have_attach_cookie, have_uprobe_multi
from purebpf.loader.load.load import load
from purebpf.loader.perf.probe_threads import ProbeThreads
from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.tools.latency.code_places import MOMENTS, CodePlaces, exit_places
from purebpf.tools.latency.functions import Kernel, Pair, Probe, ProbePlace, User
from purebpf.tuples import NamedTuple

if TYPE_CHECKING:
    from purebpf.loader.load.object import Object
    from purebpf.loader.programs.link import Link
    from purebpf.loader.programs.program import Program
    from purebpf.symbols.usdt_arguments import Argument

__all__ = ["Attacher", "Target"]

Target = Kernel | User | Pair

_EVERY = -1
_MOST_TRAMPOLINES = 16
"""Functions with an object of their own each: loading one takes some milliseconds."""
_MOST_SINGLE = 8
"""Places in programs with a link each: the kernel waits for every CPU when one is taken away."""
_MOST_ARGUMENTS = 12
"""MAX_BPF_FUNC_ARGS."""
_WORD = 8

_Numbered = Sequence[tuple[int, Any]]
"""Functions, each behind the cookie of its programs."""


class _Way(NamedTuple):
    """One way to trace functions of the kernel; `has` says whether it may be tried on so many."""

    name: str
    has: Callable[[int], bool]
    attach: Callable[[_Numbered], None]


class Attacher(SoleOwner):
    """Attaches to functions or pairs; ends before beginnings, so that every call that begins ends.

    Args:
        tracer: the object of bpf_src/latency.bpf.c or latency_stacks.bpf.c, loaded without the
            programs of functions.
        pids: functions of files are traced in these processes; (): in every one.
        returns: True if returns are also traced.
        argument: of static probes that begin calls, the one to read, from 1 on; 0: none.

    Attributes:
        ways: how functions of the kernel are traced: "fentry", "kprobe.session", "kprobe.multi" or
            "kprobe".
        left: times that a process went on without the thread by which the kernel knew it.
    """

    def __init__(
        self, tracer: Object, pids: Sequence[int], *, returns: bool, argument: int = 0
    ) -> None:
        self._tracer = tracer
        self._pids = pids or (_EVERY,)
        self._returns = returns
        self._argument = argument
        self._has_cookies = bool(have_attach_cookie())
        self._objects: list[Object] = []
        self._links: list[Link] = []
        self._missed = 0
        self._threads = ProbeThreads(())
        self.left = 0
        self.ways: list[str] = []

    def attach(self, targets: Sequence[Target]) -> None:
        """Attach to all; the cookie of each is its index. On an error, nothing stays attached.

        Raises:
            KernelError, NotSupportedError: the kernel refused.
        """
        self._threads = ProbeThreads(())
        numbered = list(enumerate(targets))
        with ExitStack() as undo:
            undo.callback(self.close)
            self._attach_kernel([pair for pair in numbered if isinstance(pair[1], Kernel)])
            self._attach_user([pair for pair in numbered if isinstance(pair[1], User)])
            for cookie, pair in numbered:
                if isinstance(pair, Pair):
                    self._attach_event(pair.end, cookie, "end")
                    self._attach_event(pair.begin, cookie, "begin")
            undo.pop_all()

    def follow_threads(self, targets: Sequence[Target]) -> None:
        """Attach again if a process went on without the thread that its probes belonged to.

        Raises:
            KernelError, NotSupportedError: the kernel refused.
        """
        if left := self._threads.left():
            self.left += len(left)
            self.detach()
            self.ways.clear()
            self.attach(targets)

    def detach(self) -> None:
        """Detach; the counts of missed programs are final then."""
        for link in self._links:
            with suppress(KernelError, NotSupportedError, AttributeError):
                self._missed += getattr(link.info.details, "missed", 0)
        while self._links:
            self._links.pop().close()

    def missed(self) -> int:
        """Times the kernel did not run a program, as it was inside of one, or had no place."""
        return self._missed + sum(
            program.info.recursion_misses
            for made in self._objects
            for program in made.programs.values()
        )

    def close(self) -> None:
        """Detach, and unload the programs."""
        self.detach()
        while self._objects:
            self._objects.pop().close()

    def _load(self, *names: str, target: str = "", **settings: Any) -> list[Program]:
        """These programs, with the settings and maps of the first object."""
        spec, program_specs = self._tracer.spec, objects.spec(self._tracer.name).programs
        programs = {
            name: program_specs[name]._replace(autoload=True, attach_target=target)
            for name in names
        }
        shared = {
            name: bpf_map
            for name, bpf_map in self._tracer.maps.items()
            if not name.startswith(".rodata")
        }
        has_cookies = self._has_cookies and not target
        spec = spec._replace(programs=programs).set(has_cookies=has_cookies, **settings)
        self._objects.append(load(spec, maps=shared))
        return [self._objects[-1].programs[name] for name in names]

    def _programs(self, entry: str, back: str) -> list[str]:
        """Return the programs to attach, in this order."""
        return [back, entry] if self._returns else [entry]

    def _attach_each(
        self,
        numbered: _Numbered,
        names: Sequence[str],
        attach: Callable[..., Iterator[Link]],
        **settings: Any,
    ) -> None:
        """One program after the other to every place, or, without cookies, one for each cookie."""
        if self._has_cookies:
            for program in self._load(*names, **settings):
                for cookie, place in numbered:
                    self._links += attach(program, place, cookie)
            return
        for cookie in dict(numbered):
            for program in self._load(*names, function=cookie, **settings):
                for number, place in numbered:
                    if number == cookie:
                        self._links += attach(program, place, 0)

    def _attach_kernel(self, numbered: _Numbered) -> None:
        if not numbered:
            return
        problem: PurebpfError | None = None
        for way in (
            _Way("fentry", _has_trampolines, self._attach_trampolines),
            _Way("kprobe.session", self._may_have_session, self._attach_session),
            _Way("kprobe.multi", lambda _: bool(have_attach("kprobe.multi")), self._attach_fprobes),
            _Way("kprobe", lambda _: True, self._attach_kprobes),
        ):
            if not way.has(len(numbered)):
                continue
            links, made = len(self._links), len(self._objects)
            try:
                way.attach(numbered)
            except PurebpfError as error:  # the last one explains it best
                problem = error
                _close_from(self._links, links)
                _close_from(self._objects, made)
            else:
                self.ways.append(way.name)
                return
        assert problem is not None
        raise problem

    def _attach_trampolines(self, numbered: _Numbered) -> None:
        for cookie, function in numbered:
            names = self._programs("trampoline_entry", "trampoline_exit")
            settings = {"function": cookie, "result_at": _count_arguments(function.name)}
            for program in self._load(*names, target=function.name, **settings):
                self._links.append(tracing.attach(program))

    def _may_have_session(self, _: int) -> bool:
        return self._returns and bool(have_attach("kprobe.session"))

    def _attach_session(self, numbered: _Numbered) -> None:
        cookies = {function.name: cookie for cookie, function in numbered}
        (program,) = self._load("kernel_session")
        self._links.append(kprobe_multi.attach(program, cookies))

    def _attach_fprobes(self, numbered: _Numbered) -> None:
        cookies = {function.name: cookie for cookie, function in numbered}
        for program in self._load(*self._programs("kernel_entries", "kernel_returns")):
            self._links.append(kprobe_multi.attach(program, cookies))

    def _attach_kprobes(self, numbered: _Numbered) -> None:
        def attach(program: Program, function: Kernel, cookie: int) -> Iterator[Link]:
            yield kprobe.attach(program, function.name, cookie=cookie)

        self._attach_each(numbered, self._programs("kernel_entry", "kernel_return"), attach)

    def _attach_user(self, numbered: _Numbered) -> None:
        files: dict[tuple[str, Identity | None], CodePlaces] = {}
        for cookie, function in numbered:
            places = files.setdefault(function.file, CodePlaces())
            places.add(function, cookie, returns=self._returns)
        if not files:
            return
        for name in MOMENTS:
            by_file = {
                file: cookies
                for file, places in files.items()
                if (cookies := getattr(places, name))
            }
            if by_file:
                self._attach_places(name, by_file)
        if self._returns:
            self._attach_exit(files)

    def _attach_places(
        self, moment: str, by_file: dict[tuple[str, Identity | None], dict[int, int]]
    ) -> None:
        """Attach the programs of a moment to places, by file, each with its cookie by offset."""
        few = sum(map(len, by_file.values())) <= _MOST_SINGLE and self._pids != (_EVERY,)
        single, multi = MOMENTS[moment]
        if few or not have_uprobe_multi():
            self._threads = ProbeThreads(self._pids)

            def attach(program: Program, place: ProbePlaces, cookie: int) -> Iterator[Link]:
                description = f"calls of functions of {place.path}"
                for pid in self._pids:
                    yield uprobe.attach_at(program, place, description, pid=pid, cookie=cookie)

            places = [
                (cookie, ProbePlaces(*file, [offset]))
                for file, cookies in by_file.items()
                for offset, cookie in cookies.items()
            ]
            self._attach_each(places, [single], attach)
            return
        (program,) = self._load(multi)
        # In every process: until Linux 6.10 a link for one runs for one of its threads only
        # (commit 46ba0e49b642, "bpf: fix multi-uprobe PID filtering logic").
        for (path, identity), cookies in by_file.items():
            places_of_file = ProbePlaces(path, identity, sorted(cookies))
            description = f"functions of {path}"
            self._links.append(
                uprobe_multi.attach_at(program, places_of_file, cookies, description)
            )

    def _attach_exit(self, files: Iterable[tuple[str, Identity | None]]) -> None:
        """Attach to exit(3), if there is one: it shows which calls a thread left before."""
        (program,) = self._load("user_exit")
        paths = [path for path, _ in files]
        for pid in self._pids:
            for place in exit_places(paths, pid):
                with suppress(KernelError, NotSupportedError, OSError):
                    self._links.append(uprobe.attach_at(program, place, "exit", pid=pid))

    def _attach_event(self, event: str | Probe, cookie: int, moment: str) -> None:
        if isinstance(event, str):

            def attach(program: Program, event: str, cookie: int) -> Iterator[Link]:
                yield tracepoint.attach(program, event, cookie=cookie)

            self._attach_each([(cookie, event)], [f"pair_{moment}"], attach)
            return
        if moment == "begin" and self._argument:
            for argument, places in event.by_argument(self._argument).items():
                self._attach_probe(event, places, cookie, moment, **_settings(argument))
            return
        self._attach_probe(event, event.places, cookie, moment)

    def _attach_probe(
        self,
        probe: Probe,
        places: Sequence[ProbePlace],
        cookie: int,
        moment: str,
        **settings: Any,
    ) -> None:
        self._threads = ProbeThreads(self._pids)

        def attach(program: Program, place: ProbePlace, cookie: int) -> Iterator[Link]:
            for pid in self._pids:
                yield uprobe.attach_at(
                    program,
                    ProbePlaces(probe.path, probe.identity, [place.offset]),
                    f"the probe at {probe.path}:{place.offset:#x}",
                    pid=pid,
                    cookie=cookie,
                    semaphore=place.semaphore,
                )

        numbered = [(cookie, place) for place in places]
        self._attach_each(numbered, [f"probe_{moment}"], attach, **settings)


def _settings(argument: Argument) -> dict[str, Any]:
    """The constants of bpf_src/latency.bpf.c that say where an argument is."""
    return {
        "static_argument": int(argument.where),
        "static_register": argument.register,
        "static_index": argument.index_register,
        "static_shift": argument.scale.bit_length() - 1,
        "static_value": argument.value % (1 << 64),
        "static_size": argument.size,
        "static_signed": argument.signed,
    }


def _close_from(resources: list[Any], first: int) -> None:
    while len(resources) > first:
        resources.pop().close()


def _has_trampolines(functions: int) -> bool:
    return functions <= _MOST_TRAMPOLINES and bool(have_attach("fexit"))


def _count_arguments(name: str) -> int:
    """The words of a function's arguments in a trampoline's context.

    Raises:
        NotSupportedError: the kernel's BTF does not have it, or with arguments of more than a word.
    """
    btf = kernel_btf()
    for type_id in btf.find(name, Kind.FUNC):
        function: Any = btf.type(type_id)
        parameters = [one.type_id for one in btf.type(function.type_id).params]  # type: ignore[union-attr]
        if len(parameters) <= _MOST_ARGUMENTS and all(
            type_id and btf.sizeof(type_id) <= _WORD for type_id in parameters
        ):
            return len(parameters)
    raise NotSupportedError(
        f"a trampoline at {name}", "its arguments are not known, or not words of registers"
    )
