"""The output of the command: sums, then the answer or another format. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from purebpf.results.model.units import bytes_in_unit
from purebpf.tools.mem.growth import Growth
from purebpf.tools.mem.request import MemOptions

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
    use: MemoryUse, options: MemOptions, view: ResultOptions, format_name: str
) -> Iterable[str | bytes]:
    """The pieces of one output, without the title."""
    profile: Profile = getattr(use, options.shown)
    if format_name != "text":
        from purebpf.results.formats import writer

        style = writer.Style(view.delimited)
        return writer.write(profile, format_name, style)
    return _text(use, options, view)


def _text(use: MemoryUse, options: MemOptions, view: ResultOptions) -> Iterator[str]:
    from purebpf.results.formats import answer
    from purebpf.tools.mem.lead import choose_profile, describe_growth

    growths, elapsed_s = _growths(use)
    lines = list(describe_growth(growths, use, elapsed_s))
    yield from lines
    if lines:
        yield "\n"
    profile_name = options.show or choose_profile(growths, use) or options.shown
    profile: Profile = getattr(use, profile_name)
    yield from sums(profile.about, options, profile_name)
    if not profile.total:
        return
    yield f"\n{_HEADS[profile_name]}, by function:\n\n"
    yield from answer.pieces(
        profile, top=view.top, everything=view.all_stacks, whole_names=view.verbose
    )


def _growths(use: MemoryUse) -> tuple[list[Growth], float]:
    """Return the growth of the target's processes, and the time that they were measured."""
    about = use.grown.about
    growths, elapsed_s = about.get("growth", ()), about.get("elapsed_s", 0.0)
    assert isinstance(growths, list | tuple)
    assert isinstance(elapsed_s, int | float)
    return [Growth(**growth) for growth in growths], elapsed_s


def sums(about: dict[str, object], options: MemOptions, profile_name: str = "") -> Iterator[str]:
    """Yield a line for each kind of result, and the option that shows it if this one does not."""
    profile_name = profile_name or options.shown
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
    for name, (size, description) in lines.items():
        option = _option(name, profile_name)
        yield f"{_HEADS[name]:<12}{bytes_in_unit(size):>12}  in {description}{option}\n"
    yield from _cost(about, options)
    if reserved := number["reserved_bytes"]:
        yield f"{'reserved':<12}{bytes_in_unit(reserved):>12}  of addresses without memory\n"
    faults = number["minor_faults"] + number["major_faults"]
    disk = f"  {number['major_faults']:,} from disk"
    yield f"{_HEADS['faults']:<12}{faults:>12,}{disk}{_option('faults', profile_name)}\n"


def _cost(about: dict[str, object], options: MemOptions) -> Iterator[str]:
    """Yield the cost of tracing allocators, where there is a target that it slows down."""
    rate, percent = about.get("malloc_calls_per_s"), about.get("malloc_cost_percent")
    if not isinstance(rate, int) or not isinstance(percent, int | float) or options.command:
        return
    traced_s = about.get("malloc_traced_s")
    cost = f"{rate:,} calls a second; tracing them costs {percent:.1f} % of a CPU"
    yield f"{'malloc':<16}{cost}\n"
    if isinstance(traced_s, int | float):
        end = f"{'':<16}stopped after {traced_s:.1f} s, where the sums above end"
        yield f"{end} (--cost 0: go on)\n"


def _option(name: str, profile_name: str) -> str:
    return "" if name == profile_name else f"  (--show {name})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
