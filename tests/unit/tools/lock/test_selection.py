"""Filters by lock and by function, and the order of rows."""

from __future__ import annotations

import pytest

from purebpf.tools.lock.event import LockRow
from purebpf.tools.lock.options import parse
from purebpf.tools.lock.selection import SORT_KEYS, is_lock_wanted, is_stack_wanted, order


def row(name: str, waits: int, waiting: int, total_ns: int, max_ns: int) -> LockRow:
    return LockRow(name, 0, 0, "mutex", waits, waiting, total_ns, max_ns, (), ())


ROWS = (row("many", 90, 10, 500, 10), row("long", 1, 0, 300, 300), row("open", 0, 1, 400, 200))


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("wait_total", "many open long"),
        ("wait_max", "long open many"),
        ("avg_wait", "open long many"),
        ("contended", "many open long"),
    ],
)
def test_rows_are_in_the_order_of_perfs_keys(key: str, names: str) -> None:
    assert " ".join(found.name for found in sorted(ROWS, key=order(key))) == names
    assert key in SORT_KEYS


@pytest.mark.parametrize(
    ("wanted", "is_wanted"),
    [
        (("i_rwsem",), True),
        (("mmap", "vfs_inode"), True),
        (("mmap",), False),
        (("0xffff8882059281a8",), True),
        (("0xffff888205928",), False),  # an address, not a part of one
        (("0xzz",), False),
    ],
)
def test_a_lock_is_wanted_by_a_part_of_its_name_or_its_address(
    wanted: tuple[str, ...], *, is_wanted: bool
) -> None:
    name = "ext4_inode_info.vfs_inode.i_rwsem at 0xffff8882059281a8"
    assert is_lock_wanted(name, 0xFFFF8882059281A8, wanted) is is_wanted


def test_a_stack_is_wanted_by_a_part_of_any_function() -> None:
    stack = ("rwsem_down_write_slowpath", "ext4_lookup")
    assert is_stack_wanted(stack, ("tcp_", "ext4_"))
    assert not is_stack_wanted(stack, ("tcp_",))
    assert not is_stack_wanted((), ("tcp_",))


def test_a_lock_filter_makes_rows_by_lock() -> None:
    options, *_ = parse(["-L", "a,b", "-k", "wait_max"])
    assert (options.by, options.locks, options.sort) == ("lock", ("a", "b"), "wait_max")
    options, *_ = parse(["-S", "a,b"])
    assert (options.by, options.functions, options.sort) == ("caller", ("a", "b"), "wait_total")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-L a --by caller", "-L needs --by lock, not caller"),
        ("-S a --by owner", "-S needs --by caller or stack, not owner"),
        ("-L a --userspace", "-L is for locks of the kernel"),
        ("-L a -S b", "-S and --format folded exclude it"),
        ("-k wait_min", "invalid choice: 'wait_min'"),
    ],
)
def test_filters_that_no_row_can_answer_are_refused(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(line.split())
    assert said in " ".join(capsys.readouterr().err.split())
