"""Advice against the commonest refusals of the verifier, by the line that decided.

Only advice depends on the text of a log: an unknown line is displayed all the same. The texts come
from kernel/bpf/verifier.c, Linux 4.19 to 7.2; several have changed in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from purebpf.tuples import NamedTuple

__all__ = ["Refusal", "advise"]


class Refusal(NamedTuple):
    """A refused program.

    Attributes:
        line: the log line that decided.
        source: the C line behind it, `file:line: text`, or "".
        log: the whole log.
        section: the program's, in the object.
        license: the object's.
        name: the program's.
        source_of: the C line of any instruction of the program, as `source`.
    """

    line: str
    source: str
    log: str
    section: str
    license: str
    source_of: Callable[[int], str]
    name: str = ""

    @property
    def place(self) -> str:
        """`line 20`, or `this` when the C line is not known."""
        match = re.match(r"[^:\s]+:(\d+): ", self.source)
        return f"line {match[1]}" if match else "this"

    @property
    def kind(self) -> str:
        """The kind of program in the section's name: `SEC("xdp")`."""
        return f'SEC("{self.section.lstrip("?")}")'

    @property
    def text(self) -> str:
        """The C line's text without comments."""
        text = re.sub(r"^[^:\s]+:\d+: ", "", self.source)
        return re.sub(r"//.*|/\*.*?\*/", "", text)

    def last(self, pattern: str) -> re.Match[str] | None:
        """Return the last line of the log that matches `pattern`."""
        matches = [*re.finditer(pattern, self.log)]
        return matches[-1] if matches else None

    @property
    def called(self) -> str:
        """The helper or kernel function called last: `bpf_map_lookup_elem()`."""
        match = self.last(r"\) call (\w+)#-?\d+")
        return f"{match[1]}()" if match else "the function"


def advise(refusal: Refusal) -> str:
    """Return advice as an imperative sentence; "" for an unknown line."""
    for pattern, advice in _ADVICE:
        if match := pattern.search(refusal.line):
            return advice if isinstance(advice, str) else advice(match, refusal)
    return ""


def _check_for_null(_: re.Match[str], refusal: Refusal) -> str:
    names = set(re.findall(r"\b([A-Za-z_]\w*)(?=\s*(?:->|\[))", refusal.text))
    names |= set(re.findall(r"(?:^|[=(,\s])\*+\s*([A-Za-z_]\w*)\b", refusal.text))
    pointer = f"`{names.pop()}`" if len(names) == 1 else "the pointer"
    maker = refusal.last(r"\) call (\w+)#-?\d+\s+; R0\w*=\w+_or_null")
    if maker is None and refusal.line.startswith("R0 ") and "; R0" not in refusal.log:
        maker = refusal.last(r"\) call (\w+)#-?\d+")  # Linux 5.10 says nothing of registers
    why = f": {maker[1]}() may return NULL" if maker else ""
    return f"check {pointer} for NULL before {refusal.place}{why}"


def _check_argument_for_null(match: re.Match[str], refusal: Refusal) -> str:
    return (
        f"check argument {match[1]} of {refusal.called} for NULL before {refusal.place}: "
        f"it may be NULL"
    )


def _pass_a_pointer(match: re.Match[str], refusal: Refusal) -> str:
    return (
        f"argument {match[1]} of {refusal.called} must be one of: {match[2].strip(', ')} "
        "(fp is the stack): pass the address of a local variable or of a map's value"
    )


def _bound_length(match: re.Match[str], refusal: Refusal) -> str:
    return (
        f"bound argument {match[1]} of {refusal.called} before {refusal.place}: "
        "make it unsigned, and return if it exceeds the size of the buffer"
    )


def _bound_index(_: re.Match[str], refusal: Refusal) -> str:
    return (
        f"bound the index before {refusal.place}: make it unsigned, and return if it is not less "
        "than the number of elements"
    )


_PACKET = "compare with data_end first: return if (void *)(header + 1) > data_end"


def _stay_inside_value(_: re.Match[str], refusal: Refusal) -> str:
    if refusal.last(r"invalid access to packet.*\nR\d (?:min|max) value is outside"):
        return _PACKET  # Linux 7 says it of both
    numbers = refusal.last(r"invalid access to map value, value_size=(\d+) off=(-?\d+) size=(\d+)")
    if numbers is None:
        return _bound_index(_, refusal)
    size, at, count = numbers.groups()
    if "max value" in refusal.line:
        return f"{_bound_index(_, refusal)}; the value has {size} bytes"
    return f"the map's value has {size} bytes, and {refusal.place} takes {count} at offset {at}"


_STACK_SIZE = 512
_STACK = (
    "a program has 512 bytes of stack, together with the functions it is called from: keep large "
    "variables in a PERCPU_ARRAY of one element"
)


def _stay_inside_stack(match: re.Match[str], refusal: Refusal) -> str:
    start, count = int(match[1]), int(match[2])
    if start < -_STACK_SIZE:
        return _STACK
    if start + count > 0:
        place = refusal.place
        return f"{place} takes {count} bytes, but the variable there has {-start} at most"
    return _initialise(match, refusal)


def _initialise(_: re.Match[str], refusal: Refusal) -> str:
    return (
        f"initialise all of the variable before {refusal.place}, its padding too: "
        "__builtin_memset(&variable, 0, sizeof(variable))"
    )


def _set_register(match: re.Match[str], _: Refusal) -> str:
    if match[1] in "2345":
        return (
            "set the variable on every path; a program has one argument, its context "
            "(BPF_PROG and BPF_KPROBE unpack it)"
        )
    return "set the variable on every path, and return a value at the end"


_RELEASERS = {
    "bpf_ringbuf_reserve": "bpf_ringbuf_submit() or bpf_ringbuf_discard()",
    "bpf_ringbuf_reserve_dynptr": "bpf_ringbuf_submit_dynptr() or bpf_ringbuf_discard_dynptr()",
    "bpf_sk_lookup_tcp": "bpf_sk_release()",
    "bpf_sk_lookup_udp": "bpf_sk_release()",
    "bpf_skc_lookup_tcp": "bpf_sk_release()",
    "bpf_task_acquire": "bpf_task_release()",
    "bpf_task_from_pid": "bpf_task_release()",
    "bpf_cgroup_acquire": "bpf_cgroup_release()",
    "bpf_cgroup_from_id": "bpf_cgroup_release()",
    "bpf_obj_new_impl": "bpf_obj_drop()",
}


def _release(_: re.Match[str], refusal: Refusal) -> str:
    leak = refusal.last(r"Unreleased reference id=\d+ alloc_insn=(\d+)")
    if leak is None:
        return "release what the program acquired on every path to its end"
    maker = re.search(rf"^{leak[1]}: \(85\) call (\w+)#", refusal.log, re.MULTILINE)
    releaser = _RELEASERS.get(maker[1], "") if maker else ""
    how = f"call {releaser}" if releaser else "release it"
    place = refusal.source_of(int(leak[1])) or f"instruction {leak[1]}"
    return f"{how} on every path to the end for what is acquired at {place}"


def _license(_: re.Match[str], refusal: Refusal) -> str:
    function = refusal.last(r"\) call (\w+)#-?\d+") if "function" in refusal.line else None
    description = f"{function[1]}()" if function else "this"
    has = f"is {refusal.license!r}" if refusal.license else "is missing"
    return (
        f"{description} needs a license compatible with the GPL; the object's {has}: "
        'write char LICENSE[] SEC("license") = "GPL";'
    )


def _read_memory(_: re.Match[str], refusal: Refusal) -> str:
    released = refusal.last(r"\) call (bpf_ringbuf_(?:submit|discard)|bpf_\w+_release)#")
    after = f", and not after {released[1]}()" if released else ""
    return (
        "the verifier takes it for a number: read kernel memory with BPF_CORE_READ() or "
        f"bpf_probe_read_kernel(), memory of a process with bpf_probe_read_user(){after}"
    )


def _other_helper(match: re.Match[str], refusal: Refusal) -> str:
    return (
        f"programs in {refusal.kind} cannot call {match[1]}() on this kernel; "
        "purebpf.features.have_helper() says which programs can"
    )


def _context_field(match: re.Match[str], refusal: Refusal) -> str:
    return (
        f"programs in {refusal.kind} cannot access {match[2]} bytes at offset {match[1]} "
        "of their context: take a field that the kernel offers them, with its own size"
    )


_MAPS = {
    "bpf_perf_event_output": "PERF_EVENT_ARRAY",
    "bpf_perf_event_read": "PERF_EVENT_ARRAY",
    "bpf_perf_event_read_value": "PERF_EVENT_ARRAY",
    "bpf_skb_output": "PERF_EVENT_ARRAY",
    "bpf_xdp_output": "PERF_EVENT_ARRAY",
    "bpf_get_stackid": "STACK_TRACE",
    "bpf_tail_call": "PROG_ARRAY",
    "bpf_ringbuf_output": "RINGBUF",
    "bpf_ringbuf_reserve": "RINGBUF",
    "bpf_redirect_map": "DEVMAP, DEVMAP_HASH, CPUMAP or XSKMAP",
    "bpf_current_task_under_cgroup": "CGROUP_ARRAY",
    "bpf_map_push_elem": "QUEUE, STACK or BLOOM_FILTER",
    "bpf_map_pop_elem": "QUEUE or STACK",
}


def _other_map(match: re.Match[str], _: Refusal) -> str:
    from purebpf.abi.bpf import bpf_map_type
    from purebpf.abi.names import member_name

    kind = member_name(bpf_map_type, int(match[1]), prefix="BPF_MAP_TYPE_")
    needed = _MAPS.get(match[2])
    takes = f": it takes a {needed}" if needed else ""
    return f"{match[2]}() does not take a map of type {kind}{takes}"


def _return(match: re.Match[str], refusal: Refusal) -> str:
    return f"a program in {refusal.kind} must return a value in {match[1]}"


_ENDS = (("_lock", "_unlock"), ("_irq_save", "_irq_restore"), ("_disable", "_enable"))


def _unlock(match: re.Match[str], _: Refusal) -> str:
    ends = match[1]
    for begin, end in _ENDS:
        ends = ends.replace(begin, end)
    return f"call {ends}() first, on every path"


def _bind_to_device(_: re.Match[str], refusal: Refusal) -> str:
    return (
        "say which interface's driver it may ask: "
        f"spec.configure({refusal.name!r}, ifindex=socket.if_nametoindex(...))"
    )


def _sleepable(_: re.Match[str], refusal: Refusal) -> str:
    prefix, slash, target = refusal.section.lstrip("?").partition("/")
    return f'{refusal.called} may sleep: put the program into SEC("{prefix}.s{slash}{target}")'


_ADVICE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str], Refusal], str]], ...] = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        (r"invalid mem access '\w+_or_null'", _check_for_null),
        (r"pointer arithmetic on \w+_or_null prohibited", _check_for_null),
        (r"R(\d) type=\w+_or_null expected=", _check_argument_for_null),
        (r"Possibly NULL pointer passed to (?:helper|trusted) arg(\d)", _check_argument_for_null),
        (r"R(\d) type=\S+ expected=(.*)", _pass_a_pointer),
        (r"invalid mem access '(?:scalar|inv)'", _read_memory),
        (
            r"infinite loop detected|back-edge from insn",
            (
                "give the loop a bound that the verifier sees: "
                "for (i = 0; i < CONSTANT; i++), or bpf_for() or bpf_loop()"
            ),
        ),
        (
            r"program is too large\. Processed|jumps is too complex",
            (
                "the verifier follows each turn of each loop: take fewer turns, or bpf_loop() or "
                "bpf_for(), which it follows once; or move code to global functions, which it "
                "verifies once, or behind tail calls"
            ),
        ),
        (r"R(\d) (?:unbounded memory access|min value is negative)", _bound_length),
        (r"with unbounded min value is not allowed", _bound_index),
        (r"makes \w+ pointer be out of bounds", _bound_index),
        (r"(?:unbounded|invalid) variable-offset \w+ (?:\w+ )?stack", _bound_index),
        (r"R\d (?:min|max) value is outside of the", _stay_inside_value),
        (
            r"is outside of the packet|invalid access to packet",
            _PACKET,
        ),
        (
            (
                r"invalid (?:read|write|indirect access) (?:from|to) stack R\d+ "
                r"off[= ](-?\d+) size[= ](\d+)"
            ),
            _stay_inside_stack,
        ),
        (r"invalid indirect read from stack|invalid read from stack", _initialise),
        (r"R(\d+) !read_ok", _set_register),
        (r"Unreleased reference|would lead to reference leak", _release),
        (r"from (?:non-GPL compatible|proprietary) program", _license),
        (r"(?:cannot use helper|unknown func) (bpf_\w+)#", _other_helper),
        (r"invalid bpf_context access off=(\d+) size=(\d+)", _context_field),
        (
            r"variable ctx access|dereference of modified ctx",
            "access the context at constant offsets: read its fields into variables first",
        ),
        (r"cannot pass map_type (\d+) into func (bpf_\w+)#", _other_map),
        (r"register R0 has .* should have been in (.*)", _return),
        (
            r"combined stack size of \d+ calls is \d+|stack depth \d+ exceeds",
            _STACK,
        ),
        (
            r"write into map forbidden",
            "declare the variable without const, or the map without BPF_F_RDONLY_PROG",
        ),
        (
            r"BPF_STX uses reserved fields",
            (
                "atomic operations that return a value, and those other than an addition, need "
                "Linux 5.12"
            ),
        ),
        (
            r"unknown opcode 8d",
            "compile with -O2: without optimisation clang calls helpers through pointers (callx)",
        ),
        (
            r"unreachable insn|jump out of range|last insn is not an exit",
            (
                "look at clang's warnings (-Wall): it leaves out what follows undefined behaviour, "
                "such as a missing return"
            ),
        ),
        (r"cannot be used inside (bpf_\w+)-ed region", _unlock),
        (r"metadata kfuncs require device-bound program", _bind_to_device),
        (r"might sleep in non-sleepable|may sleep in non-sleepable", _sleepable),
    )
)
"""The first that fits is used."""
