"""The headers of purebpf: as libbpf's, without libbpf's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import purebpf
from purebpf import build
from purebpf.abi.instruction import unpack
from purebpf.spec import FunctionSpec
from tests.support.environment import ROOT

pytestmark = [pytest.mark.needs("clang"), pytest.mark.any_kernel]

PROTOTYPE = re.compile(
    r"^static (.*?)\(\*\s*(?:const )?(bpf_\w+)\)\((.*)\) = \(void \*\) ?(\d+);", re.MULTILINE
)
LIBBPF = Path("/usr/include/bpf/bpf_helper_defs.h")


def prototypes(path: Path) -> dict[str, tuple[str, str, str]]:
    return {
        name: (returned.replace(" ", ""), parameters.replace(" ", ""), number)
        for returned, name, parameters, number in PROTOTYPE.findall(path.read_text())
    }


@pytest.mark.skipif(not LIBBPF.exists(), reason="libbpf-dev is not installed")
def test_helpers_have_the_prototypes_that_libbpf_gives_them() -> None:
    ours = prototypes(Path(build.include()) / "bpf/bpf_helper_defs.h")
    theirs = prototypes(LIBBPF)
    assert len(theirs) > 200
    assert {name: ours[name] for name in theirs} == theirs


def test_the_prototypes_are_those_of_the_linux_headers() -> None:
    script = ROOT / "scripts/generate_helper_header.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, cwd=ROOT)


SIMILAR = ("attach_probes", "attach_usdt", "elf_core", "elf_externs", "load_arena", "stream_kinds")


@pytest.mark.parametrize("name", SIMILAR)
def test_a_program_is_the_same_with_the_headers_of_libbpf(name: str) -> None:
    """The fixtures were compiled with Debian's libbpf-dev; attach_usdt holds its usdt.bpf.h."""
    theirs = purebpf.read_object(ROOT / f"tests/data/{name}.bpf.o")
    ours = purebpf.read_object(build.compile(ROOT / f"tests/data/{name}.bpf.c", cache=False))
    assert set(ours.programs) == set(theirs.programs)
    assert set(ours.maps) == set(theirs.maps)
    for program in theirs.programs:
        assert ours.programs[program].section == theirs.programs[program].section
        if name != "attach_usdt":  # one more kind of argument since libbpf 1.7
            function = theirs.programs[program].function
            assert ours.functions[function].code == theirs.functions[function].code


ALL = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/usdt.bpf.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__ulong(map_extra, 0x1ull << 44);
	__uint(max_entries, 1);
} arena SEC(".maps");

long sum;

SEC("fentry/vfs_read") int BPF_PROG(on_enter, struct file *file, char *buffer, int size)
{
	int i;

	bpf_for(i, 0, size) {
		if (i > 5)
			break;
		sum += i;
	}
	bpf_repeat(3) sum += file->f_flags;
	return 0;
}

SEC("kprobe/vfs_read") int BPF_KPROBE(on_probe, struct file *file, char *buffer, int size)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	bpf_printk("%d %d %d %d", BPF_CORE_READ(task, real_parent, real_parent, tgid), size,
		bpf_htons(3), BPF_CORE_READ_BITFIELD_PROBED(task, sched_reset_on_fork));
	return 0;
}

SEC("kretprobe/vfs_read") int BPF_KRETPROBE(on_return, long result)
{
	return result < 0 && bpf_core_enum_value_exists(enum pid_type, PIDTYPE_TGID);
}

SEC("ksyscall/openat") int BPF_KSYSCALL(on_call, int directory, const char *path, int flags)
{
	char start[8];

	bpf_probe_read_user_str(start, sizeof(start), path);
	return start[0] + flags;
}

SEC("usdt/libc.so.6:libc:setjmp") int BPF_USDT(on_usdt, long place, int mask)
{
	return place + mask;
}

SEC("raw_tp/sched_switch") int on_text(u64 *ctx)
{
	char text[16];

	BPF_SNPRINTF(text, sizeof(text), "%d %s", (int)ctx[0], "x");
	BPF_SNPRINTF(text, sizeof(text), "no value");
	bpf_stream_printk(BPF_STDERR, "%d", 3);
	sum += text[0];
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


@pytest.mark.needs("vmlinux_btf")
def test_every_macro_compiles_without_a_warning() -> None:
    spec = purebpf.read_object(build.compile(ALL, cache=False))
    assert len(spec.programs) == 6
    assert spec.maps["arena"].map_extra == 1 << 44


@pytest.mark.needs("vmlinux_btf")
def test_a_source_has_the_same_code_with_all_types_and_with_those_it_needs(tmp_path: Path) -> None:
    (tmp_path / "vmlinux.h").write_text(build.make_vmlinux())
    whole = purebpf.read_object(build.compile(ALL, includes=[tmp_path], cache=False))
    small = purebpf.read_object(build.compile(ALL, cache=False))
    assert {name: function.code for name, function in whole.functions.items()} == {
        name: function.code for name, function in small.functions.items()
    }
    assert len(build.make_vmlinux(ALL)) < (tmp_path / "vmlinux.h").stat().st_size // 50


REGISTERS = """
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#ifdef __TARGET_ARCH_arm64
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
	__u64 orig_x0;
} __attribute__((preserve_access_index));
#else
#include <linux/ptrace.h>
#endif
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

long sum;

#define ADD(macro) sum += macro(ctx)
#define ADD_EACH(suffix)                                                                       \\
	ADD(PT_REGS_PARM1##suffix), ADD(PT_REGS_PARM2##suffix), ADD(PT_REGS_PARM3##suffix),    \\
		ADD(PT_REGS_PARM4##suffix), ADD(PT_REGS_PARM5##suffix)

SEC("kprobe/f") int at_entry(struct pt_regs *ctx)
{
	ADD_EACH();
	ADD(PT_REGS_RET), ADD(PT_REGS_FP), ADD(PT_REGS_RC), ADD(PT_REGS_SP), ADD(PT_REGS_IP);
	return 0;
}

SEC("kprobe/f") int from_elsewhere(struct pt_regs *ctx)
{
	ADD_EACH(_CORE);
	ADD(PT_REGS_FP_CORE), ADD(PT_REGS_RC_CORE), ADD(PT_REGS_SP_CORE), ADD(PT_REGS_IP_CORE);
	return 0;
}

SEC("kprobe/f") int of_a_call(struct pt_regs *ctx)
{
	ADD_EACH(_CORE_SYSCALL);
	return 0;
}

SEC("kprobe/f") int BPF_KPROBE(with_arguments, int a, long b, char c, void *d, short e)
{
	sum += a + b + c + (long)d + e;
	return 0;
}

SEC("kretprobe/f") int BPF_KRETPROBE(with_result, int result)
{
	sum += result;
	return 0;
}

SEC("ksyscall/f") int BPF_KSYSCALL(with_call, int a, long b, char c, void *d, short e)
{
	sum += a + b + c + (long)d + e;
	return 0;
}

SEC("usdt") int BPF_USDT(with_probe, int a, long b)
{
	sum += a + b;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


def compiled_for(architecture: str, headers: str, folder: Path) -> purebpf.ObjectSpec:
    source, made = folder / "registers.bpf.c", folder / "registers.bpf.o"
    source.write_text(REGISTERS)
    flags = ["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"]
    places = ["-I", headers, f"-I/usr/include/{os.uname().machine}-linux-gnu"]
    subprocess.run(
        ["clang-19", *flags, f"-D__TARGET_ARCH_{architecture}", *places, "-c", source, "-o", made],
        check=True,
    )
    return purebpf.read_object(made)


@pytest.mark.skipif(not LIBBPF.exists(), reason="libbpf-dev is not installed")
@pytest.mark.parametrize("architecture", ["x86", "arm64"])
def test_registers_are_those_that_libbpf_reads(architecture: str, tmp_path: Path) -> None:
    ours = compiled_for(architecture, build.include(), tmp_path)
    theirs = compiled_for(architecture, "/usr/include", tmp_path)
    assert len(ours.programs) == 7
    same = ours.programs.keys() - {"with_probe", "with_call"}  # written in another way
    assert {name: reads(ours.functions[name]) for name in same} == {
        name: reads(theirs.functions[name]) for name in same
    }
    calls = [
        [relocation.access for relocation in spec.functions["with_call"].core_relocations]
        for spec in (ours, theirs)
    ]
    assert calls[0]
    assert set(calls[0]) == set(calls[1])


def reads(function: FunctionSpec) -> list[tuple[int, int, int]]:
    """Opcode, offset and constant of its loads and its arithmetic, sorted."""
    loads = [each for each in unpack(function.code) if each.opcode & 7 in (1, 7)]
    return sorted((each.opcode, each.offset, each.imm) for each in loads)
