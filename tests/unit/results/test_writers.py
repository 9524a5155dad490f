"""The layouts, to the letter."""

from __future__ import annotations

import json as reader

import pytest

from purebpf.results import Cause, Labels, Loss, Profile
from purebpf.results.formats import folded, json, text
from purebpf.symbols.frame import Address, FileOffset, Frame, Reason, Unknown

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def user(name: str, offset: int, module: str = "/srv/app", address: int = 0x55AA) -> Frame:
    return Frame(name, offset, module, Address(address), "user")


def kernel(name: str, offset: int, module: str = "kernel") -> Frame:
    return Frame(name, offset, module, Address(0xFFFFFFFF81000000 + offset), "kernel")


MAIN = user("main", 0x10)
START = user("__libc_start_call_main", 0x7A, LIBC)
READ = user("read", 0xD, LIBC, 0x7F000000000D)
VFS_READ = kernel("vfs_read", 0xA1)
ENTRY = kernel("entry_SYSCALL_64_after_hwframe", 0x76)
NAMELESS = Unknown(Reason.STRIPPED, "/opt/bin/tool", Address(0x401000), "user")

TEXT = """\
    [Missed Kernel Stack]
    [unknown] [tool]
    -                tool (7)
        1

    -                kworker/0:1 (9)
        2

    vfs_read+0xa1 [kernel]
    entry_SYSCALL_64_after_hwframe+0x76 [kernel]
    [Missed User Stack]
    -                app (185)
        5

    main+0x10 [app]
    __libc_start_call_main+0x7a [libc.so.6]
    -                app (185)
        12

    vfs_read+0xa1 [kernel]
    entry_SYSCALL_64_after_hwframe+0x76 [kernel]
    read+0xd [libc.so.6]
    main+0x10 [app]
    __libc_start_call_main+0x7a [libc.so.6]
    -                app (185)
        30

"""

FOLDED = """\
tool;[unknown];[Missed Kernel Stack] 1
kworker/0:1 2
app;[Missed User Stack];entry_SYSCALL_64_after_hwframe;vfs_read 5
app;__libc_start_call_main;main 12
app;__libc_start_call_main;main;read;entry_SYSCALL_64_after_hwframe;vfs_read 30
"""


@pytest.fixture
def profile() -> Profile:
    """Stacks on both sides, on one, on none, lost on either side, and one without a name."""
    found = Profile("Sampling", about={"event": "cpu-clock"})
    found.add((READ, MAIN, START), (VFS_READ, ENTRY), 30, Labels("app", 185))
    found.add((MAIN, START), (), 12, Labels("app", 185))
    found.add(None, (VFS_READ, ENTRY), 5, Labels("app", 185))
    found.add((), (), 2, Labels("kworker/0:1", 9))
    found.add((NAMELESS,), None, 1, Labels("tool", 7))
    return found


def single(user_stack: tuple[Frame, ...], *kernel_stack: Frame, comm: str = "app") -> Profile:
    found = Profile()
    found.add(user_stack, kernel_stack, 3, Labels(comm, 185))
    return found


def test_the_text_has_a_block_for_each_stack(profile: Profile) -> None:
    assert "".join(text.blocks(profile)) == TEXT


def test_folded_has_a_line_for_each_stack(profile: Profile) -> None:
    assert "".join(folded.lines(profile)) == FOLDED


def test_text_has_its_delimiter_only_between_two_stacks(profile: Profile) -> None:
    expected = TEXT.replace("    read+0xd", "    --\n    read+0xd")
    assert "".join(text.blocks(profile, delimiter=True)) == expected


def test_folded_has_its_delimiter_only_between_two_stacks(profile: Profile) -> None:
    expected = FOLDED.replace("read;entry", "read;-;entry")
    assert "".join(folded.lines(profile, delimiter=True)) == expected


def test_the_text_has_addresses_on_request() -> None:
    (block,) = text.blocks(single((READ,), VFS_READ), addresses=True)
    assert block.startswith(
        "    0xffffffff810000a1 vfs_read+0xa1 [kernel]\n"
        "    0x00007f000000000d read+0xd [libc.so.6]\n"
    )


def test_annotations_mark_kernel_frames_only() -> None:
    assert list(folded.lines(single((MAIN,), VFS_READ), annotations=True)) == [
        "app;main;vfs_read_[k] 3\n"
    ]


def test_a_stack_of_a_thread_shows_its_pid_and_tid() -> None:
    found = Profile()
    found.add((), (), 1, Labels("app", 185, 190))
    assert "(185/190)\n" in next(text.blocks(found))


def test_folded_adds_up_rows_that_read_the_same() -> None:
    found = Profile()
    found.add((user("main", 1),), (), 2, Labels("app", 1))
    found.add((user("main", 2),), (), 5, Labels("app", 2))
    assert list(folded.lines(found)) == ["app;main 7\n"]


def test_names_cannot_break_the_folded_line() -> None:
    found = single((user("operator;()", 0),), comm="a;b\n\x1b[31m")
    assert list(folded.lines(found)) == ["a:b??[31m;operator:() 3\n"]


def test_names_cannot_break_the_text_line() -> None:
    (block,) = text.blocks(single((user("f\r\n", 0, "/tmp/\x1b]"),), comm="\n\ud800"))
    assert block == "    f??+0x0 [?]]\n    -                ?? (185)\n        3\n\n"


def test_special_modules_keep_single_brackets() -> None:
    (block,) = text.blocks(single((user("__vdso_time", 4, "[vdso]"),)))
    assert block.startswith("    __vdso_time+0x4 [vdso]\n")


def test_an_empty_profile_is_empty() -> None:
    assert list(text.blocks(Profile())) == []
    assert list(folded.lines(Profile())) == []
    assert reader.loads(json.document(Profile()))["stacks"] == []


def test_the_json_has_frames_stacks_and_loss(profile: Profile) -> None:
    profile.loss = Loss(expected=51, seen=50, causes=(Cause("map_full", 0, "raise it"),))
    found = reader.loads(json.document(profile))
    names = [frame.get("name", frame.get("unknown")) for frame in found["frames"]]
    stacks = [
        {
            **stack,
            **{
                side: stack[side] and [names[index] for index in stack[side]]
                for side in ("user", "kernel")
            },
        }
        for stack in found["stacks"]
    ]
    assert stacks == [
        {"weight": 1, "comm": "tool", "pid": 7, "user": [Reason.STRIPPED], "kernel": None},
        {"weight": 2, "comm": "kworker/0:1", "pid": 9, "user": [], "kernel": []},
        {
            "weight": 5,
            "comm": "app",
            "pid": 185,
            "user": None,
            "kernel": ["vfs_read", "entry_SYSCALL_64_after_hwframe"],
        },
        {
            "weight": 12,
            "comm": "app",
            "pid": 185,
            "user": ["main", "__libc_start_call_main"],
            "kernel": [],
        },
        {
            "weight": 30,
            "comm": "app",
            "pid": 185,
            "user": ["read", "main", "__libc_start_call_main"],
            "kernel": ["vfs_read", "entry_SYSCALL_64_after_hwframe"],
        },
    ]
    assert len(found["frames"]) == 6, "each address once"
    assert (found["schema"], found["unit"], found["total"]) == (json.SCHEMA, "samples", 50)
    assert found["about"] == {"event": "cpu-clock"}
    assert found["loss"] == {
        "expected": 51,
        "seen": 50,
        "missed": 1,
        "map_full": 0,
        "unknown": {
            "percent": 0.541,
            "frames": 185,
            "unnamed_functions": 0,
            "reasons": [{"reason": Reason.STRIPPED, "module": "/opt/bin/tool", "weight": 1}],
        },
    }


def test_json_frames_say_all_that_is_known() -> None:
    known = Frame("f", 4, LIBC, Address(2**63 + 1), "user", "ab12", FileOffset(64))
    nameless = Unknown(Reason.UNREADABLE, "/x", Address(16), "user", "EACCES")
    found = Profile()
    found.add((known, nameless), (), 1, Labels("app", 1, 2))
    document = reader.loads(json.document(found))
    assert document["frames"] == [
        {
            "kind": "user",
            "address": "0x8000000000000001",
            "name": "f",
            "offset": 4,
            "module": LIBC,
            "build_id": "ab12",
            "file_offset": 64,
        },
        {
            "kind": "user",
            "address": "0x10",
            "unknown": Reason.UNREADABLE,
            "detail": "EACCES",
            "module": "/x",
        },
    ]
    assert document["stacks"][0]["tid"] == 2


def test_unnamed_frames_weigh_as_their_rows(profile: Profile) -> None:
    profile.add((NAMELESS, NAMELESS, MAIN), (), 10, Labels("tool", 8))
    unnamed = profile.unnamed()
    assert unnamed.frames == 30 * 5 + 12 * 2 + 5 * 2 + 1 + 30
    assert unnamed.unknown == 1 + 20
    assert unnamed.reasons == ((Reason.STRIPPED, "/opt/bin/tool", 21),)


def test_reasons_of_equal_weight_come_by_their_names() -> None:
    """A profile and the same one saved and read again say the same."""
    places = ["/opt/b", "/opt/c", "/opt/a"]
    found = Profile("Sampling")
    for place in places:
        found.add((NAMELESS._replace(module=place),), (), 3, Labels("tool", 8))
    assert [where for _, where, _ in found.unnamed().reasons] == sorted(places)


@pytest.mark.parametrize(
    ("loss", "incomplete"),
    [
        (Loss(), False),
        (Loss(expected=100, seen=98, tolerance=2), False),
        (Loss(expected=100, seen=97, tolerance=2), True),
        (Loss(expected=100, seen=120), False),
        (Loss(expected=None, seen=3), False),
        (Loss(causes=(Cause("map_full", 0, ""), Cause("truncated", 1, ""))), True),
    ],
)
def test_loss_is_incomplete(loss: Loss, incomplete: bool) -> None:
    assert loss.any is incomplete
