"""The perf event of a link outlives the link if its taker wants that."""

from __future__ import annotations

import os

from purebpf.loader.programs.link import Link, take_event
from purebpf.syscall.descriptor import Descriptor


def descriptor() -> Descriptor:
    return Descriptor(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))


def is_open(number: int) -> bool:
    return os.path.exists(f"/proc/self/fd/{number}")


def test_the_event_of_a_bpf_link_stays_open() -> None:
    owned, event = descriptor(), descriptor()
    numbers = owned.fileno(), event.fileno()
    link = Link("a test", link=owned, event=event)
    assert take_event(link) is event
    assert link.closed
    assert [is_open(number) for number in numbers] == [False, True]
    event.close()


def test_an_event_without_a_bpf_link_is_closed_because_it_runs_the_program() -> None:
    event = descriptor()
    number = event.fileno()
    assert take_event(Link("a test", event=event)) is None
    assert not is_open(number)


def test_a_link_without_an_event_is_closed() -> None:
    owned = descriptor()
    number = owned.fileno()
    assert take_event(Link("a test", link=owned)) is None
    assert not is_open(number)
