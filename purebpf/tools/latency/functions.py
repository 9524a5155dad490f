"""From words of a user to functions and pairs of events that can be traced."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase

from purebpf.errors import AttachError, FormatError, NotSupportedError
from purebpf.files.regular_file import Identity
from purebpf.loader.attach._common.probe_place import (
    find_file,
    find_places,
    in_process,
    open_image,
)
from purebpf.loader.attach.kprobe_multi import traceable
from purebpf.loader.attach.usdt import find_probe
from purebpf.loader.host.process_files import probed_inode, status_of
from purebpf.observe.symbols.function_code import FunctionCode
from purebpf.symbols.demangle import MANGLED, demangle
from purebpf.symbols.elf_image import ElfImage
from purebpf.symbols.elf_names import FUNCTIONS, INDIRECT, functions_named, is_spelt
from purebpf.symbols.function_exits import Exits
from purebpf.symbols.go_table import has_go_code, has_go_table
from purebpf.symbols.short_names import identifier, shorten, spellings
from purebpf.symbols.usdt_arguments import Argument, UnknownArgument, parse_arguments
from purebpf.symbols.x86_64_code import CodeError
from purebpf.tuples import NamedTuple

__all__ = [
    "Kernel",
    "Pair",
    "Probe",
    "User",
    "Wanted",
    "find_functions",
    "find_pair",
    "parse_pair",
    "readable_names",
]

_PLACE = re.compile(r"([^:]+):(?!:)(.+)", re.DOTALL)
_OFFSET = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_WILD = frozenset("*?")
_ONE_COLON = re.compile(r"(?<!:):(?!:)")
"""It would end the path of the file."""
_COLD = ".cold"


class Kernel(NamedTuple):
    """A function of the kernel."""

    name: str


class User(NamedTuple):
    """A function of a program or library.

    Attributes:
        name: its name in results.
        path, identity, offset: its file, and where in it the function starts.
        exits: where its calls end; None: that is not known, or not asked for.
        problem: why its calls can only be counted; "" if they can be timed.
    """

    name: str
    path: str
    offset: int
    identity: Identity | None
    exits: Exits | None = None
    problem: str = ""

    @property
    def file(self) -> tuple[str, Identity | None]:
        """The file that its probes are in."""
        return self.path, self.identity

    @property
    def jumps_away(self) -> bool:
        """True if calls may end in code of another file, which is not followed."""
        return self.exits is not None and bool(self.exits.leaving)


class ProbePlace(NamedTuple):
    """A place of a static probe, with the place of its semaphore; arguments as the note has
    them.
    """

    offset: int
    semaphore: int
    arguments: str


class Probe(NamedTuple):
    """A static probe of a file: its places. `machine` is the file's e_machine."""

    path: str
    identity: Identity
    places: tuple[ProbePlace, ...]
    machine: int

    def by_argument(self, number: int) -> dict[Argument, list[ProbePlace]]:
        """The places by where they have an argument, from 1 on.

        Raises:
            NotSupportedError: some place does not have so many, or in a way that cannot be read.
        """
        places: dict[Argument, list[ProbePlace]] = {}
        for place in self.places:
            description = f"argument {number} of the probe at {self.path}:{place.offset:#x}"
            try:
                arguments = parse_arguments(place.arguments, self.machine)
            except ValueError as error:
                raise NotSupportedError(description, str(error)) from None
            if number > len(arguments):
                raise NotSupportedError(
                    description, f"it has {len(arguments)}: {place.arguments!r}"
                )
            argument = arguments[number - 1]
            if isinstance(argument, UnknownArgument):
                raise NotSupportedError(description, f"{argument.text!r}: {argument.problem}")
            places.setdefault(argument, []).append(place)
        return places


class Pair(NamedTuple):
    """Two events that begin and end a call: tracepoints, "category:name", or static probes."""

    name: str
    begin: str | Probe
    end: str | Probe


class Wanted(NamedTuple):
    """The data wanted of functions beside their calls: their ends, and their results.

    `pids`: only of these processes, and the files as they see them.
    """

    returns: bool = True
    results: bool = False
    pids: tuple[int, ...] = ()


def find_functions(words: Iterable[str], wanted: Wanted) -> list[Kernel | User]:
    """Each function that any of the words means, once.

    Args:
        words: `vfs_read`, `vfs_*`, `FILE:NAME`, `FILE:PATTERN`, `FILE:0x1234`.
        wanted: the data to trace of them.

    Raises:
        AttachError: ENOENT, a word means no file or function.
        FormatError: a file is not an ELF file.
        NotSupportedError: returns of a Go program; a pattern of kernel functions without tracefs.
        OSError: a file cannot be read.
    """
    functions: dict[object, Kernel | User] = {}
    for word in words:
        place = _PLACE.fullmatch(word)
        matches: Iterable[Kernel | User]
        if place is None:
            matches = [Kernel(name) for name in _kernel_names(word)]
        else:
            files = _files_of(wanted.pids, place[1]) or [place[1]]
            matches = [
                function
                for file in files
                for function in _user_functions(word, file, place[2], wanted)
            ]
        for function in matches:
            functions.setdefault(_code_of(function), function)
    return list(functions.values())


def _code_of(function: Kernel | User) -> object:
    """The same for two names or paths of one function."""
    if isinstance(function, Kernel):
        return function
    file: object = function.path
    if function.identity is not None:
        file = probed_inode(function.path, function.identity)
    return file, function.offset


def _files_of(pids: Iterable[int], name: str) -> list[str]:
    """The files that processes mean by a name, each once."""
    files: dict[object, str] = {}
    for path in dict.fromkeys(in_process(name, pid) for pid in pids):
        status = status_of(path)
        inode = status and probed_inode(path, (status.st_dev, status.st_ino, status.st_ctime_ns))
        files.setdefault(inode or path, path)
    return list(files.values())


def _kernel_names(word: str) -> list[str]:
    if not _WILD & set(word):
        return [word]
    names = sorted(name for name in traceable() if fnmatchcase(name, word))
    if not names:
        why = f"no traceable kernel function matches {word!r}"
        raise AttachError("kprobe", errno.ENOENT, f"calls of {word}", why=why)
    return names


def _user_functions(word: str, file: str, named: str, wanted: Wanted) -> list[User]:
    description = f"calls of {word}"
    path = find_file(file, description)
    with open_image(path) as (image, identity):
        if wanted.returns and has_go_table(image):
            raise _is_go(description, f"{path} is a Go program")
        code = FunctionCode(image) if wanted.returns else None
        if "@" in named or _OFFSET.fullmatch(named):
            places = find_places(f"{path}:{named}", description)
            if wanted.returns and has_go_code(image):
                raise _is_go(description, f"{path} has functions of Go")
            function = User(named, path, places.offsets[0], places.identity)
            return [_with_exits(function, code, wanted)]
        offsets = dict(_matching(image, named))
        if not offsets:  # explains why
            find_places(f"{path}:{_ONE_COLON.sub('?', named)}", description)
        if wanted.returns and has_go_code(image) and any("." in name for name in offsets):
            raise _is_go(description, f"{path} has functions of Go")
        by_offset: dict[int, str] = {}
        for name, offset in sorted(offsets.items(), key=lambda item: _preference(item[0], named)):
            by_offset.setdefault(offset, _spell(name))
        functions = [User(name, path, at, identity) for at, name in sorted(by_offset.items())]
        return [_with_exits(function, code, wanted) for function in functions]


def _is_go(description: str, what: str) -> NotSupportedError:
    """Return the error that Go's functions cannot be timed.

    A library that C calls has functions of both: the names of Go's have a dot.
    """
    return NotSupportedError(
        f"timing {description}",
        f"{what}: goroutines move between stacks and threads, so that "
        "their returns cannot be told apart. Count calls with --count",
    )


def _with_exits(function: User, code: FunctionCode | None, wanted: Wanted) -> User:
    """The function with the places where its calls end, or the reason why they are not known."""
    if code is None:
        return function
    try:
        exits = code.exits(function.offset)
    except (CodeError, FormatError) as error:
        return function._replace(problem=str(error))
    if wanted.results and exits.leaving:
        return function._replace(problem="it may end in code of another file, with its result")
    return function._replace(exits=exits)


def _matching(image: ElfImage, wanted: str) -> Iterator[tuple[str, int]]:
    """The functions of a file that a word means, by symbol: without those that only choose one.

    In `f(char*)` the star is a pointer, if there is such a function.
    """
    last = identifier(wanted)
    if not _WILD & set(wanted):
        yield from _fitting(image, wanted, lambda name: is_spelt(name, wanted, last))
        return
    spelt = list(_fitting(image, wanted, lambda name: is_spelt(name, wanted, last)))
    yield from spelt or _fitting(image, wanted, lambda name: _fits(name, wanted))


def readable_names(image: ElfImage) -> list[str]:
    """Return the names of a file's functions, sorted, C++ and Rust names as `latency` has them."""
    return sorted({_spell(name) for name, _ in _fitting(image, "*", lambda _: True)})


def _fits(name: str, pattern: str) -> bool:
    """Return True if a symbol, or a readable name of it, matches a pattern."""
    if fnmatchcase(name, pattern):
        return True
    return name.startswith(MANGLED) and any(
        fnmatchcase(spelling, pattern) for spelling in spellings(demangle(name))
    )


def _fitting(
    image: ElfImage, wanted: str, fits: Callable[[str], bool]
) -> Iterator[tuple[str, int]]:
    """The functions of a file whose names fit, or are the wanted one."""

    def is_whole(name: str) -> bool:
        return name == wanted or (_COLD not in name and fits(name))

    every = functions_named(image, is_whole, FUNCTIONS)
    indirect = functions_named(image, lambda name: name == wanted or fits(name), INDIRECT)
    for name, offset in every.items():
        if indirect.get(name) != offset:
            yield name, int(offset)


def _preference(name: str, wanted: str) -> tuple[bool, int, str]:
    """Return a sort key for the names of one function: the wanted name first, then public names."""
    return name != wanted, len(name) - len(name.lstrip("_")), name


def _spell(name: str) -> str:
    return shorten(demangle(name)) if name.startswith(MANGLED) else name


def parse_pair(text: str) -> tuple[str, str]:
    """`BEGIN,END`, each `category:name` or `FILE:PROVIDER:NAME`; END inherits the prefix of BEGIN
    if it has none.

    Raises:
        ValueError: it is not a pair.
    """
    begin, comma, end = text.partition(",")
    prefix = begin.rpartition(":")[0]
    if not comma or not prefix or not end or "," in end:
        raise ValueError(
            f"{text!r} is not a pair of events: expected CATEGORY:BEGIN,CATEGORY:END or "
            "FILE:PROVIDER:BEGIN,FILE:PROVIDER:END"
        )
    return begin, end if ":" in end else f"{prefix}:{end}"


def find_pair(text: str, pids: Iterable[int] = ()) -> Pair:
    """The events of a pair; `pids`: in the files that these processes have.

    Raises:
        ValueError: it is not a pair; the processes have different files of that name.
        AttachError: ENOENT, a file has no such probe.
        FormatError, OSError: as `find_functions`.
    """
    begin, end = parse_pair(text)
    _, _, ending = end.rpartition(":")
    if (begin.count(":") > 1) != (end.count(":") > 1):
        raise ValueError(f"{text!r}: tracepoints and static probes cannot be one pair")
    name = f"{begin},{ending}" if begin.rpartition(":")[0] == end.rpartition(":")[0] else text
    if begin.count(":") == 1:
        return Pair(name, begin, end)
    return Pair(name.rpartition("/")[2], *(_find_probe(event, pids) for event in (begin, end)))


def _find_probe(text: str, pids: Iterable[int]) -> Probe:
    file, _, probe = text.partition(":")
    if len(files := _files_of(pids, file)) > 1:
        raise ValueError(f"these processes have different files {file}: measure one at a time")
    target = find_probe(f"{files[0] if files else file}:{probe}", f"calls from probe {text}")
    places = (
        ProbePlace(int(probe.offset), int(probe.semaphore), probe.arguments)
        for probe in target.probes
    )
    return Probe(target.path, target.identity, tuple(places), target.machine)
