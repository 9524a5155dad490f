"""Claims about code of a kernel, by BTF that the test makes."""

from __future__ import annotations

import bisect
import struct
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="the extra purebpf[types] is not installed")

from purebpf.btf.types.parse import Btf
from purebpf.dataflow.btf_types import BtfTypes
from purebpf.dataflow.claims import Claim, Unclaimed
from purebpf.dataflow.kernel_code import KernelCode, Span
from purebpf.dataflow.kernel_scope import find_per_cpu
from purebpf.dataflow.types import bare
from tests.support.builders.btf_builder import BtfBuilder

pytestmark = pytest.mark.needs("gcc")

SOURCE = Path(__file__).with_name("kernel.s")
PER_CPU = 0xFFFFFFFF81000000
TEXT = 0x1000


def kernel_types() -> Btf:
    b = BtfBuilder()
    u32 = b.int("unsigned int", 4)
    u64 = b.int("unsigned long", 8)
    sem = b.struct("sem", [("count", u64), ("owner", u64)])
    inode = b.struct("inode", [("flags", u32), ("mode", u32), ("size", u64), ("sem", sem)])
    inode_pointer = b.ptr(inode)
    ops = b.struct(
        "ops",
        [
            ("find", b.ptr(b.func_proto(inode_pointer, [("key", u64)]))),
            ("close", b.ptr(b.func_proto(0, [("inode", inode_pointer)]))),
        ],
    )
    file = b.struct("file", [("pos", u64), ("inode", b.ptr(b.const(inode))), ("ops", b.ptr(ops))])
    task = b.struct("task", [("state", u32)])
    queue = b.struct("queue", [("lock", u32), ("length", u32)])
    b.func("probe", b.func_proto(u32, [("file", b.ptr(file))]))
    b.func("find_inode", b.func_proto(inode_pointer))
    b.func("take", b.func_proto(0, [("sem", b.ptr(sem))]))
    b.func("leaves", b.func_proto(0, [("inode", inode_pointer)]))
    b.func("tail", b.func_proto(0, [("inode", inode_pointer)]))
    cache = b.struct("cache", [("part", b.ptr(queue))])
    const = b.const(inode_pointer)
    one = b.union("", [("one", inode_pointer), ("other", const)])
    either = b.union("", [("inode", inode_pointer), ("file", b.ptr(file))])
    twice = b.struct("twice", [("", one), ("", either)])
    b.struct("box", [("id", u64), ("sem", sem), ("queue", queue), ("left", u64), ("key", u64)])
    b.struct("pair", [("id", u64), ("one", sem), ("two", sem), ("key", u64)])
    b.struct("double", [("at", u64), ("first", sem), ("second", sem), ("left", u64)])
    for function in ("per_cpu_member", "added"):
        b.func(function, b.func_proto(0, [("cache", b.ptr(cache))]))
    for function in ("nothing", "chosen", "calls"):
        b.func(function, b.func_proto(0, [("file", b.ptr(file))]))
    b.func("same", b.func_proto(0, [("twice", b.ptr(twice))]))
    for function in ("padded", "warned", "turned_off", "realigned"):
        b.func(function, b.func_proto(0, [("inode", inode_pointer)]))
    tag = b.struct("tag", [("id", u64), ("next", u64)])
    b.struct("label", [("tag", tag), ("name", u64), ("weight", u32)])
    b.struct("page", [("flags", u64), ("head", u64), ("rest", b.array(u64, 6))])
    b.struct("maple_node", [("parent", u64), ("slot", u64)])
    b.struct("qspinlock", [("locked", b.int("char", 1))], size=4)
    b.struct("deep", [("inode", inode_pointer), ("left", u32), ("sem", sem, 448)])
    b.struct("shallow", [("low", u32), ("high", u32), ("left", u32), ("sem", sem, 448)])
    b.func("only_holder", b.func_proto(0, [("tag", b.ptr(tag))]))
    b.func("in_tree", b.func_proto(0, [("node", b.ptr(b.fwd("maple_enode")))]))
    b.func("numbers", b.func_proto(0, [("numbers", b.ptr(u64))]))
    for function in ("several_holders", "behind"):
        b.func(function, b.func_proto(0, [("sem", b.ptr(sem))]))
    for function in ("on_frame", "masked"):
        b.func(function, b.func_proto(0, [("inode", inode_pointer)]))
    _add_casts(b, u64, inode_pointer)
    two = b.array(u64, 2)
    table = b.struct("table", [("key", u64), ("left", two), ("right", two)])
    b.func("indexed", b.func_proto(0, [("table", b.ptr(table))]))
    b.func("sites", b.func_proto(0, [("inode", inode_pointer)]))
    b.func("returned", b.func_proto(inode_pointer, [("key", u64)]))
    b.func("open_box", b.func_proto(0, [("sem", b.ptr(sem))]))
    b.func("wait_for", b.func_proto(0, [("queue", b.ptr(queue))]))
    b.datasec(
        ".data..percpu",
        [
            (b.var("current_task", b.ptr(task)), 0, 8),
            (b.var("this_cpu_off", u64), 8, 8),
            (b.var("queues", queue), 16, 8),
        ],
        size=24,
    )
    return b.btf()


def _add_casts(b: BtfBuilder, u64: int, inode: int) -> None:
    """Add structs around one member, and members that hide a pointer."""
    node = b.struct("node", [("prev", u64), ("next", u64)])
    b.struct("pair_item", [("id", u64), ("node", node), ("key", u64)])
    other = b.struct("other_item", [("id", u64), ("node", node), ("left", u64)])
    b.struct("third_item", [("id", u64), ("node", node), ("inode", inode)])
    for function in ("pair_find", "takes_node", "passes_inode"):
        b.func(function, b.func_proto(0, [("node", b.ptr(node))]))
    b.func("has_other", b.func_proto(0, [("node", b.ptr(node)), ("item", b.ptr(other))]))
    b.func("stores", b.func_proto(0, [("inode", inode)]))
    stack = b.struct("task_struct", [("id", u64), ("stack", b.ptr(0))])
    b.func("end_of_stack", b.func_proto(0, [("task", b.ptr(stack))]))
    ref = b.struct("percpu_ref", [("percpu_count_ptr", u64)])
    b.func("get_ref", b.func_proto(0, [("ref", b.ptr(ref))]))
    b.struct("demo_sb_info", [("id", u64), ("blocks", u64)])
    block = b.struct("super_block", [("id", u64), ("s_fs_info", b.ptr(0))])
    for function in ("demo_fill", "fill"):
        b.func(function, b.func_proto(0, [("block", b.ptr(block))]))
    b.struct("dst_entry", [("dev", u64), ("ops", u64)])
    small = b.struct("small", [("one", u64)])
    large = b.struct("large", [("one", u64), ("two", u64)])
    either = b.union("", [("small", b.ptr(small)), ("large", b.ptr(large))])
    packet = b.struct("sk_buff", [("", either), ("_skb_refdst", u64)])
    for function in ("routed", "overlaid", "overlaid_twice"):
        b.func(function, b.func_proto(0, [("packet", b.ptr(packet))]))
    _add_trie(b)
    words = b.struct("words", [("first", u64), ("second", u64)])
    seven = [*((f"key{number}", u64) for number in range(6)), ("last", inode)]
    b.func("stacked", b.func_proto(0, seven))
    b.func("by_value", b.func_proto(0, [("words", words), ("inode", inode)]))
    state = b.struct("ma_state", [("node", u64)])
    b.func("walks", b.func_proto(0, [("state", b.ptr(state))]))
    for function in ("filled", "inside", "paths"):
        b.func(function, b.func_proto(0, [("inode", inode)]))


def _add_trie(b: BtfBuilder) -> None:
    """Add a struct that ends in the head of a list, or in an array without a length."""
    number, long = b.int("unsigned int", 4), b.int("unsigned long", 8)
    node = b.struct("list_node", [("next", b.ptr(long)), ("back", b.ptr(long))])
    leaf, empty = b.struct("leaf", [("first", b.ptr(node))]), b.struct("", [])
    array = b.array(b.ptr(b.next_id + 4), 0)
    either = b.union("", [("leaf", leaf), ("", b.struct("", [("empty", empty), ("tnode", array)]))])
    vector = b.struct("key_vector", [("key", number), ("pos", number), ("", either)])
    b.struct("trie", [("kv", b.array(vector, 1))])
    table = b.struct("fib_table", [("id", long), ("tb_data", b.ptr(long))])
    b.func("fib_find", b.func_proto(0, [("table", b.ptr(table))]))


class Kernel:
    """The assembled code, and its types."""

    def __init__(self, directory: Path) -> None:
        linked, raw = directory / "kernel", directory / "kernel.bin"
        command = ["gcc", "-nostdlib", "-static", "-no-pie", f"-Wl,-Ttext={TEXT:#x},-e,probe"]
        subprocess.run([*command, "-Wl,--build-id=none", "-o", linked, SOURCE], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", linked, raw], check=True)
        self.code = raw.read_bytes()
        listed = subprocess.run(["nm", "-n", linked], capture_output=True, text=True, check=True)
        symbols = [line.split() for line in listed.stdout.splitlines()]
        self.names = {int(a, 16): name for a, kind, name in symbols if kind in "tT"}
        self.starts = sorted(self.names)
        self.types = BtfTypes(kernel_types())
        self.kernel = KernelCode(self.types, self.function, self.read, PER_CPU)

    def read(self, address: int, size: int) -> bytes:
        return self.code[address - TEXT :][:size]

    def function(self, address: int) -> Span | None:
        number = bisect.bisect_right(self.starts, address) - 1
        if not TEXT <= address < TEXT + len(self.code):
            return None
        start = self.starts[number]
        ends = [*self.starts[1:], TEXT + len(self.code)]
        return Span(start, ends[number], self.names[start])

    def claims(self, name: str) -> list[tuple[str, bool] | str]:
        """Return the member of each instruction that touches memory, and True if inferred."""
        start = next(a for a, each in self.names.items() if each == name)
        flow = self.kernel._flow(self._span(start))
        assert not isinstance(flow, str)
        answers = []
        for one in flow.code.instructions:
            _, claim = self.kernel.claim(one.ip, is_precise=True)
            if isinstance(claim, Claim):
                answers.append((f"{claim.name}.{claim.member}", claim.is_inferred))
            elif claim not in (Unclaimed.NO_OPERAND, Unclaimed.STACK, Unclaimed.UNREACHED):
                answers.append(claim.name if isinstance(claim, Unclaimed) else claim)
        return answers

    def _span(self, start: int) -> Span:
        span = self.function(start)
        assert span is not None
        return span


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    return Kernel(tmp_path_factory.mktemp("kernel"))


@pytest.mark.parametrize(
    ("function", "claims"),
    [
        ("probe", [("file.inode", False), ("inode.mode", False)]),
        ("holder", [("inode.mode", False)]),
        (
            "on_cpu",
            [
                ("current_task (per CPU).", False), ("task.state", False),
                ("this_cpu_off (per CPU).", False),
                ("queue.length", False), "UNKNOWN_BASE", ("queue.length", False),
            ],
        ),
        ("moved", [("inode.mode", True), "OUTSIDE"]),
        ("leaves", ["OUTSIDE", ("inode.mode", False)]),
        (
            "per_cpu_member",
            [
                ("cache.part", False), ("queue.length", False),
                ("this_cpu_off (per CPU).", False), ("queue.lock", False),
                ("queue.(several members)", False), ("queue.length", True),
            ],
        ),
        ("nothing", [("file.inode", False), ("inode.mode", False), "UNKNOWN_BASE"]),
        ("chosen", [("file.inode", False), ("inode.mode", False), "UNKNOWN_BASE"]),
        (
            "calls",
            [
                ("file.ops", False),
                *(("ops.find", False), ("inode.mode", False)) * 3,
                ("ops.close", False), "UNKNOWN_BASE",
            ],
        ),
        (
            "same",
            [
                ("twice.one", False), ("inode.mode", False),
                ("twice.(union)", False), "UNKNOWN_BASE",
            ],
        ),
        ("padded", [("inode.mode", False)]),
        ("warned", [("inode.mode", False)]),
        ("turned_off", [("inode.mode", False), ("inode.flags", False), "UNKNOWN_BASE"]),
        ("around", [("inode.mode", True), ("inode.sem.count", True), ("inode.mode", True)]),
        ("flags", [("inode.mode", True), "UNKNOWN_BASE"]),
        ("spilled", [("inode.mode", True), "UNKNOWN_BASE"]),
        ("returned", [("inode.mode", True)]),
        ("stacked", [*[("inode.mode", False)] * 2, "UNKNOWN_BASE"]),
        ("by_value", [("inode.mode", False), "UNKNOWN_BASE"]),
        ("passes_value", [("inode.mode", True), "UNKNOWN_BASE"]),
        ("of_clone", [("inode.mode", False), "UNKNOWN_BASE"]),
        ("by_members", [("box.key", True)]),
        ("clash", ["UNKNOWN_BASE"]),
        ("realigned", [("inode.mode", False)]),
        (
            "indexed",
            [*[("table.key", True)] * 4, "UNKNOWN_INDEX", ("table.(several members)", True)],
        ),
        ("only_holder", [("label.weight", True), "OUTSIDE"]),
        ("several_holders", ["OUTSIDE"]),
        ("behind", [("inode.mode", True)]),
        ("of_page", ["UNKNOWN_VARIABLE", ("page.head", True), "UNKNOWN_VARIABLE", "UNKNOWN_BASE"]),
        ("on_frame", [("inode.(several members)", False)]),
        ("masked", [("inode.mode", False), "UNKNOWN_BASE"]),
        ("in_tree", [("maple_node.slot", False), ("maple_node.slot", False), "INCOMPLETE"]),
        ("numbers", [("unsigned long.", True)]),
        ("__raw_callee_save___pv_queued_spin_unlock", [("qspinlock.locked", False)]),
        ("by_accesses", [("deep.inode", True), ("deep.left", True)]),
        ("filled", [("inode.(several members)", False), "STRING"]),
        ("of_other_cpu", [("queue.length", False)]),
        ("added", [("cache.part", False), ("queue.length", True)]),
        ("pair_find", [("pair_item.key", True)]),
        ("takes_node", ["OUTSIDE"]),
        ("has_other", ["OUTSIDE"]),
        ("passes_inode", [("third_item.inode", True)]),
        ("bucket", [("inode *.", True), "UNKNOWN_BASE"]),
        ("stores", [("inode *.", True), "UNKNOWN_BASE"]),
        ("end_of_stack", [("task_struct.stack", False)]),
        (
            "get_ref",
            [("percpu_ref.percpu_count_ptr", False), ("percpu_ref (per CPU).", False)],
        ),
        ("demo_fill", [("super_block.s_fs_info", False), ("demo_sb_info.blocks", True)]),
        ("fill", [("super_block.s_fs_info", False), "UNKNOWN_BASE"]),
        ("routed", [("sk_buff._skb_refdst", False), ("dst_entry.ops", True)]),
        ("overlaid", [("sk_buff.(union)", False), ("large.two", True)]),
        ("overlaid_twice", [("sk_buff.(union)", False), "UNKNOWN_BASE"]),
        (
            "fib_find",
            [
                *[("fib_table.tb_data", False), ("trie.kv[].(union)", True)],
                *[("key_vector.pos", True), ("key_vector.(union)", True)],
            ],
        ),
        ("of_program", ["USER", "UNKNOWN_BASE"]),
        ("walks", [("maple_node.slot", True), "UNKNOWN_BASE"]),
        ("inside", [("inode.flags", False), ("inode.size", False)]),
    ],
)  # fmt: skip
def test_members_are_those_of_the_source(kernel: Kernel, function: str, claims: object) -> None:
    assert kernel.claims(function) == claims


def test_a_sample_behind_several_paths_has_the_type_on_which_they_agree(kernel: Kernel) -> None:
    start = next(a for a, name in kernel.names.items() if name == "paths")
    flow = kernel.kernel.flow(start)
    assert flow is not None
    nops = [one.ip for one in flow.code.instructions if str(one) == "nop"]
    answers = [kernel.kernel.claim(at, is_precise=False)[1] for at in nops]
    waits, members, types, stack = answers
    assert isinstance(waits, Claim)  # one path touches no memory
    assert (waits.name, waits.member, waits.is_inferred) == ("inode", "size", True)
    assert isinstance(members, Claim)
    assert (members.name, members.member) == ("inode", "(several members)")
    assert (members.offset, members.size, members.is_inferred) == (0, 32, False)
    assert types is stack is Unclaimed.SEVERAL_PATHS


def test_a_sample_behind_sti_was_taken_late(kernel: Kernel) -> None:
    start = next(a for a, name in kernel.names.items() if name == "wakes")
    answers = [kernel.kernel.claim(start + at, is_precise=False)[1] for at in (1, 2)]
    assert answers == [Unclaimed.INTERRUPTS_OFF] * 2
    assert kernel.kernel.claim(start + 4, is_precise=False)[1] is Unclaimed.UNKNOWN_BASE


def test_the_first_argument_of_a_call_is_a_place_in_an_object(kernel: Kernel) -> None:
    start = next(a for a, name in kernel.names.items() if name == "holder")
    flow = kernel.kernel._flow(kernel._span(start))
    assert not isinstance(flow, str)
    arguments = [kernel.kernel.argument(after) for after in sorted(flow.code.calls)]
    assert arguments[0] is None
    taken = arguments[1]
    assert taken is not None
    of = bare(taken.type)
    assert (taken.function.name, of and of.name, taken.offset) == ("take", "inode", 16)
    assert kernel.kernel.argument(start) is None


def test_a_sample_has_the_operand_of_the_instruction_before(kernel: Kernel) -> None:
    start = next(a for a, name in kernel.names.items() if name == "sites")
    flow = kernel.kernel._flow(kernel._span(start))
    assert not isinstance(flow, str)
    nops = [one.ip for one in flow.code.instructions if str(one) == "nop"]
    sites = [kernel.kernel.site(at, is_precise=False) for at in nops]
    kept, *others, compared, address = sites
    assert kept is not None
    of = bare(kept.type)
    assert (kept.register, kept.displacement, of and of.name) == ("rdi", 4, "inode")
    assert others == [None] * 3
    assert compared is not None
    assert (compared.register, compared.displacement, compared.type) == ("rsi", -4, None)
    assert address is None
    changed = kernel.kernel.site(nops[0] + 1, is_precise=True)
    assert changed is not None
    assert changed.register == "rsi"


@pytest.mark.parametrize("base", [0, PER_CPU])
def test_the_section_of_per_cpu_variables_is_found_by_its_accesses(base: int) -> None:
    b = BtfBuilder()
    u64 = b.int("unsigned long", 8)
    places = [0, 64, 72, 200, 808, 1600, 4096, 5000, 5008, 9000]
    section = [(b.var(f"v{at}", u64), at, 8) for at in places]
    b.datasec(".data..percpu", section, size=10000)
    types = BtfTypes(b.btf())
    code = b""
    for at in places:
        absolute = struct.pack("<I", (base + at) & 0xFFFFFFFF)
        code += b"\x65\x48\x8b\x04\x25" + absolute  # mov %gs:absolute, %rax
    assert find_per_cpu(types, code, 0x5000) == base
    assert find_per_cpu(types, b"", 0x5000) is None
    assert find_per_cpu(types, code[:27], 0x5000) is None
