"""How calls look: strings, constants, structs, arguments, results, lines."""

from __future__ import annotations

import json
import struct

import pytest

from purebpf.results import Cause, Loss
from purebpf.tools.trace import quoting, sockets, structs
from purebpf.tools.trace.arguments import show_arguments
from purebpf.tools.trace.capture import piece_id
from purebpf.tools.trace.constants import enum_name, flag_names, signal_name
from purebpf.tools.trace.events import Call, Ended, Lost, Passed, Signalled, Task
from purebpf.tools.trace.kinds import signature
from purebpf.tools.trace.records import wait_status
from purebpf.tools.trace.render import JsonPrinter, StracePrinter, TextPrinter
from purebpf.tools.trace.results import show_result
from purebpf.tools.trace.special import open_flags
from purebpf.tools.trace.view import View, pieces

TASK = Task(5488, 5489, 0, "cat", "ssh.service")
CALL = Call(
    time_ns=1_795_359_601_531_000_000,
    task=TASK,
    name="openat",
    abi="x86_64",
    names=("dfd", "filename", "flags", "mode"),
    arguments=("AT_FDCWD", '"/nothing"', "O_RDONLY"),
    words=(0xFFFFFF9C, 0x7FFF0000, 0, 0, 0, 0),
    result=-2,
    result_text="-1 ENOENT (No such file or directory)",
    errno=2,
    duration_ns=3550,
    ending="returned",
)
SIGNAL = Signalled(CALL.time_ns, TASK, "SIGINT", "{si_signo=SIGINT, si_code=SI_KERNEL}")
ENDED = Ended(CALL.time_ns, TASK, 3, "", dumped=False)
KILLED = Ended(CALL.time_ns, TASK, 0, "SIGSEGV", dumped=True)
LOST = Lost(12, {"read": 4, "getppid": 8})


def view(name: str, *words: int, result: int | None = 0, **pieces: bytes) -> View:
    """A call; pieces by `start0`, `end2`: of which argument, at which end."""
    ids = {piece_id(int(key[-1]), end=key.startswith("end")): data for key, data in pieces.items()}
    return View(name, (*words, *(0,) * (6 - len(words))), result, ids, 32)


def shown(call: View) -> str:
    return ", ".join(show_arguments(call, signature(call.name)))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", '"plain"'),
        (b'\t\n\v\f\r"\\', r'"\t\n\v\f\r\"\\"'),
        (b"\0\x01" + b"8", r'"\0\18"'),  # 8 is not an octal digit
        (b"\x017", r'"\0017"'),
        (b"\xff\x7f", r'"\377\177"'),
        (b"", '""'),
    ],
)
def test_strings_are_those_of_c(data: bytes, text: str) -> None:
    assert quoting.quote(data) == text


def test_what_is_left_out_has_dots() -> None:
    assert quoting.quote(b"abc", more=True) == '"abc"...'
    assert quoting.hexadecimal(b"\n\xff", more=True) == r'"\x0a\xff"...'


def test_flags_are_named_the_widest_first() -> None:
    assert flag_names("open", 0o4010000) == "O_SYNC"
    assert flag_names("open", 0o10000) == "O_DSYNC"
    assert flag_names("prot", 0x40000003) == "PROT_READ|PROT_WRITE|0x40000000"
    assert flag_names("prot", 0) == "0"
    assert open_flags(0o2000101) == "O_WRONLY|O_CREAT|O_CLOEXEC"


def test_numbers_without_a_name_are_shown() -> None:
    assert enum_name("whence", 1) == "SEEK_CUR"
    assert enum_name("whence", 77) == "0x4d"
    assert [signal_name(number) for number in (9, 32, 40, 99)] == [
        "SIGKILL", "SIGRTMIN", "SIGRT_8", "99",
    ]  # fmt: skip


def test_modes_and_sets() -> None:
    assert structs.file_mode(0o104755) == "S_IFREG|S_ISUID|0755"
    assert structs.file_mode(0o020000) == "S_IFCHR|000"
    assert structs.device(0x0103) == "makedev(0x1, 0x3)"
    assert structs.signal_set(struct.pack("<Q", 1 << 1 | 1 << 16)) == "[INT CHLD]"
    assert structs.signal_set(struct.pack("<Q", ~(1 << 8) & (1 << 64) - 1)) == "~[KILL]"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0x0700, "{WIFEXITED(s) && WEXITSTATUS(s) == 7}"),
        (0x008B, "{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}"),
        (0x137F, "{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}"),
        (0x857F, "{WIFSTOPPED(s) && WSTOPSIG(s) == SIGTRAP | 0x80}"),
        (0xFFFF, "{WIFCONTINUED(s)}"),
    ],
)
def test_what_wait_says(status: int, text: str) -> None:
    assert wait_status(status) == text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0x6057F, "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGTRAP}|PTRACE_EVENT_EXIT<<16]"),
        (0x80137F, "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}|PTRACE_EVENT_STOP<<16]"),
        (0x9057F, "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGTRAP}|0x9 /* PTRACE_EVENT_??? */<<16]"),
    ],
)
def test_wait_says_why_a_traced_child_stopped(status: int, text: str) -> None:
    call = view("wait4", 7, 4096, result=7, end1=struct.pack("<I", status))
    assert shown(call).split(", ")[1] == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\2\0\0\x50\x7f\0\0\1" + bytes(8),
         '{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}'),
        (b"\1\0/run/x\0", '{sa_family=AF_UNIX, sun_path="/run/x"}'),
        (b"\1\0\0name", '{sa_family=AF_UNIX, sun_path=@"name"}'),
        (b"\1\0", "{sa_family=AF_UNIX}"),
        (struct.pack("<HHII", 16, 0, 7, 3), "{sa_family=AF_NETLINK, nl_pid=7, nl_groups=00000003}"),
        (struct.pack("<H", 10) + b"\0\x50" + bytes(4) + bytes(15) + b"\1" + bytes(4),
         ("{sa_family=AF_INET6, sin6_port=htons(80), sin6_flowinfo=htonl(0), "
          'inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}')),
    ],
)  # fmt: skip
def test_addresses_of_sockets(data: bytes, text: str) -> None:
    assert sockets.address(data, len(data)) == text


def test_arguments_come_from_both_ends_of_a_call() -> None:
    both = view("accept", 3, 0x10, 0x20, result=4, end1=b"\1\0", start2=b"\x80\0\0\0",
                end2=b"\2\0\0\0")  # fmt: skip
    assert shown(both) == "3, {sa_family=AF_UNIX}, [128 => 2]"
    assert show_result(both) == "4"
    failed = both._replace(result=-11)
    assert shown(failed) == "3, 0x10, [128]"
    assert show_result(failed) == "-1 EAGAIN (Resource temporarily unavailable)"


def test_what_could_not_be_read_is_an_address() -> None:
    assert shown(view("openat", 0xFFFFFF9C, 0xBAD, 0, 0)) == "AT_FDCWD, 0xbad, O_RDONLY"
    assert shown(view("openat", 5, 0, 0, 0)) == "5, NULL, O_RDONLY"


def test_buffers_are_as_long_as_the_call_says() -> None:
    read = view("read", 3, 0x10, 100, result=3, end1=b"abc")
    assert shown(read) == '3, "abc", 100'
    assert shown(view("write", 3, 0x10, 50, start1=b"x" * 32)) == f'3, "{"x" * 32}"..., 50'
    vector = struct.pack("<QQQQ", 0x10, 2, 0x20, 5)
    got = view("readv", 3, 0x30, 2, result=3)
    parts = {piece_id(1, part, end=True): data
             for part, data in enumerate((vector, b"ab", b"cdefg"))}  # fmt: skip
    assert shown(got._replace(pieces=parts)) == (
        '3, [{iov_base="ab", iov_len=2}, {iov_base="c", iov_len=5}], 2'
    )


def test_some_arguments_depend_on_others() -> None:
    assert shown(view("openat", 3, 0x10, 0o101, 0o644, start1=b"x\0")) == (
        '3, "x", O_WRONLY|O_CREAT, 0644'
    )
    assert shown(view("fcntl", 3, 1, 0)) == "3, F_GETFD"
    assert shown(view("fcntl", 3, 2, 1)) == "3, F_SETFD, FD_CLOEXEC"
    assert shown(view("futex", 0x10, 129, 1)) == "0x10, FUTEX_WAKE_PRIVATE, 1"
    assert shown(view("clone", 0x11, 0, 0, 0, 0)) == "child_stack=NULL, flags=SIGCHLD"
    assert shown(view("prctl", 15, 0x10, start1=b"name\0")) == 'PR_SET_NAME, "name"'
    assert shown(view("socket", 2, 0x80001, 6)) == "AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP"
    assert shown(view("mremap", 0x1000, 1, 2, 1, 0x2000)) == "0x1000, 1, 2, MREMAP_MAYMOVE"


def test_results_say_what_they_mean() -> None:
    polled = struct.pack("<ihhihh", 3, 1, 1, 4, 1, 0)
    assert show_result(view("poll", 0x10, 2, 5, result=1, end0=polled)) == (
        "1 ([{fd=3, revents=POLLIN}])"
    )
    assert show_result(view("poll", result=0)) == "0 (Timeout)"
    assert show_result(view("fcntl", 3, 3, result=0x8002)) == "0x8002 (flags O_RDWR|O_LARGEFILE)"
    assert show_result(view("mmap", result=0x7F00)) == "0x7f00"
    assert show_result(view("read", result=None)) == "?"
    assert show_result(view("read", result=-512)) == (
        "? ERESTARTSYS (To be restarted if SA_RESTART is set)"
    )


def test_an_unknown_call_has_six_numbers() -> None:
    assert show_arguments(view("syscall:999", 1, 2), None) == [
        "0x1", "0x2", "0x0", "0x0", "0x0", "0x0",
    ]  # fmt: skip


def test_pieces_end_where_the_record_does() -> None:
    data = struct.pack("<II3s5xII", 1, 3, b"abc", 2, 0)
    assert list(pieces(data)) == [(1, b"abc"), (2, b"")]


def test_the_text_is_this() -> None:
    printer = TextPrinter()
    events = (CALL, SIGNAL, ENDED, KILLED, LOST, CALL._replace(result=None, ending="in flight"))
    assert "".join([*printer.begin(None), *printer.show(events)]) == (
        "    TID COMM              TAKES CALL\n"
        '   5489 cat             3.55 us openat(AT_FDCWD, "/nothing", O_RDONLY)  '
        "= -1 ENOENT (No such file or directory)\n"
        "   5489 cat                     --- SIGINT {si_signo=SIGINT, si_code=SI_KERNEL} ---\n"
        "   5489 cat                     +++ exited with 3 +++\n"
        "   5489 cat                     +++ killed by SIGSEGV (core dumped) +++\n"
        "... 12 calls lost here: 8 getppid, 4 read\n"
        '   5489 cat             3.55 us openat(AT_FDCWD, "/nothing", O_RDONLY <unfinished ...>\n'
    )


def test_a_terminal_shows_what_fits() -> None:
    printer = TextPrinter()
    list(printer.begin(60))
    (line,) = printer.show([CALL])
    assert line == '   5489 cat             3.55 us openat(AT_FDCWD, "/nothin...\n'


def test_lines_of_strace_have_the_thread_first() -> None:
    assert list(StracePrinter().show([CALL, ENDED])) == [
        '5489  openat(AT_FDCWD, "/nothing", O_RDONLY) = -1 ENOENT (No such file or directory)\n',
        "5489  +++ exited with 3 +++\n",
    ]


def test_json_has_all_of_it() -> None:
    lost = Loss(causes=(Cause("events_full", 12, "12 events"),))
    printer = JsonPrinter()
    call, signal, ended, missing, loss = map(
        json.loads, [*printer.show([CALL, SIGNAL, ENDED, LOST]), *printer.end(lost)]
    )
    assert call == {
        "event": "call", "time": "2026-11-22T15:00:01.531000000Z", "pid": 5488, "tid": 5489,
        "uid": 0, "comm": "cat", "cgroup": "ssh.service", "name": "openat", "abi": "x86_64",
        "names": ["dfd", "filename", "flags", "mode"],
        "arguments": ["AT_FDCWD", '"/nothing"', "O_RDONLY"],
        "words": [0xFFFFFF9C, 0x7FFF0000, 0, 0, 0, 0], "result": -2,
        "result_text": "-1 ENOENT (No such file or directory)", "errno": "ENOENT",
        "duration_ns": 3550, "ending": "returned",
    }  # fmt: skip
    assert (signal["event"], signal["name"]) == ("signal", "SIGINT")
    assert (ended["event"], ended["status"]) == ("exit", 3)
    assert missing == {"event": "lost", "calls": 12, "by_name": {"read": 4, "getppid": 8}}
    assert loss == {"event": "loss", "schema": "purebpf.events/1", "loss": {"events_full": 12}}


def test_numbers_of_json_are_exact() -> None:
    call = CALL._replace(words=(1 << 53, (1 << 53) + 1, (1 << 64) - 1, 0, 0, 0))
    passed = Passed(CALL.time_ns, CALL.task, "kmem:kfree", {}, {"ptr": 0xFFFF888100000001, "n": 3})
    shown = [json.loads(line) for line in JsonPrinter().show([call, passed])]
    assert shown[0]["words"][:3] == [1 << 53, "0x20000000000001", "0xffffffffffffffff"]
    assert shown[1]["values"] == {"ptr": "0xffff888100000001", "n": 3}


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({"arguments": ("AT_FDCWD", '"/a"', "O_RDONLY")},
         'openat(AT_FDCWD, "/a", O_RDONLY) = -1 ENOENT'),
        ({"arguments": ("AT_FDCWD", f'"/{"x" * 99}"', "O_RDONLY")},
         f'openat(AT_FDCWD, "/{"x" * 13}...) = -1 ENOENT'),
        ({"arguments": ("3", f'"{"y" * 32}"...', "99"), "name": "read", "result_text": "99"},
         f'read(3, "{"y" * 30}...) = 99'),
        ({"ending": "in flight", "arguments": ("3", '"' + "z" * 99), "name": "write"},
         f'write(3, "{"z" * 18}... <unfinished ...>'),
    ],
)  # fmt: skip
def test_a_terminal_shows_results_first(changed: dict[str, object], shown: str) -> None:
    line = TextPrinter().line(CALL._replace(**changed), 80)
    assert line.partition(" us ")[2] == shown
    assert len(line) <= 80


@pytest.mark.parametrize("request_of", [0x801C581F, 0x5401, 0x8913, 0x8912, 0xC020660B, 0xC0185879])
def test_an_ioctl_of_which_8_bytes_could_be_read_has_an_address(request_of: int) -> None:
    call = view("ioctl", 3, request_of, 0x7FFF0000, start2=bytes(8), end2=bytes(8))
    assert shown(call).endswith(", 0x7fff0000")
