"""The running kernel's own types: read once, and a reason when they cannot be."""

from __future__ import annotations

import errno
import pickle

import pytest

import purebpf
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import starts
from purebpf.errors import KernelError
from purebpf.loader.load.upload_btf import upload_btf
from purebpf.loader.types import kernel_btf as btf
from purebpf.syscall.backend import replaced
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.host.backends import Interposer


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A kernel with the BTF that the test puts at this path."""
    path = tmp_path / "vmlinux"
    monkeypatch.setattr(btf, "_PATH", str(path))
    btf.kernel_btf.cache_clear()
    yield path
    btf.kernel_btf.cache_clear()


@pytest.mark.needs("vmlinux_btf")
def test_it_is_read_once_and_knows_task_struct():
    found = purebpf.kernel_btf()
    assert found is purebpf.kernel_btf()
    assert found.find("task_struct", Kind.STRUCT)


@pytest.mark.needs("vmlinux_btf")
def test_a_kernel_that_does_not_map_its_btf_is_read(monkeypatch):
    mapped = purebpf.kernel_btf().data

    def refuse(*_):
        raise KernelError("mmap", errno.ENODEV)

    monkeypatch.setattr(btf, "lasting_view", refuse)
    assert btf.kernel_btf.__wrapped__().data == mapped


@pytest.mark.needs("vmlinux_btf")
@pytest.mark.parametrize("cached", [True, False])
def test_mapped_types_are_the_same_as_copied_ones(monkeypatch, tmp_path, cached):
    if not cached:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = btf.kernel_btf.__wrapped__()
    copied = purebpf.Btf(btf.read_kernel_btf())
    for name in ("task_struct", "sock", "pid", "no such name"):
        assert kernel.find(name) == copied.find(name)
        assert [*map(kernel.type, kernel.find(name))] == [*map(copied.type, copied.find(name))]
    assert pickle.loads(pickle.dumps(kernel)) == kernel == copied
    assert hash(kernel) == hash(copied)
    assert kernel.data == copied.data


def test_a_kernel_without_btf(elsewhere):
    with pytest.raises(purebpf.NotSupportedError, match="ENOENT; the kernel was built without"):
        purebpf.kernel_btf()


def test_btf_that_cannot_be_read(elsewhere):
    elsewhere.mkdir()
    with pytest.raises(purebpf.NotSupportedError, match="failed with EISDIR"):
        purebpf.kernel_btf()


def test_malformed_btf_is_a_format_error_and_not_remembered(elsewhere):
    elsewhere.write_bytes(b"no BTF at all, but long enough")
    with pytest.raises(purebpf.FormatError, match="vmlinux: header"):
        purebpf.kernel_btf()
    elsewhere.unlink()
    with pytest.raises(purebpf.NotSupportedError):
        purebpf.kernel_btf()


@pytest.mark.parametrize("error", [errno.ENOMEM, errno.EMFILE], ids=errno.errorcode.get)
def test_a_failure_that_is_not_about_the_btf_is_an_error(error):
    build = BtfBuilder()
    build.int("int", 4)
    substitute = Interposer(lambda call: error)
    with replaced(substitute), pytest.raises(purebpf.KernelError, match="BPF_BTF_LOAD"):
        upload_btf(build.btf())
    assert substitute.commands == ["BPF_BTF_LOAD"]


@pytest.mark.needs("bpf")
def test_refused_btf_comes_with_the_kernels_reason():
    build = BtfBuilder()
    build.struct("loop", [("itself", 1, 0)], size=4)
    with upload_btf(build.btf()) as uploaded:
        assert uploaded.descriptor is None
        assert not uploaded.functions
        assert uploaded.problem.startswith("bpf(BPF_BTF_LOAD) failed with EEXIST: [1] STRUCT loop")


@pytest.mark.needs("vmlinux_btf")
def test_the_kernel_has_no_string_twice_and_a_search_that_knows_it_says_the_same():
    kernel = purebpf.kernel_btf()
    names = kernel._strings
    strings = names._data[names._start : names._end - 1].split(b"\0")
    assert len(strings) == len(set(strings))
    plain = purebpf.Btf(kernel.data)
    names = [kernel._words[at] for at in starts(kernel)]
    assert not plain._strings.share_tails(names)
    for name in ("task_struct", "sock", "int", "pid", "unsigned int", "no such name", ""):
        assert kernel.find(name) == plain.find(name)
        assert kernel.find_essential(name) == plain.find_essential(name)
