"""Names of locks by the calls that wait for them, by types that a test makes."""

from __future__ import annotations

import pytest

from purebpf.btf.types.parse import Btf
from purebpf.results import Loss
from purebpf.tools.lock.call_sites import CallSites
from purebpf.tools.lock.event import LockRow
from purebpf.tools.lock.members import SlabPlace
from purebpf.tools.lock.names import CALL_SITE, LockNames
from purebpf.tools.lock.render import LockText
from purebpf.tuples import NamedTuple
from tests.support.builders.btf_builder import BtfBuilder

LOCK_FUNCTION, OTHER_FUNCTION = 0x2000, 0x3000


class Named(NamedTuple):
    name: str


class Function(NamedTuple):
    start: int


class Argument(NamedTuple):
    function: Function
    type: Named | None
    offset: int


@pytest.fixture(scope="module")
def btf() -> Btf:
    b = BtfBuilder()
    u64 = b.int("unsigned long", 8)
    mutex = b.struct("mutex", [("owner", u64), ("waiters", u64)])
    b.struct("queue", [("length", u64), ("lock", mutex)])
    return b.btf()


@pytest.mark.parametrize(
    ("argument", "kind", "name"),
    [
        (Argument(Function(LOCK_FUNCTION), Named("queue"), 8), "mutex", "queue.lock"),
        (Argument(Function(LOCK_FUNCTION), Named("queue"), 8), "spinlock", ""),
        (Argument(Function(LOCK_FUNCTION), Named("queue"), 0), "mutex", ""),
        (Argument(Function(LOCK_FUNCTION), Named("queue"), -8), "mutex", ""),
        (Argument(Function(LOCK_FUNCTION), Named("mutex"), 0), "mutex", ""),
        (Argument(Function(LOCK_FUNCTION), Named("absent"), 8), "mutex", ""),
        (Argument(Function(LOCK_FUNCTION), Named(""), 8), "mutex", ""),
        (Argument(Function(LOCK_FUNCTION), None, 8), "mutex", ""),
        (Argument(Function(OTHER_FUNCTION), Named("queue"), 8), "mutex", ""),
        (None, "mutex", ""),
    ],
)
def test_a_lock_is_a_member_of_the_argument(
    btf: Btf, argument: Argument | None, kind: str, name: str
) -> None:
    sites = CallSites(btf, lambda _: argument, lambda start: start == LOCK_FUNCTION)
    assert sites.name(0x1000, kind) == name


def test_a_call_site_names_locks_that_have_no_better_name() -> None:
    names = LockNames((0x1000,), 256, lambda slab, _: "file.f_lock" if slab.cache == "f" else "")
    names._symbols = b"0000000000004000 d known\n"
    unknown, known = SlabPlace("kmalloc-64", 64, (0,)), SlabPlace("f", 64, (0,))
    by_type = lambda: "queue.lock"  # noqa: E731
    assert names.name(0x1010, "mutex", None, by_type) == ("run queue of CPU 0", "CPU")
    assert names.name(0x4000, "mutex", None, by_type) == ("known", "symbol")
    assert names.name(0x5000, "mutex", known, by_type) == ("file.f_lock at 0x5000", "slab f")
    assert names.name(0x5000, "mutex", None, by_type) == ("queue.lock at 0x5000", CALL_SITE)
    assert names.name(0x5000, "mutex", unknown, by_type) == ("queue.lock at 0x5000", CALL_SITE)
    assert names.name(0x5000, "mutex", unknown) == ("0x5000 in kmalloc-64", "slab kmalloc-64")
    assert names.name(0x5000, "mutex") == ("0x5000", "")


@pytest.mark.parametrize(
    ("has_decoder", "by", "says"),
    [(False, "lock", True), (True, "lock", False), (False, "caller", False)],
)
def test_without_the_decoder_the_table_says_which_package_to_install(
    has_decoder: bool, by: str, says: bool
) -> None:
    row = LockRow("0x5000", 0, 0, "mutex", 1, 0, 10, 10, (), ())
    rows = (row, row._replace(name="file.f_lock at 0x5000"))
    text = "".join(LockText(lambda: rows, by, has_decoder=has_decoder).end(Loss()))
    assert ("1 lock without a name" in text) is says
    assert ("pip install 'purebpf[types]'" in text) is says
