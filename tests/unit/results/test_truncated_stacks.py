"""Which user stacks lack their roots: those that fill the walk's room and did not stray."""

from __future__ import annotations

from purebpf.results import Labels, Profile
from purebpf.results.build.stored_stacks import Stacks, count_truncated
from purebpf.results.model.profile import Marks, Stack
from purebpf.results.model.stack_end import StackEnd
from purebpf.symbols.frame import Address, Frame, Reason, Unknown

ROOM = 4


class Names:
    """Addresses above 100 are not code."""

    def kernel_stack(self, addresses: tuple[int, ...]) -> Stack:
        return self.user_stack(0, addresses)

    def user_stack(self, pid: int, addresses: tuple[int, ...], comm: str | None = None) -> Stack:
        return tuple(
            (
                Unknown(Reason.GARBAGE, "", Address(each), "user")
                if each > 100
                else Frame(f"f{each}", 0, "m", Address(each), "user")
            )
            for each in addresses
        )


def profile(*found: tuple[tuple[int, ...], int], times: int = 0) -> Profile:
    made = Profile()
    end = StackEnd("unverified")
    stacks = Stacks(dict(enumerate((each for each, _ in found), 16)), Names())
    for number, (_, weight) in enumerate(found, 16):
        made.add(
            stacks.user(number, 1, "x"),
            (),
            weight,
            Labels("x", 1),
            marks=Marks(times=times, end=end),
        )
    return made


def test_a_copied_stack_may_be_deeper_and_is_truncated_where_it_says_so() -> None:
    made = Profile()
    stack = Names().user_stack(0, tuple(range(1, 10)))
    for weight, cut in ((2, ""), (3, "copy_short"), (5, "too_deep")):
        made.add(stack, (), weight, Labels("x", 1), marks=Marks(end=StackEnd(cut)))
    assert count_truncated(made, ROOM) == 5


def test_a_full_stack_lacks_its_root() -> None:
    made = profile(((1, 2, 3, 4), 7), ((1, 2, 3), 11))
    assert count_truncated(made, ROOM) == 7


def test_a_walk_that_strayed_and_is_cut_does_not() -> None:
    made = profile(((1, 200, 300, 400), 7), ((1, 2, 3, 400), 5), ((200, 300, 400, 500), 3))
    assert count_truncated(made, ROOM) == 0


def test_waits_count_one_by_one_and_not_their_nanoseconds() -> None:
    made = profile(((1, 2, 3, 4), 7_000_000), times=3)
    assert count_truncated(made, ROOM) == 3


def test_time_on_a_cpu_counts_once_and_not_its_nanoseconds() -> None:
    made = profile(((1, 2, 3, 4), 7_000_000))
    made.unit = "ns"
    assert count_truncated(made, ROOM) == 1
