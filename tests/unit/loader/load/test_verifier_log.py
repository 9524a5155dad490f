"""What is found in logs of kernels old and new (recorded from real refusals)."""

from __future__ import annotations

import pytest

from purebpf.loader.load.verifier import Explanation, explain

LINUX_6_18 = """\
func#0 @0
arg#0 reference type('UNKNOWN ') size cannot be determined: -22
0: R1=ctx() R10=fp0
; __u32 key = 0; @ refused.c:7
0: (b4) w1 = 0                        ; R1=0
1: (63) *(u32 *)(r10 -4) = r1
mark_precise: frame0: last_idx 1 first_idx 0 subseq_idx -1
mark_precise: frame0: regs=r1 stack= before 0: (b4) w1 = 0
2: R1=0 R10=fp0 fp-8=0000????
2: (bf) r2 = r10                      ; R2=fp0 R10=fp0
3: (07) r2 += -4                      ; R2=fp-4
4: (18) r1 = 0xffff888104394800       ; R1=map_ptr(map=m,ks=4,vs=8)
6: (85) call bpf_map_lookup_elem#1    ; R0=map_value_or_null(id=1,map=m,ks=4,vs=8)
; return *value; @ refused.c:9
7: (79) r0 = *(u64 *)(r0 +0)
R0 invalid mem access 'map_value_or_null'
verification time 276 usec
stack depth 8
processed 7 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
"""

LINUX_5_10 = """\
Unrecognized arg#0 type PTR
; __u32 key = 0;
0: (b7) r1 = 0
1: (63) *(u32 *)(r10 -4) = r1
last_idx 1 first_idx 0
regs=2 stack=0 before 0: (b7) r1 = 0
; return *value;
7: (79) r0 = *(u64 *)(r0 +0)
R0 invalid mem access 'map_value_or_null'
processed 7 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
"""

WITHOUT_LINES = """\
0: (61) r0 = *(u32 *)(r1 +4096)
invalid bpf_context access off=4096 size=4
processed 1 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
"""

STATES_AFTER_THE_REASON = """\
; turn = turn; @ refused.c:23
2: (61) r1 = *(u32 *)(r10 -4)         ; R1=0 R10=fp0 fp-8=0000????
3: (63) *(u32 *)(r10 -4) = r1
4: R1=0 R10=fp0 fp-8=0000????
4: (05) goto pc-3
SCC enter (1)
infinite loop detected at insn 2
cur state: R1=0 R10=fp0 fp-8=0000????
old state: R1=0 R10=fp0 fp-8=0000????
verification time 111 usec
stack depth 8
processed 12 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 0
"""

QUOTED_AND_NOT_REACHED = """\
3: (63) *(u32 *)(r10 -4) = r1         ; R1_w=P0 R10=fp0 fp-8=0000????
; for (;;)
4: (05) goto pc-3
; turn = turn;
infinite loop detected at insn 2
processed 12 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 1
"""  # Linux 6.1

CUT_AT_THE_START = """\
egs=r1 stack= before 5: (05) goto pc-4
3: (04) w1 += 1
BPF program is too large. Processed 1000001 insn
processed 1000001 insns (limit 1000000) max_states_per_insn 4 total_states 25001 peak_states 25001
"""

VERDICT_BEHIND_A_BRANCH = """\
0: R1=ctx() R10=fp0
; if (bpf_get_prandom_u32() == 3) @ refused.c:10
0: (85) call bpf_get_prandom_u32#7    ; R0=scalar()
1: (56) if w0 != 0x3 goto pc-2 0: R0=scalar() R10=fp0
0: (85) call bpf_get_prandom_u32#7    ; R0=scalar()
1: (56) if w0 != 0x3 goto pc-2 infinite loop detected at insn 0
cur state: R0=scalar() R10=fp0
old state: R0=scalar() R10=fp0
processed 4 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 0
"""

BEFORE_ANY_INSTRUCTION = """\
attach_btf_id 1 is not a typedef
processed 0 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
"""

EXPECTED = {
    LINUX_6_18: Explanation(
        "R0 invalid mem access 'map_value_or_null'", 7, "refused.c:9: return *value;"
    ),
    LINUX_5_10: Explanation("R0 invalid mem access 'map_value_or_null'", 7, "return *value;"),
    WITHOUT_LINES: Explanation("invalid bpf_context access off=4096 size=4", 0, ""),
    STATES_AFTER_THE_REASON: Explanation(
        "infinite loop detected at insn 2", 4, "refused.c:23: turn = turn;"
    ),
    QUOTED_AND_NOT_REACHED: Explanation("infinite loop detected at insn 2", 2, "turn = turn;"),
    CUT_AT_THE_START: Explanation("BPF program is too large. Processed 1000001 insn", 3, ""),
    VERDICT_BEHIND_A_BRANCH: Explanation(
        "infinite loop detected at insn 0", 1, "refused.c:10: if (bpf_get_prandom_u32() == 3)"
    ),
    BEFORE_ANY_INSTRUCTION: Explanation("attach_btf_id 1 is not a typedef", None, ""),
    "": Explanation("", None, ""),
}


@pytest.mark.parametrize("log", EXPECTED, ids=lambda log: log.partition("\n")[0] or "empty")
def test_the_deciding_line_its_instruction_and_its_c_line(log):
    assert explain(log) == EXPECTED[log]


def test_a_log_of_nothing_but_noise_decides_nothing():
    noise = "".join(line for line in LINUX_6_18.splitlines(keepends=True) if "invalid" not in line)
    assert explain(noise).line == ""


def test_a_c_line_with_an_at_sign_is_quoted_whole():
    log = '; mail = "a @ b"; @ mail.c:3\n0: (b7) r0 = 0\nno such thing\n'
    assert explain(log).source == 'mail.c:3: mail = "a @ b";'


def test_a_helper_that_the_kernel_does_not_know_by_name() -> None:
    log = "10: (85) call unknown#158\ninvalid func unknown#158\nprocessed 11 insns\n"
    said = "invalid func unknown#158: this kernel has no bpf_get_current_task_btf()"
    assert explain(log).line == said
    log = "10: (85) call unknown#99999\ninvalid func unknown#99999\n"
    assert explain(log).line == "invalid func unknown#99999"
