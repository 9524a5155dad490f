"""The output of the command: sums, then the answer or another format. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from purebpf.results.model.units import bytes_in_unit
from purebpf.tools.mem.request import Options

if TYPE_CHECKING:
    from purebpf.cli.destination import ResultOptions
    from purebpf.results import Profile
    from purebpf.tools.mem.profiles import MemoryUse

__all__ = ["render", "sums"]

_HEADS = {
    "unfreed": "not freed",
    "allocated": "allocated",
    "grown": "grown",
    "faults": "page faults",
}


def render(
    use: MemoryUse, options: Options, view: ResultOptions, format_name: str
) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    profile: Profile = getattr(use, options.shown)
    if format_name != "text":
        from purebpf.results.formats import registry

        style = registry.Style(view.delimited)
        return registry.write(profile, format_name, style)
    return _text(profile, options, view)


def _text(profile: Profile, options: Options, view: ResultOptions) -> Iterator[str]:
    from purebpf.results.formats import answer

    yield from sums(profile.about, options)
    if not profile.total:
        return
    yield f"\n{_HEADS[options.shown]}, by function:\n\n"
    yield from answer.pieces(profile, everything=view.all_stacks, whole_names=view.verbose)


def sums(about: dict[str, object], options: Options) -> Iterator[str]:
    """Yield a line for each kind of result, and the option that shows it."""
    number = {name: value for name, value in about.items() if isinstance(value, int)}
    lines = {}
    if options.traces_malloc:
        lines["unfreed"] = (
            number["unfreed_bytes"],
            f"{_count(number['unfreed'], 'allocation')}",
        )
        lines["allocated"] = (
            number["allocated_bytes"],
            f"{_count(number['allocations'], 'allocation')}, {number['freed']:,} freed",
        )
    lines["grown"] = number["grown_bytes"], _count(number["growths"], "mmap or brk call")
    for shown, (size, what) in lines.items():
        yield f"{_HEADS[shown]:<12}{bytes_in_unit(size):>12}  in {what}{_option(shown, options)}\n"
    if reserved := number["reserved_bytes"]:
        yield f"{'reserved':<12}{bytes_in_unit(reserved):>12}  of addresses without memory\n"
    faults = number["minor_faults"] + number["major_faults"]
    disk = f"  {number['major_faults']:,} from disk"
    yield f"{_HEADS['faults']:<12}{faults:>12,}{disk}{_option('faults', options)}\n"


def _option(shown: str, options: Options) -> str:
    return "" if shown == options.shown else f"  (--show {shown})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
