"""EPERM from any call of a command says what the whole command needs."""

from __future__ import annotations

import errno

import pytest

from purebpf.errors import KernelError
from purebpf.loader.host import privilege
from purebpf.measure.privileges import RECORD_INSTEAD, RefusedError, needing

NOBODY = privilege.Host(0, 40, None, 0, None, "2", "3", None, "python -P -m purebpf profile")


def test_what_is_refused_says_what_all_of_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "read_host", lambda: NOBODY)
    error = KernelError("bpf(2)", errno.EPERM, "map 'counts'")
    with pytest.raises(KernelError) as caught, needing("CAP_BPF", "CAP_PERFMON"):
        raise error
    assert caught.value.what == "map 'counts'"
    assert "lacks CAP_BPF and CAP_PERFMON" in str(caught.value)


def test_other_errors_pass_as_they_are() -> None:
    error = KernelError("bpf(2)", errno.ENOMEM)
    with pytest.raises(KernelError) as caught, needing("CAP_BPF"):
        raise error
    assert caught.value is error


EVERY = NOBODY._replace(capabilities=(1 << 41) - 1)


def test_a_reason_is_kept_where_no_capability_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "read_host", lambda: EVERY._replace(seccomp=2))
    error = KernelError("ioctl(2)", errno.EPERM, "event 3", why="the device was opened read-only")
    with pytest.raises(KernelError) as caught, needing("CAP_BPF"):
        raise error
    assert caught.value is error


def test_a_reason_gives_way_to_a_missing_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    only_bpf = NOBODY._replace(capabilities=1 << 39)
    monkeypatch.setattr(privilege, "read_host", lambda: only_bpf)
    error = KernelError("bpf(2)", errno.EPERM, why="a rule")
    with pytest.raises(KernelError) as caught, needing("CAP_BPF", "CAP_PERFMON"):
        raise error
    assert "lacks CAP_PERFMON (" in str(caught.value)


def test_without_a_reason_what_was_read_is_said_not_a_capability(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = EVERY._replace(seccomp=2, lockdown="integrity")
    monkeypatch.setattr(privilege, "read_host", lambda: host)
    with pytest.raises(KernelError) as caught, needing("CAP_BPF"):
        raise KernelError("bpf(2)", errno.EPERM, "map 'counts'")
    text = str(caught.value)
    assert "root" not in text
    assert "lacks" not in text
    for fact in ("has CAP_BPF", "Seccomp 2", "lockdown: integrity", "map 'counts'", "EPERM"):
        assert fact in text


def test_the_command_to_type_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "read_host", lambda: NOBODY)
    for number in (errno.EPERM, errno.EACCES):
        with pytest.raises(KernelError) as caught, needing("CAP_BPF"):
            raise KernelError("read(/proc/1/maps)", number)
        assert caught.value.errno == number
        assert str(caught.value).startswith("run it as root: sudo python -P -m purebpf profile  --")
        assert f"(read(/proc/1/maps) failed with {errno.errorcode[number]})" in str(caught.value)


def test_an_access_that_more_rights_would_not_give_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(privilege, "read_host", lambda: EVERY)
    error = KernelError("open(/x)", errno.EACCES)
    with pytest.raises(KernelError) as caught, needing("CAP_BPF"):
        raise error
    assert caught.value is error


def test_a_file_that_cannot_be_written_is_not_a_reason_to_be_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(privilege, "read_host", lambda: NOBODY)
    error = KernelError("open(2)", errno.EACCES, "output /tmp/perf.data")
    with pytest.raises(KernelError) as caught, needing("CAP_BPF"):
        raise error
    assert caught.value is error


def test_a_way_without_root_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KernelError("bpf(BPF_MAP_CREATE)", errno.EPERM, "map 'counts'")
    told = KernelError(refused.call, errno.EPERM, refused.what, why="why", fix="run it as root")
    monkeypatch.setattr(privilege, "explain_eperm", lambda *_: told)
    monkeypatch.setattr(privilege, "has", lambda *_: False)
    with pytest.raises(RefusedError) as raised, needing("CAP_BPF", without_root=RECORD_INSTEAD):
        raise refused
    assert str(raised.value).startswith("run it as root, or, for your own processes, without root:")
    assert f": {RECORD_INSTEAD}  -- why" in str(raised.value)
    with pytest.raises(RefusedError) as raised, needing("CAP_BPF"):
        raise refused
    assert "without root" not in str(raised.value)
