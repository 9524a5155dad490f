"""Errors as people read them, and as other processes get them."""

from __future__ import annotations

import copy
import errno
import pickle

import pytest

from purebpf import errors
from purebpf.errors import KernelError, errno_name
from purebpf.filter.syntax import FilterError, TextSpan


def test_errors_have_the_kernels_names():
    assert errno_name(errno.EPERM) == "EPERM"
    assert errno_name(errno.ENOTSUP) == "EOPNOTSUPP", "as the kernel's headers call it"
    assert errno_name(errno.EDEADLOCK) == "EDEADLK"
    assert errno_name(524) == "ENOTSUPP", "which Python does not know"
    assert errno_name(4000) == "errno 4000"
    assert "failed with ENOTSUPP" in str(KernelError("bpf(BPF_LINK_CREATE)", 524))


RAISED = [
    errors.PurebpfError("no"),
    errors.PurebpfError(),
    errors.FormatError("a.o", ".BTF", "is cut short"),
    errors.LinkError("a.o", "f", "is not defined"),
    errors.CoreRelocationError("two answers"),
    errors.SchemaError("does not fit"),
    errors.NotSupportedError("rings", "EINVAL"),
    errors.CompileError("a.bpf.c", "a.bpf.c:1:1: error: unknown type name 'foo'"),
    errors.KernelError("bpf(BPF_MAP_CREATE)", errno.EPERM, "map 'm'", why="no", fix="be root"),
    errors.VerifierError("p", errno.EACCES, log="0: exit\n", line="0: exit", source="a.c:1: x"),
    errors.AttachError("bpf(BPF_LINK_CREATE)", errno.EBUSY, why="taken"),
    FilterError("a number is missing", "pid >", TextSpan(4, 5)),
]


def _pickled(protocol):
    return lambda error: pickle.loads(pickle.dumps(error, protocol))


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, *map(_pickled, range(2, 6))])
def test_a_copy_is_the_same_error(error, copied):
    error = copy.deepcopy(error)
    error.add_note("seen by a test")
    error.where_else = ["here"]
    made = copied(error)
    assert type(made) is type(error)
    assert (str(made), repr(made), made.args) == (str(error), repr(error), error.args)
    assert vars(made) == vars(error)
    assert made.__notes__ == ["seen by a test"]
    for name in ("errno", "strerror", "filename"):
        assert getattr(made, name, "none") == getattr(error, name, "none")


def test_every_error_is_copied_above():
    classes = {getattr(errors, name) for name in errors.__all__} - {errno_name, errors.ENOTSUPP}
    assert classes <= set(map(type, RAISED))
