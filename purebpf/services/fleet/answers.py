"""Questions about a range, and their answers: functions, stacks, times, hosts.

Every statement adds up by stack first and looks at the frames of the rest, so that its cost depends
on the number of different stacks, not of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from purebpf.services.fleet import duck
from purebpf.services.fleet.catalog import Catalog, find_files, make_views
from purebpf.services.fleet.coverage import Coverage, cover
from purebpf.services.fleet.renamed import SAME
from purebpf.services.fleet.selection import Selection, timestamp
from purebpf.services.fleet.stores.store import Store

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = [
    "NOT_STORED",
    "PLACE",
    "STORED_FRAMES",
    "FramePlace",
    "Function",
    "Functions",
    "Host",
    "Moment",
    "Numbered",
    "Question",
    "Weighted",
    "named",
]


class FramePlace(NamedTuple):
    """A function, or a place in a file without a name."""

    function: str
    module: str
    kind: str
    build_id: str
    file_offset: int

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function or f"{self.module or self.build_id[:12]}+{self.file_offset:#x}"


class Function(NamedTuple):
    """A function, and nanoseconds: in itself, and with its callees."""

    place: FramePlace
    own: int
    total: int


class Functions(NamedTuple):
    """Some functions, the heaviest first; how many there are, and nanoseconds of them all."""

    rows: list[Function]
    number: int
    value: int


class Weighted(NamedTuple):
    """A stack, leaf first, of a service, and its nanoseconds."""

    service: str
    frames: tuple[FramePlace, ...]
    value: int


class Numbered(NamedTuple):
    """A stack, leaf first, of a service, and its nanoseconds; functions are numbers."""

    service: str
    frames: tuple[int | FramePlace, ...]
    value: int


class Moment(NamedTuple):
    """A service at a time, and its nanoseconds from there to the next one."""

    at_us: int
    service: str
    value: int


class Host(NamedTuple):
    """A host: its windows, the last of them, nanoseconds, and how far its clock is off."""

    host: str
    windows: int
    last_us: int
    value: int
    clock_offset_ns: int
    agent_cpu_ns: int


class Question:
    """A selection, and the files that answer it. Close it; its answers are computed when needed.

    Args:
        store: where.
        selection: which samples.
        connection: a separate database.
        by_host: whether hosts or minutes matter, which roll-ups do not have.
        all_files: include files that landed since the last compaction.

    Attributes:
        connection: as given.
        views: the statements that make the views, in any connection.
        left_out: the hours whose landed files are not in the answers.

    Raises:
        StoreError: there is no such store, or a manifest is damaged.
        QueryError: a file cannot be read.
    """

    def __init__(
        self,
        store: Store,
        selection: Selection,
        connection: duckdb.DuckDBPyConnection,
        *,
        by_host: bool = False,
        all_files: bool = True,
    ) -> None:
        self.selection = selection
        self.connection = connection
        self._folder = store.root
        rolled = not by_host and not selection.needs_hosts
        catalog = find_files(store, selection, rolled=rolled)
        self.catalog: Catalog = catalog if all_files else catalog._replace(landed={})
        landed = () if all_files else catalog.landed.get("samples", ())
        self.left_out = tuple(sorted({name.split("/")[1] for name in landed}))
        self.views = make_views(connection, store, self.catalog)

    def table(self, statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
        """The columns and rows of any statement about the views."""
        return duck.table(self.connection, statement, self._folder)

    def coverage(self) -> Coverage:
        """Return the share of hosts and samples that the answer covers."""
        return cover(self.connection, self.selection)

    def total(self) -> int:
        """Nanoseconds."""
        statement = f"select coalesce({duck.total('value')}, 0) from ({self.picked('stack')})"
        return int(self.ask(statement)[0][0])

    def functions(self, most: int) -> Functions:
        """Return the functions with the most self time; `most`: how many.

        Leaves are added up first. The stacks of a function are looked up only for the few displayed
        ones, since that takes a table of every frame of every stack.
        """
        self.keep("picked", self._by("stack"))
        self.keep_stacked("")
        stacked = "select * from stacked"
        self.keep(
            "owns",
            f"select coalesce(same, frame) as frame, {duck.total('value')} as own "
            f"from (select frames[1] as frame, value from ({stacked})) {SAME} group by 1",
        )
        frames = f"select stack, value, unnest(frames) as frame from ({stacked})"
        number = self.ask(
            "select count(distinct coalesce(same, frame)) "
            f"from (select distinct frame from ({frames})) {SAME}"
        )[0][0]
        value, leaves = self.ask(
            f"select coalesce({duck.total('own')}, 0), count(case when own > 0 then 1 end) "
            "from owns"
        )[0]
        if leaves >= most:
            ranked = "select frame, rank() over (order by own desc) as place from owns"
            best = f"(select frame from ({ranked}) where place <= {most})"
        else:
            best = f"(select coalesce(same, frame) as frame from ({frames}) {SAME})"
        rows = self.ask(
            "with sums as (select frame, "
            f"{duck.total('value')} as total from (select distinct stack, value, "
            f"coalesce(same, frame) as frame from ({frames}) {SAME} "
            f"where coalesce(same, frame) in {best}) group by frame), "
            "best as (select frame, coalesce(own, 0) as own, total from sums "
            f"left join owns using (frame) order by 2 desc, 3 desc, 1 limit {most}) "
            "select coalesce(function, '[not stored]'), coalesce(module, ''), "
            "coalesce(kind, ''), coalesce(build_id, ''), coalesce(file_offset, -1), best.own, "
            f"best.total from best left join ({named('best')}) using (frame) "
            "order by 6 desc, 7 desc, 1, 2",
        )
        functions = [Function(FramePlace(*row[:5]), *row[5:]) for row in rows]
        return Functions(functions, number, value)

    def stacks(self) -> list[Weighted]:
        """Every stack of each service."""
        self.keep("picked", self._by("service, stack"))
        self.keep_stacked("service,")
        known = self.ask(
            "with wanted as (select distinct unnest(frames) as frame from stacked) "
            f"select frame, {PLACE} from ({named('wanted')})",
        )
        places = {frame: FramePlace(*place) for frame, *place in known}
        return [
            Weighted(service, tuple(places.get(frame, _LOST) for frame in frames), value)
            for service, frames, value in self.ask("select service, frames, value from stacked")
        ]

    def heaviest(self, most: int, check: Callable[[], object] = bool) -> list[Numbered]:
        """So many stacks, the heaviest ones, and the rest of each service as one.

        Rows come a thousand at a time, and each number is in memory once: a hundred thousand stacks
        take 30 MB. `check` is called for each thousand, and may raise.
        """
        self.keep("picked", self._by("service, stack"))
        self.keep("heavy", f"select * from picked order by value desc, stack limit {most}")
        rest = self.ask(
            f"select service, {duck.total('value')} from (select * from picked "
            "anti join heavy using (service, stack)) group by service"
        )
        self.keep("picked", "select * from heavy")
        self.keep_stacked("service,")
        numbers: dict[int, int] = {}
        stacks = [
            Numbered(service, tuple(numbers.setdefault(frame, frame) for frame in frames), value)
            for service, frames, value in duck.each(
                self.connection, "select service, frames, value from stacked", check
            )
        ]
        return stacks + [Numbered(service, (_LIGHT,), value) for service, value in rest]

    def named(self, stacks: Iterable[Numbered]) -> list[Weighted]:
        """Return stacks with their functions."""
        import pyarrow as pa

        stacks = list(stacks)
        wanted = {frame for stack in stacks for frame in stack.frames if isinstance(frame, int)}
        self.take("wanted", pa.table({"frame": pa.array(sorted(wanted), pa.int64())}))
        places: dict[int | FramePlace, FramePlace] = {
            frame: FramePlace(*place)
            for frame, *place in self.ask(f"select frame, {PLACE} from ({named('wanted')})")
        }
        return [
            Weighted(
                service,
                tuple(
                    places.get(frame, _LOST) if isinstance(frame, int) else frame
                    for frame in frames
                ),
                value,
            )
            for service, frames, value in stacks
        ]

    def timeline(self, step_us: int) -> list[Moment]:
        """Return the use of each service, by steps of time: whole hours, unless it was opened
        `by_host`.
        """
        column = f"(epoch_us({{}}) // {step_us} * {step_us})::bigint as step, service"
        statement = (
            f"select step, service, {duck.total('value')} from "
            f"({self._picked(column.format('ts'), column.format('hour'))}) "
            "group by 1, 2 order by 1, 2"
        )
        return [Moment(*row) for row in self.ask(statement)]

    def hosts(self) -> list[Host]:
        """Every host that sent windows."""
        condition = self.selection.condition()
        answer = self.ask(
            "select host, count(*), max(epoch_us(ts) + duration_ns // 1000)::bigint, "
            "least(coalesce(any_value(used.value), 0), 9223372036854775807)::bigint, "
            "arg_max(clock_offset_ns, abs(clock_offset_ns)), avg(agent_cpu_ns)::bigint "
            "from windows left join (select host, sum(value) as value from samples "
            f"where {condition} group by host) used using (host) "
            f"where kind = {duck.quote(self.selection.kind)} "
            f"and ts >= {timestamp(self.selection.since_us)} "
            f"and ts < {timestamp(self.selection.until_us)} group by host order by 4 desc, host",
        )
        return [Host(*row) for row in answer]

    def number_of(self, column: str) -> int:
        """Return the number of values in a column of the samples."""
        condition = self.selection.condition()
        return int(
            self.ask(f"select count(distinct {column}) from samples where {condition}")[0][0]
        )

    def values_of(self, column: str, most: int) -> list[str]:
        """Return the values of a column of the samples and the roll-up, except for "", ordered
        by time, the most first.
        """
        return [
            row[0]
            for row in self.ask(
                f"select {column} from ({self.picked(column)}) where {column} != '' "
                f"group by 1 order by sum(value) desc, 1 limit {most}"
            )
        ]

    def period(self) -> float:
        """Seconds of one sample, the most of any; 0: this was not sampled."""
        condition = self.selection.condition()
        return float(
            self.ask(f"select coalesce(max(period), 0) / 1e9 from samples where {condition}")[0][0]
        )

    def keep_leaf_sums(self, name: str, cluster: str) -> None:
        """Make a table known to each question of the same database: `x` has the seconds by
        `cluster`, which is SQL about a sample, and by `leaf`, the frame that they were in.

        A cluster is a hash of 64 bits: there are millions of rows, and its text takes most of them.
        """
        duck.run(
            self.connection,
            f"create or replace table memory.{name} as "
            "with leaf_of as (select stack, frames[1] as leaf from unique_stacks), "
            f"leaves as (select hash({cluster}) as cluster, coalesce(leaf, {NOT_STORED}) "
            "as frame, sum(value) / 1e9 as x from samples left join leaf_of using (stack) "
            f"where {self.selection.condition()} group by all) "
            f"select cluster, coalesce(same, frame) as leaf, sum(x) as x from leaves {SAME} "
            "group by all",
        )

    def take(self, name: str, rows: pa.Table) -> None:
        """Make rows known to `ask` as a table."""
        self.connection.register(name, rows)

    def keep(self, name: str, statement: str) -> None:
        """Make the rows of a statement known to `ask` as a table."""
        duck.run(self.connection, f"create or replace temp table {name} as {statement}")

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement about the views, and about taken data."""
        return duck.rows(self.connection, statement)

    def picked(self, columns: str) -> str:
        """SQL for some columns of the samples and the roll-up, and nanoseconds as `value`."""
        return self._picked(columns, columns)

    def _picked(self, of_samples: str, of_rollup: str) -> str:
        rows = "select {}, value from {} where {}"
        parts = [rows.format(of_samples, "samples", self.selection.condition())]
        if self.catalog.rolled:
            conditions = [f"{name} = {duck.quote(value)}" for name, value in self.selection.where]
            parts.append(rows.format(of_rollup, "rollup", " and ".join(conditions) or "true"))
        return " union all ".join(parts)

    def _by(self, columns: str) -> str:
        """SQL for the sums by some columns."""
        return (
            f"select {columns}, {duck.total('value')} as value from ({self.picked(columns)}) "
            f"group by {columns}"
        )

    def keep_stacked(self, columns: str) -> None:
        """Make `stacked`: the rows of `picked` with the frames of their stacks.

        `columns` are more of its columns, with a comma behind each.

        The hash tables of the joins are of `picked` and of its stacks, without lists: those of a
        date take a hundred megabytes, even if a question is about a few of them.
        """
        self.keep(
            "stacked",
            f"select {columns} stack, {STORED_FRAMES} as frames, value "
            "from unique_stacks join picked using (stack)",
        )
        duck.run(
            self.connection,  # what the store lacks keeps its weight
            f"insert into stacked select {columns} stack, [{NOT_STORED}] as frames, value "
            "from picked anti join stacked using (stack)",
        )


_LOST = FramePlace("[not stored]", "", "", "", -1)
_LIGHT = FramePlace("[lighter stacks]", "", "", "", -1)
NOT_STORED = 0
"""The frame of a stack that the store lacks."""
STORED_FRAMES = f"case when array_length(frames) > 0 then frames else [{NOT_STORED}] end"
"""SQL; of a stack that the store lacks, too, after an outer join."""
PLACE = "function, module, kind, build_id, file_offset"


def named(frames: str) -> str:
    """SQL for the rows of frames, once each; `frames` has their numbers as `frame`."""
    return (
        f"select distinct on (frame) * from frames where frame in (select frame from {frames}) "
        # a place that was named later has the same number
        "order by frame, function = ''"
    )
