"""A filter as BPF code: straight on, no loop, no table, one jump for each test.

The program of type PERF_EVENT returns 1 for a sample to keep and 0 for one to drop. Before it
returns it adds one to a counter of its CPU: the first for kept samples, then one for each term,
for the samples that this term was the first to reject, and with `members` one for the samples of
other processes. Nothing else runs on the CPU then
that could add to the same counter (the kernel's bpf_prog_active), so a plain addition will do.

Registers: R6 the prepared sample, or the context where there is none, and, after the decision, the
counter's offset, which is 0 for samples to keep; R2 constants and parts; the other scratch
registers keep loaded fields, so that each is loaded once while there is room. The code is cold when
a sample comes: its cost is the number of cache lines that it fills.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from purebpf.abi.assembler import R0, R1, R2, R6, R10, Assembler, Label, TooLongError
from purebpf.abi.disassembler import listing
from purebpf.abi.helpers import bpf_func_id
from purebpf.abi.instruction import Instruction
from purebpf.errors import NotSupportedError
from purebpf.filter.fields import FIELDS, Field
from purebpf.filter.lowering import (
    All,
    Any,
    CommIn,
    Compare,
    Condition,
    Opposite,
    Term,
    Under,
    Within,
)
from purebpf.filter.registers import Registers
from purebpf.filter.sample_layout import Helper, SampleAccess, Word
from purebpf.tuples import NamedTuple

__all__ = ["Counters", "FilterCode", "compile_terms", "missing", "stride"]

_COMM_SIZE = 16
_KEY_SIZE = 8
"""Of the stack, for a process ID to look up: aligned like the rest."""

_STACK = 512
_CACHE_LINE = 64
_LINEAR = 3
"""Ranges that are tried one by one; of more, half are ruled out by each comparison."""

_NEGATED = {"==": "!=", "!=": "==", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}


class Counters(NamedTuple):
    """The program's counters: a one-entry array; its value has `stride` bytes for each CPU."""

    map_fd: int
    cpus: int
    stride: int


class FilterCode(NamedTuple):
    """A compiled filter.

    Attributes:
        instructions: the program.
        comments: the part of the filter that begins at an instruction, by its index.
        functions: the kernel functions it calls, by their ids.
    """

    instructions: tuple[Instruction, ...]
    comments: Mapping[int, str]
    functions: Mapping[int, str]

    def listing(self) -> str:
        """The program as text, each term above its instructions."""
        return "\n".join(listing(self.instructions, self.comments, self.functions))


def stride(counters: int) -> int:
    """The bytes of so many counters of a CPU: a power of two, and whole cache lines."""
    return max(_CACHE_LINE, 1 << (8 * counters - 1).bit_length())


def missing(terms: Sequence[Term], access: SampleAccess) -> tuple[str, ...]:
    """The fields that a filter asks about and that `access` cannot give, each once."""
    names = (field.name for term in terms for field in _fields(term.condition))
    absent = [name for name in names if not _is_known(FIELDS[name], access.words)]
    if not access.ancestors and any(list(_levels(term.condition)) for term in terms):
        absent.append("cgroup under")
    return tuple(dict.fromkeys(absent))


def compile_terms(
    terms: Sequence[Term], access: SampleAccess, counters: Counters, members_fd: int | None = None
) -> FilterCode:
    """The program of a filter.

    Args:
        terms: conditions that must all be true.
        access: how the program gets at the fields of a sample.
        counters: one for samples that pass, and one for each term.
        members_fd: a hash by the IDs of processes in the first PID namespace: samples of others
            are dropped before any term is tried. They have the last counter then.

    Raises:
        NotSupportedError: a field that cannot be had on this kernel; more code than a jump spans.
    """
    if absent := missing(terms, access):
        reason = "BPF programs cannot read it on this kernel"
        raise NotSupportedError(f"a filter on {', '.join(absent)}", reason)
    return _Compiler(access, counters).compile(terms, members_fd)


def _is_known(field: Field, words: Mapping[str, Word | Helper]) -> bool:
    return not field.word or field.word in words


def _fields(condition: Condition) -> Iterable[Field]:
    if isinstance(condition, All | Any):
        for part in condition.parts:
            yield from _fields(part)
    elif isinstance(condition, Opposite):
        yield from _fields(condition.part)
    elif isinstance(condition, Compare | Within):
        yield condition.field


class _Compiler:
    def __init__(self, access: SampleAccess, counters: Counters) -> None:
        self._access = access
        self._counters = counters
        self._code = Assembler()
        self._functions: dict[int, str] = {}
        self._slots: dict[tuple[int, int], int] = {}
        self._comm = 0
        self._registers = Registers()

    def compile(self, terms: Sequence[Term], members_fd: int | None) -> FilterCode:
        code = self._code
        self._prologue([term.condition for term in terms])
        rejected = [code.label() for _ in terms]
        outside = code.label()
        if members_fd is not None:
            self._look_up_process(members_fd, outside)
        for number, term in enumerate(terms):
            passed = code.label()
            code.comment(f"{number + 1}: {term.text}")
            self._test(term.condition, passed, rejected[number], following=passed)
            code.place(passed)
        self._verdicts(rejected if members_fd is None else [*rejected, outside])
        try:
            instructions = tuple(code.finish())
        except TooLongError:
            reason = f"it has {len(code)} instructions, and a jump spans 32767: use fewer tests"
            raise NotSupportedError("a filter of this size", reason) from None
        return FilterCode(instructions, code.comments, self._functions)

    # Before the first test

    def _prologue(self, conditions: list[Condition]) -> None:
        """Call every helper once, and cast the context if the sample itself is read."""
        code = self._code
        code.comment("the sample, and what helpers know")
        places = [self._where(field) for condition in conditions for field in _fields(condition)]
        if any(isinstance(where, Word) for where in places):
            if self._access.cast:
                self._functions[self._access.cast.type_id] = "bpf_cast_to_kern_ctx"
                code.call_kernel(self._access.cast.type_id)
                code.load(R6, R0, self._access.cast.data_offset, 8)
            else:
                code.copy(R6, R1)
        for where in places:
            if isinstance(where, Helper):
                self._ask(where.number, 0)
        for level in sorted({level for condition in conditions for level in _levels(condition)}):
            self._ask(bpf_func_id.BPF_FUNC_get_current_ancestor_cgroup_id, level)
        if any(map(_asks_comm, conditions)):
            self._ask_comm()

    def _ask(self, helper: int, argument: int) -> None:
        """Call a helper, once, and keep its answer on the stack."""
        if (helper, argument) in self._slots:
            return
        slot = self._slots[helper, argument] = -8 * (len(self._slots) + 1)
        if -slot + _COMM_SIZE + _KEY_SIZE > _STACK:
            raise NotSupportedError("a filter with so many cgroup levels", "the stack is 512 bytes")
        if helper == bpf_func_id.BPF_FUNC_get_current_ancestor_cgroup_id:
            self._code.move(R1, argument)
        self._code.call(helper)
        self._code.store(R10, slot, R0, 8)

    def _ask_comm(self) -> None:
        """Have the thread's name on the stack, with zeros behind it.

        The helper of Linux 6.1 leaves the bytes behind the NUL unchanged (before commit
        f3f213497797, "bpf: ensure all memory is initialized in bpf_get_current_comm").
        """
        code = self._code
        self._comm = -8 * len(self._slots) - _COMM_SIZE
        code.move(R1, 0)
        code.store(R10, self._comm, R1, 8)
        code.store(R10, self._comm + 8, R1, 8)
        code.copy(R1, R10)
        code.alu("+=", R1, self._comm)
        code.move(R2, _COMM_SIZE)
        code.call(bpf_func_id.BPF_FUNC_get_current_comm)

    def _look_up_process(self, members_fd: int, outside: Label) -> None:
        """Go to `outside` unless the process is in the map."""
        code = self._code
        key = -8 * len(self._slots) - _COMM_SIZE - _KEY_SIZE
        code.comment("the process is one of those to sample")
        code.call(bpf_func_id.BPF_FUNC_get_current_pid_tgid)
        code.alu(">>=", R0, 32)
        code.store(R10, key, R0, 4)
        code.map(R1, members_fd)
        code.copy(R2, R10)
        code.alu("+=", R2, key)
        code.call(bpf_func_id.BPF_FUNC_map_lookup_elem)
        code.jump("==", R0, 0, outside)

    def _where(self, field: Field) -> Word | Helper:
        if field.name in _IDENTITY:
            return Helper(bpf_func_id.BPF_FUNC_get_current_uid_gid, _IDENTITY[field.name], 4)
        return self._access.words[field.word]

    # Tests

    def _test(self, condition: Condition, yes: Label, no: Label, *, following: Label) -> None:
        """Go to `yes` or `no`; the one that is `following` comes right after this code."""
        if isinstance(condition, Opposite):
            self._test(condition.part, no, yes, following=following)
        elif isinstance(condition, All | Any):
            self._several(condition, yes, no, following=following)
        elif isinstance(condition, Compare):
            register = self._load(condition.field)
            test = condition.operator, condition.value
            self._compare(register, test, yes, no, following=following)
        elif isinstance(condition, Within):
            self._search(self._load(condition.field), condition.ranges, yes, no)
            self._unless(no, following)
        elif isinstance(condition, Under):
            slot = self._slots[bpf_func_id.BPF_FUNC_get_current_ancestor_cgroup_id, condition.level]
            register = self._registers.spare()
            self._code.load(register, R10, slot, 8)
            self._compare(register, ("==", condition.cgroup), yes, no, following=following)
        else:
            self._names(condition, yes)
            self._unless(no, following)

    def _several(self, condition: All | Any, yes: Label, no: Label, *, following: Label) -> None:
        *first, last = condition.parts
        ended = []  # what the registers hold where one may leave early
        for part in first:
            behind = self._code.label()
            if isinstance(condition, All):
                self._test(part, behind, no, following=behind)
            else:
                self._test(part, yes, behind, following=behind)
            self._code.place(behind)
            ended.append(self._registers.snapshot())
        self._test(last, yes, no, following=following)
        for held in ended:
            self._registers.join(held)

    def _compare(
        self, register: int, test: tuple[str, int], yes: Label, no: Label, *, following: Label
    ) -> None:
        operator, value = test
        code = self._code
        if following == yes and operator in _NEGATED:
            code.jump(_NEGATED[operator], register, value, no)
            return
        code.jump(operator, register, value, yes)
        self._unless(no, following)

    def _search(
        self, register: int, ranges: Sequence[tuple[int, int]], yes: Label, no: Label
    ) -> None:
        """Go to `yes` if it is in a range, to `no` if a comparison rules that out, or go on."""
        code = self._code
        if len(ranges) > _LINEAR:
            half = len(ranges) // 2
            upper = code.label()
            code.jump(">=", register, ranges[half][0], upper)
            self._search(register, ranges[:half], yes, no)
            code.go(no)
            code.place(upper)
            self._search(register, ranges[half:], yes, no)
            return
        for low, high in ranges:
            if low == high:
                code.jump("==", register, low, yes)
            else:
                if low:
                    code.jump("<", register, low, no)
                code.jump("<=", register, high, yes)

    def _names(self, condition: CommIn, yes: Label) -> None:
        code, register = self._code, self._registers.spare()
        for name in condition.names:
            other = code.label()
            words = name.ljust(_COMM_SIZE, b"\0")
            code.load(register, R10, self._comm, 8)
            code.jump("!=", register, int.from_bytes(words[:8], "little"), other)
            code.load(register, R10, self._comm + 8, 8)
            code.jump("==", register, int.from_bytes(words[8:], "little"), yes)
            code.place(other)

    def _unless(self, label: Label, following: Label) -> None:
        if label != following:
            self._code.go(label)

    def _load(self, field: Field) -> int:
        """The register that the field is in, from here on."""
        register, ready = self._registers.of(field)
        if ready:
            return register
        code, where = self._code, self._where(field)
        if isinstance(where, Helper):
            slot = self._slots[where.number, 0]
            code.load(register, R10, slot + where.offset, where.size)
        else:
            code.load(register, R6, where.offset, where.size)
        if field.slices:
            first, *rest = field.slices
            if rest:
                code.copy(R2, register)
            self._slice(register, first.shift, first.width, first.at)
            for piece in rest:
                self._slice(R2, piece.shift, piece.width, piece.at)
                code.alu_register("|=", register, R2)
        return register

    def _slice(self, register: int, shift: int, width: int, at: int) -> None:
        code = self._code
        if shift:
            code.alu(">>=", register, shift)
        if shift + width < 64:
            code.alu("&=", register, (1 << width) - 1)
        if at:
            code.alu("<<=", register, at)

    # After the last test

    def _verdicts(self, rejected: Sequence[Label]) -> None:
        """Emit the return value and the counter to raise, by the place where the tests ended."""
        code, counters = self._code, self._counters
        count, keep, out = code.label(), code.label(), code.label()
        code.comment("keep it")
        code.move(R6, 0)
        code.go(count)
        for number, label in enumerate(rejected, 1):
            code.place(label)
            code.comment(f"drop it: {number}")
            code.move(R6, 8 * number)
            if number < len(rejected):
                code.go(count)
        code.place(count)
        code.comment("count it")
        code.call(bpf_func_id.BPF_FUNC_get_smp_processor_id)
        code.jump(">=", R0, counters.cpus, keep)
        code.alu("<<=", R0, counters.stride.bit_length() - 1)
        code.map_value(R1, counters.map_fd)
        code.alu_register("+=", R1, R0)
        code.alu_register("+=", R1, R6)
        code.load(R2, R1, 0, 8)
        code.alu("+=", R2, 1)
        code.store(R1, 0, R2, 8)
        code.place(keep)
        code.move(R0, 0)
        code.jump("!=", R6, 0, out)
        code.move(R0, 1)
        code.place(out)
        code.exit()


_IDENTITY = {"uid": 0, "gid": 4}
"""Where bpf_get_current_uid_gid() has them, in bytes."""


def _levels(condition: Condition) -> Iterable[int]:
    if isinstance(condition, All | Any):
        for part in condition.parts:
            yield from _levels(part)
    elif isinstance(condition, Opposite):
        yield from _levels(condition.part)
    elif isinstance(condition, Under):
        yield condition.level


def _asks_comm(condition: Condition) -> bool:
    if isinstance(condition, All | Any):
        return any(map(_asks_comm, condition.parts))
    if isinstance(condition, Opposite):
        return _asks_comm(condition.part)
    return isinstance(condition, CommIn)
