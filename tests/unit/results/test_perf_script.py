"""Texts of `perf script` with fields that its options choose, and lines that are no samples."""

from __future__ import annotations

import pytest

from purebpf.errors import FormatError
from purebpf.results.formats import folded, perf_script
from purebpf.results.model.profile import Profile
from purebpf.symbols.frame import Frame, Unknown

CHAIN = "\t            1155 leaf+0xc (/srv/app)\n\t            11ca main+0x41 (/srv/app)\n\n"


def read(text: str) -> Profile:
    assert perf_script.looks_like(text)
    return perf_script.parse(text.split("\n"))


def lines(text: str) -> list[str]:
    return [line.rstrip("\n") for line in folded.lines(read(text))]


@pytest.mark.parametrize(
    ("head", "comm"),
    [
        ("pool 3 12 29629  1125.007313:    2000000 cpu-clock: ", "pool 3 12"),
        ("pool 3 12 29629/29630 [001] U     1125.007313: cycles:ppp: ", "pool 3 12"),
        ("VM: 4711 VCPU:001 pool 3 29629 [001]  1125.007313: 1 cycles: ", "pool 3"),
        ("pool 3 12 29629 cpu-clock: ", "pool 3 12"),
        ("pool 3 12 29629    2000000 cpu-clock: ", "pool 3 12"),
        ("pool 3 12 29629 ", "pool 3 12"),
        ("pool 3 12 ", "pool 3 12"),
        ("pool [001]  1125.007313: ", "pool"),
        ("29629 [001]  1125.007313: cycles: ", ""),
        (" 1200 [001]   10.000100:          1 cycles: ", ""),
        ("[001]  1125.007313: ", ""),
        (" 1125.007313: ", ""),
        ("29629 ", ""),
        ("cafe 29629 [001] 2026-11-28 01:52:00.123456  1125.007313: cycles: ", "cafe"),
        ("kworker/0:1-ev    12 [000]   10.1: 1 cycles: ", "kworker/0:1-ev"),
        ("app\t1200 [001] 10.000100:\t\t1000000 cpu-clock:", "app"),
    ],
)
def test_a_header_may_lack_any_field(head: str, comm: str) -> None:
    assert lines(f"{head}\n{CHAIN}{head}\n{CHAIN}") == [f"{comm};main;leaf 2"]


def test_a_sample_may_have_no_header() -> None:
    assert lines(f"\n{CHAIN}\n{CHAIN}") == [";main;leaf 2"]
    assert lines("     55a595227155 leaf\n     55a595227155 leaf\n") == [";leaf 2"]


@pytest.mark.parametrize("comm", ["app", "pool 3 12", "cafe", "a+b (c)"])
@pytest.mark.parametrize(
    "fields",
    [
        "29647  1126.893671:    2000000 cpu-clock: ",
        "29647 [000]  1126.893671: cpu-clock:   call                 ",
        "29647 cpu-clock: ",
        "29647 ",
        "",
    ],
)
def test_without_call_chains_a_sample_is_a_line(comm: str, fields: str) -> None:
    line = f"{comm:>16} {fields}{0x55A595227155:17x} leaf+0xc (/srv/app)\n"
    assert lines(line * 3) == [f"{comm};leaf 3"]


def test_the_address_that_a_sample_is_about_is_not_its_stack() -> None:
    line = (
        "app 29647 1.5: cycles: "
        f"{0x7F12:16x} data+0x2 (/srv/x){0x55A595227155:17x} leaf+0xc (/srv/app)\n"
    )
    assert lines(line) == ["app;leaf 1"]
    assert lines(line.replace("/srv/app)", "/srv/app) ABI:2    AX:0x1    BX:0xbeef")) == [
        "app;leaf 1"
    ]


@pytest.mark.parametrize("data", ["", " data", " data (/srv/x)"])
def test_the_address_that_a_sample_is_about_is_no_frame_above_its_stack(data: str) -> None:
    """As perf script -F comm,tid,event,addr,ip,sym,dso prints samples with call chains."""
    sample = (
        f"app 29647 1.5: page-faults:{0x7F12:17x}{data}\n"
        "\tffffffff8175336a elf_load ([kernel.kallsyms])\n\t    55a595227155 leaf (/srv/app)\n"
        "\t    55a595227199 main (/srv/app)\n\n"
    )
    assert lines(sample * 2) == ["app;main;leaf;elf_load 2"]


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("leaf+0xc (/srv/app (deleted))", "/srv/app"),
        ("leaf+0xc (/opt/a (x86)/app)", "/opt/a (x86)/app"),
        ("leaf+0xc (/srv/app+0x1155)", "/srv/app"),
        ("leaf+0xc ([vdso])", "[vdso]"),
        ("leaf", ""),
    ],
)
def test_files_of_frames(text: str, module: str) -> None:
    profile = read(f"app 1200 [001] 10.0: 1 cycles: \n\t            1155 {text}\n\n")
    (frame,) = profile.rows()[0].user or ()
    assert isinstance(frame, Frame)
    assert (frame.name, frame.module) == ("leaf", module)


def test_a_long_header_of_comments_is_skipped() -> None:
    assert lines("# node0 meminfo\n" * 5000 + f"app 1 [000] 1.0: x: \n{CHAIN}") == [
        "app;main;leaf 1"
    ]


def test_an_unnamed_frame_of_a_deleted_file_is_unknown() -> None:
    profile = read("app 1200 [001] 10.0: 1 cycles: \n\t  1155 [unknown] (/srv/app (deleted))\n\n")
    (entry,) = profile.rows()[0].user or ()
    assert isinstance(entry, Unknown)
    assert entry.module == "/srv/app"


def test_source_lines_belong_to_the_frame_before_them() -> None:
    profile = read(
        "app 1200 [001]   10.000100:          1 cycles: \n"
        "\t            1155 helper\n  app.h:3 (inlined)\n"
        "\t            1155 leaf+0xc (/srv/app)\n  app.c:7 (discriminator 2)\n|7     sink;\n"
        "\t            1200 main+0x9 (/srv/app)\n  app+0x1200\n\n"
    )
    frames = [entry for entry in profile.rows()[0].user or () if isinstance(entry, Frame)]
    assert [(entry.file, entry.line, entry.kind) for entry in frames] == [
        ("app.h", 3, "inlined"),
        ("app.c", 7, "user"),
        ("", 0, "user"),
    ]


@pytest.mark.parametrize(
    "head",
    [
        "app 29629  1125.007313:    2000000 ",  # -F -event
        "app 29629    2000000 ",
        "app    2000000 ",
        "app 29629/29630 [001]  1125.007313:    2000000 ",
    ],
)
def test_a_period_without_an_event_is_no_frame_and_no_thread(head: str) -> None:
    assert lines(f"{head}\n{CHAIN}{head}\n{CHAIN}") == ["app;main;leaf 2"]


def test_samples_of_periods_alone_are_no_folded_stacks() -> None:
    """-F comm,tid,time,period"""
    text = "app    10     0.100000:    2000000 \napp    10     0.200000:    2000000 \n"
    assert lines(text) == ["app 2"]


def test_a_header_may_have_a_command_of_several_lines() -> None:
    header = "# ========\n# cmdline : perf record -- python3 -c \nimport os\nos.fork() \n"
    sample = f"app 10 [000]     0.1:          1 cycles: \n{CHAIN}"
    assert lines(f"{header}# CPU_TOPOLOGY\n# ========\n#\n{sample}") == ["app;main;leaf 1"]
    assert lines(header + sample) == ["app;main;leaf 1"]


@pytest.mark.parametrize(
    "bytes_of_it", [" insn: 4c 89 f0 ", " ilen: 3 insn: 4c 89 f0", " ilen: 3 "]
)
def test_the_bytes_of_an_instruction_are_skipped(bytes_of_it: str) -> None:
    text = f"app 10 [000]     0.1:          1 cycles: \n{CHAIN.rstrip()}\n{bytes_of_it}\n\n"
    assert lines(text) == ["app;main;leaf 1"]


def test_records_that_are_no_samples_are_left_out_and_lost_ones_counted() -> None:
    profile = read(
        "perf-exec     0     0.000000: PERF_RECORD_COMM: perf-exec:10/10\n"
        "app    10/10    [000]     0.1: PERF_RECORD_MMAP2 10/10: [0x1(0x2) @ 0 1 2 3]: r-xp /x\n"
        f"app    10     0.100000:     100000 cpu-clock: \n{CHAIN}"
        "app    10     0.200000: PERF_RECORD_FORK(11:11):(10:10)\n"
        "app    10 [000]     0.200000: PERF_RECORD_LOST lost 17\n"
        "app    10 [000]     0.3: PERF_RECORD_NAMESPACES 10/10 - nr_namespaces: 7\n"
        "\t\t[0/net: 4/0xf0000000, 1/uts: 4/0xeffffffe, 2/ipc: 4/0xefffffff, 3/pid: 4/0xeffffffc,\n"
        "\t\t 4/user: 4/0xeffffffd]\n"
        "0x1234 [0x8]: PERF_RECORD_FINISHED_ROUND\n"
        "app    10 [000]     0.3: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid: 1/1\n"
    )
    assert [*folded.lines(profile)] == ["app;main;leaf 1\n"]
    assert profile.about["event"] == "cpu-clock"
    assert [(cause.name, cause.lost) for cause in profile.loss.causes] == [("ring_lost", 17)]


@pytest.mark.parametrize(
    "text",
    [
        f"app 1 [0] 1.0: x: \n{CHAIN}hello world\n",
        f"app 1 [0] 1.0: x: \n{CHAIN}app 1 [0] 1.0: x: \n\tnot a frame\n",
        "app 1 [0] 1.0: x: \n\t0000000000001155\tinsn: 74 05\t# PRED\n",
    ],
)
def test_other_lines_are_refused_with_their_number(text: str) -> None:
    with pytest.raises(FormatError, match=r"line \d+"):
        perf_script.parse(text.split("\n"))
