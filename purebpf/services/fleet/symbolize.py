"""Names for frames without a name on their host: from debuginfod servers, stored as further rows.

A place in a build of a file has one number on every host, so that one answer names it for all. The
row with its name has the same number; readers prefer it to the other. Each date has separate
frames, and so separate names: repeated questions are answered by the cache of downloads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from purebpf.errors import FormatError
from purebpf.files.regular_file import opened_regular
from purebpf.loader.host.debug_files import image_of
from purebpf.observe.symbols.elf_files import ElfFunctions, functions_of
from purebpf.services.fleet import duck
from purebpf.services.fleet.catalog import find_files
from purebpf.services.fleet.ids import frame_id
from purebpf.services.fleet.landing import land, new_batch_id
from purebpf.services.fleet.rows import Batch, Frame, Hour
from purebpf.services.fleet.selection import Selection
from purebpf.services.fleet.stores.store import Store
from purebpf.symbols.budget import Budget, OverBudgetError
from purebpf.symbols.demangle import demangle
from purebpf.symbols.frame import FileOffset
from purebpf.symbols.longest_name import shorten

__all__ = ["Files", "Symbolized", "symbolize"]

_DAY_US = 86_400_000_000
_BUILD_ID = re.compile(r"[0-9a-f]{8,128}")


class Files(Protocol):
    """Gets files by build id: `purebpf.observe.symbols.debuginfod.Debuginfod`."""

    def __call__(self, build_id: str) -> str | None:
        """The path of a debug file, or None."""

    def executable(self, build_id: str) -> str | None:
        """The path of the program or library, or None."""


class Symbolized(NamedTuple):
    """The result of a run: places without a name, the newly named ones, and their builds.

    `unknown` are the builds that no server has, or that cannot be read.
    """

    places: int = 0
    named: int = 0
    builds: int = 0
    unknown: int = 0


def symbolize(store: Store, since_us: int, until_us: int, files: Files) -> Symbolized:
    """Name the places of each date of a range, as far as servers have the files.

    Raises:
        StoreError: there is no such store, or a manifest is damaged.
        QueryError: a file cannot be read.
        OSError: there is no room.
    """
    store.require_own()
    by_build: dict[str, dict[str, list[Frame]]] = {}
    for date, frames in _nameless(store, since_us, until_us):
        for frame in frames:
            by_build.setdefault(frame.build_id, {}).setdefault(date, []).append(frame)
    named: dict[str, list[Frame]] = {}
    unknown = 0
    for build_id, dates in by_build.items():
        offsets = {frame.file_offset for frames in dates.values() for frame in frames}
        names = _names(build_id, offsets, files)
        if names is None:
            unknown += 1
            continue
        for date, frames in dates.items():
            for frame in frames:
                if name := names.get(frame.file_offset):
                    own = frame._replace(function=name, file_offset=-1)
                    named.setdefault(date, []).append(own)
    batch = Batch({})
    for date, frames in named.items():
        rows = {frame.frame: frame for frame in frames}
        for frame in frames:  # the function that they are, as hosts with a symbol name it
            number = frame_id(frame.function, frame.module, "", -1)
            rows.setdefault(number, frame._replace(frame=number, build_id=""))
        batch.hours[f"{date}T00"] = Hour([], {}, {}, rows)
    if batch.hours:
        land(store, batch, new_batch_id())
    places = sum(len(frames) for dates in by_build.values() for frames in dates.values())
    return Symbolized(places, sum(map(len, named.values())), len(by_build), unknown)


def _nameless(store: Store, since_us: int, until_us: int) -> Iterator[tuple[str, list[Frame]]]:
    """The places of each date that no row has a name for."""
    from datetime import UTC, datetime

    with duck.connect(store) as connection:
        for day in range(since_us // _DAY_US, -(-until_us // _DAY_US)):
            catalog = find_files(store, Selection(day * _DAY_US, (day + 1) * _DAY_US), rolled=False)
            names = [*catalog.compacted.get("frames", ()), *catalog.landed.get("frames", ())]
            if not names:
                continue
            frames = duck.relation([store.path(name) for name in names])
            columns = ", ".join(Frame._fields)
            answer = duck.rows(
                connection,
                f"select distinct on (frame) {columns} from {frames} "
                "where file_offset >= 0 and build_id <> '' and function = '' and frame not in "
                f"(select frame from {frames} where function <> '') order by frame",
            )
            date = datetime.fromtimestamp(day * _DAY_US / 1e6, UTC).strftime("%Y-%m-%d")
            yield date, [Frame(*row) for row in answer if _BUILD_ID.fullmatch(row[3])]


def _names(build_id: str, offsets: Iterable[int], files: Files) -> dict[int, str] | None:
    """The functions at places of a build; None: no server has it, or the file makes no sense.

    A debug file has the names; only the program itself says where in it an address is.
    """
    path = files.executable(build_id)
    if path is None:
        return None
    budget = Budget()
    try:
        with budget.on_behalf(file=build_id), opened_regular(path) as fd:
            image = image_of(fd, path, budget.spend)
            functions = functions_of(image)
            other = files(build_id) if functions.is_stripped else None
            if other is None:
                return _find(functions, offsets)
            with opened_regular(other) as debug:
                both = functions_of(image, image_of(debug, other, budget.spend))
                return _find(both, offsets)
    except (FormatError, OSError, OverBudgetError):
        return None


def _find(functions: ElfFunctions, offsets: Iterable[int]) -> dict[int, str]:
    """Return names of places. In a stripped file, none behind a symbol without a size: the code may
    be another function's, which is not exported.
    """
    functions_at = ((offset, functions.find(FileOffset(offset))) for offset in offsets)
    return {
        offset: shorten(demangle(at[0]))
        for offset, at in functions_at
        if at and not (at[1] and functions.is_stripped and functions.is_unsized(FileOffset(offset)))
    }
