"""One owner, one close."""

from __future__ import annotations

import os
import sys
import warnings

import pytest

from purebpf.syscall.descriptor import Descriptor


def opened() -> Descriptor:
    return Descriptor(os.open("/dev/null", os.O_RDONLY))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_closing_twice_does_not_close_the_next_owner_of_the_number():
    descriptor = opened()
    number = descriptor.fileno()
    descriptor.close()
    with opened() as second:
        assert second.fileno() == number  # the lowest free number is given out again
        descriptor.close()
        assert is_open(number)


def test_with_closes_also_when_the_block_raises():
    descriptor = opened()
    number = descriptor.fileno()
    with pytest.raises(KeyError), descriptor:
        raise KeyError
    assert descriptor.closed
    assert not is_open(number)


def test_a_closed_descriptor_has_no_number():
    descriptor = opened()
    descriptor.close()
    with pytest.raises(ValueError, match="closed"):
        descriptor.fileno()
    with pytest.raises(ValueError, match="closed"):
        descriptor.detach()


def test_detaching_hands_the_number_over():
    descriptor = opened()
    number = descriptor.detach()
    descriptor.close()
    assert is_open(number)
    os.close(number)


def test_a_duplicate_is_another_owner_of_the_same_file_and_not_inherited():
    with opened() as first:
        second = first.duplicate()
    assert is_open(second.fileno())
    assert not os.get_inheritable(second.fileno())
    second.close()


def test_collecting_an_open_descriptor_warns_and_closes_it():
    descriptor = opened()
    number = descriptor.fileno()
    held = [descriptor]
    del descriptor
    with pytest.warns(ResourceWarning, match=rf"unclosed Descriptor\({number}\)"):
        held.clear()
    assert not is_open(number)


def test_a_forgotten_one_is_closed_where_warnings_are_errors() -> None:
    number = opened().detach()
    unraisable: list[BaseException | None] = []
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(sys, "unraisablehook", lambda info: unraisable.append(info.exc_value))
        warnings.simplefilter("error")
        descriptor = Descriptor(number)
        del descriptor
    assert isinstance(unraisable[0], ResourceWarning)
    assert not is_open(number)
