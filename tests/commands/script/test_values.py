"""Values of the language, printed by scripts that run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import purebpf
from purebpf.observe.script.events import MapPrinted, Printed
from purebpf.script.script_error import ScriptError

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

PRINTED = [
    # constants of the kernel's headers
    ('printf("%d %d %d", TASK_UNINTERRUPTIBLE, DT_REG, O_CLOEXEC);', "2 8 524288"),
    ('printf("%s %s", syscall_name(__NR_read), syscall_name(99999));', "read 99999"),
    # a map whose first value comes from itself
    ("@x = @x + 5; @x = @x + 5; print(@x);", "@x: 10\n"),
    ("@ = { let $a = 100; avg($a) }; print(@);", "@: 100\n"),
    # structs: bit fields, packed ones, and keys
    ("$v = (uint64)0x1e; print(*(struct bits *)(&$v));", "{ .a = 0, .b = 1, .c = 3 }\n"),
    ("print((sizeof(struct plain), sizeof(struct tight)));", "(12, 9)\n"),
    ("$t = *(struct tight *)kptr(0); print($t.z);", "0\n"),
    ("@[(a = 1, b = 2)] = 3; @[(a = 1, b = 2)] += 4; print(@);", "@: 7\n"),
    ("$v = (uint64)7; @[*(struct bits *)(&$v)] = count(); print(@);", "@: 1\n"),
    # sizes: a number's own type, and tuples as C lays them out
    ("$x = 1; $y = 1; $y = 3000; print((sizeof($x), sizeof($y), sizeof(1 == 1)));", "(1, 2, 1)\n"),
    ('print(sizeof(((int8)1, (int32)2, (int16)3, "abc")));', "16\n"),
    # arrays of the bytes of a number or a string, and back
    ('print((uint32)pton("10.0.0.1") == (uint32)0x0100000a);', "true\n"),
    ('print((int8[])"hi"); print((uint8[4])(uint32)0x01020304);', "[104,105,0]\n[4,3,2,1]\n"),
    ("$b = (bool[2])(uint16)256; print($b[0]); print($b[1]);", "false\ntrue\n"),
    # values of nested blocks, and of addresses
    ("let $x = 1; print(if ($x) { if ($x > 5) { 2 } else { 3 } } else { 4 });", "3\n"),
    ('$a = (1, "hello", 2); print(*(&$a));', "(1, hello, 2)\n"),
    ("@ = sum(5); delete(@); @ = sum(7); print(@);", "@: 7\n"),
    ("@ = avg(5); delete(@); @ = avg(7); print((int64)@);", "7\n"),
    # the standard library, and types as arguments of macros
    ("print(size(typeof(uint64*), typeof(struct plain)));", "20\n"),
    ("$s = container_of((int *)1000, typeof(struct plain), z); print((uint64)$s);", "992\n"),
    ('assert(1 == 1, "one"); print(sizeof(typeof(comm)));', "16\n"),
    # an index that only the run knows, and divisions by zero
    ('$a = "foo"; $i = (uint64)2; printf("%c%d", $a[$i], $a[$i + 8]);', "o0"),
    ("@zero = 0; print((10 / @zero, 10 % @zero, 10 / (@zero + 3)));", "(1, 1, 3)\n"),
    # texts
    ('print((strcontains(probe, "egi"), strcontains(probe, "end")));', "(true, false)\n"),
    ('print(str("abcdef", 4));', "abcd\n"),
    ("print((pid == pid(curr_ns), tid(init) > 0));", "(true, true)\n"),
    # a percent sign before a space or the end is itself
    ('printf("%d%\\n%%", 7);', "7%\n%"),
]


@pytest.mark.parametrize(("body", "text"), PRINTED)
def test_a_value_is_printed(body: str, text: str) -> None:
    assert printed(f"{STRUCTS} begin {{ {body} }}") == text


STRUCTS = """
macro size(a, b) { sizeof(a) + sizeof(b) }
struct bits { unsigned long a:1; unsigned long b:1; unsigned long c:2; };
struct plain { int x; char y; int z; };
struct tight { int x; char y; int z; } /* as it is */ __attribute__((packed))
"""


def test_mistakes_of_a_run_are_warnings_with_their_place(tmp_path: Path) -> None:
    script = tmp_path / "mistakes.bt"
    script.write_text('begin { @zero = 0; $a = "foo"; print(1 / @zero); print($a[@zero + 9]); '
                      'assert(@zero == 1, "not one"); print("never"); }')  # fmt: skip
    command = [sys.executable, "-m", "purebpf", "script", "-q", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "1\n0\n\n\n@zero: 0\n"
    consequence = "This can lead to unexpected results."
    by_zero = f"Divide or modulo by 0 detected. {consequence} 1 is being used as the result."
    assert done.stderr.splitlines() == [
        f"mistakes.bt:1:38-47: WARNING: {by_zero}",
        f"mistakes.bt:1:56-69: WARNING: Array access out of bounds. {consequence}",
        "mistakes.bt:1:72-101: ERROR: assert failed: not one",
    ]
    assert done.returncode == 1


def test_an_error_in_a_macro_has_the_place_of_the_macro_and_of_the_call(tmp_path: Path) -> None:
    script = tmp_path / "macro.bt"
    text = 'macro bad() { errorf("bad"); } begin { bad(); exit(); }'
    script.write_text(text)
    command = [sys.executable, "-m", "purebpf", "script", "-q", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == [
        "macro.bt:1:15-28: ERROR: bad", "macro.bt:1:40-45: ERROR: expanded from", text,
        f"{' ' * 39}~~~~~",
    ]  # fmt: skip


def printed(text: str) -> str:
    """The text that a script prints, without the maps at its end."""
    config = "config = { print_maps_on_exit = 0 } "
    events = [*purebpf.run_script(config + text)]
    return "".join(
        event.text if isinstance(event, Printed) else _map_line(event) for event in events
    )


def _map_line(event: object) -> str:
    assert isinstance(event, MapPrinted)
    return "".join(f"{event.name}: {value}\n" for value in event.items.values())


def test_strings_have_max_strlen_characters_before_the_mark() -> None:
    text = (
        "config = { max_strlen = 5 } tracepoint:syscalls:sys_enter_openat "
        "/pid == cpid/ { print(str(args.filename)); exit(); }"
    )
    events = [*purebpf.run_script(text, command="/bin/cat /no/such/file")]
    assert events[0] in (Printed("/etc/..\n", ("/etc/..",)), Printed("/lib/..\n", ("/lib/..",)))


@pytest.mark.needs("tracefs")
def test_arguments_of_raw_tracepoints_have_names_and_types() -> None:
    text = (
        "rawtracepoint:sched_switch /args.next.pid == args.next.pid/ "
        '{ printf("%s|%d|%d", args.next.comm, args.preempt, args.next.pid); exit(); }'
    )
    comm, preempt, pid = next(iter(purebpf.run_script(text))).values
    assert (type(comm), int(preempt) in (0, 1), pid >= 0) == (str, True, True)
    with pytest.raises(ScriptError, match="does not have a field 'nxt'") as caught:
        purebpf.run_script("rawtracepoint:sched_switch { print(args.nxt.pid); }")
    assert "similar: next" in caught.value.hint


def test_a_script_catches_signals_to_its_own_process() -> None:
    text = (
        "self:signal:SIGUSR1 { @n++; } "
        'self:signal:SIGUSR1 { printf("%d", @n); if (@n == 3) { exit(); } } '
        "interval:s:20 { exit(); }"
    )
    before = signal.getsignal(signal.SIGUSR1)
    with purebpf.run_script(text) as running:
        numbers = []
        os.kill(os.getpid(), signal.SIGUSR1)
        for event in running:
            numbers += [event.values[0]] if isinstance(event, Printed) else []
            if isinstance(event, Printed) and event.values[0] < 3:
                os.kill(os.getpid(), signal.SIGUSR1)
    assert numbers == [1, 2, 3]
    assert signal.getsignal(signal.SIGUSR1) == before


@pytest.mark.needs("tracefs")
def test_a_signal_is_sent_to_the_traced_process() -> None:
    text = 'tracepoint:syscalls:sys_enter_getppid /pid == cpid/ { signal("SIGKILL"); @ = 1; }'
    command = f"{sys.executable} -S -c 'import os; os.getppid(); os.abort()'"
    assert [*purebpf.run_script(text, command=command, unsafe=True)] == [MapPrinted("@", {None: 1})]
    with pytest.raises(ScriptError, match="is unsafe"):
        purebpf.run_script(text)


def test_numbers_of_processes_are_those_of_our_namespace() -> None:
    code = (
        "import purebpf\n"
        "for event in purebpf.run_script('begin { printf(\"%d %d\", pid, pid(init)); }'):\n"
        "    print(event.text)\n"
    )
    command = ["unshare", "--fork", "--pid", "--mount-proc", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    inside, outside = map(int, done.stdout.split())
    assert inside == 1
    assert outside > 1
