"""Configuration values in the kernel: what a program reads is what the kernel was built with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import purebpf
from purebpf.loader.load import kconfig
from purebpf.syscall import proc

DATA = Path(__file__).parents[3] / "data"
OBJECT = DATA / "load_kconfig.bpf.o"
EVERY = "CONFIG_BPF_SYSCALL=y\nCONFIG_NET=m\nCONFIG_BPF=n\nCONFIG_HZ=777\n"

pytestmark = pytest.mark.needs("bpf", "syscall_programs")


def read(config: str = "") -> purebpf.Object:
    loaded = purebpf.load(OBJECT, kconfig=config)
    assert loaded.programs["read_configuration"].test_run().retval == 0
    return loaded


@pytest.mark.needs("kernel_config")
def test_a_program_reads_this_kernels_configuration():
    lines = (proc.kernel_config() or "").splitlines()
    with read() as loaded:
        seen = loaded.globals["seen"]
        assert f"CONFIG_HZ={seen.number}" in lines
        assert f'CONFIG_LOCALVERSION="{seen.text}"' in lines
        assert (seen.flag, chr(seen.letter), seen.absent) == (1, "y", 0)
        assert ("CONFIG_NET=y" in lines) == (seen.state == 1)


def test_given_lines_win():
    with read(
        EVERY + 'CONFIG_DEFAULT_HOSTNAME="elsewhere"\nCONFIG_LOCALVERSION=""\n'
        "CONFIG_PHYSICAL_START=0xffffffffffffffff\nCONFIG_NO_SUCH_NUMBER=-3\n"
    ) as loaded:
        seen = loaded.globals["seen"]
        assert (seen.flag, seen.state, chr(seen.letter), seen.number) == (1, 2, "n", 777)
        assert (seen.cut, seen.text) == ("els", "")
        assert (seen.large, seen.absent) == (2**64 - 1, 2**64 - 3)
        assert loaded.globals["CONFIG_HZ"] == 777


def test_values_are_constants(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proc, "kernel_config", lambda: EVERY)
    with purebpf.load(OBJECT) as loaded:
        assert loaded.maps[".kconfig"].frozen
        with pytest.raises(purebpf.NotSupportedError, match="it is constant after load"):
            loaded.globals["CONFIG_HZ"] = 100


def test_a_kernel_that_shows_no_configuration(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proc, "kernel_config", lambda: None)
    with pytest.raises(purebpf.NotSupportedError, match=r"/proc/config.gz and /boot/config-"):
        purebpf.load(OBJECT, kconfig=EVERY)


def test_the_configuration_is_not_read_when_everything_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proc, "kernel_config", lambda: pytest.fail("read"))
    spec = purebpf.read_object(OBJECT)
    absent = ("CONFIG_PHYSICAL_START=0", "CONFIG_NO_SUCH_NUMBER=0")
    texts = ('CONFIG_DEFAULT_HOSTNAME=""', 'CONFIG_LOCALVERSION=""')
    assert kconfig.configure(spec, EVERY + "\n".join(absent + texts)) != spec


def test_the_version_is_the_one_in_the_kernels_own_header():
    version = kconfig.kernel_version()
    release = os.uname().release.split("-")[0].split("+")[0].split(".")
    assert (version >> 16, version >> 8 & 255) == (int(release[0]), int(release[1]))


@pytest.mark.parametrize(
    ("signature", "release", "words", "expected"),
    [
        ("Ubuntu 5.4.0-12.15-generic 5.4.8", "5.4.0-12-generic", "#15-Ubuntu SMP", 0x50408),
        ("", "6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)", 0x6014C),
        ("", "6.18.44", "#1 SMP", 0x6122C),
        ("", "4.9.337", "#1", 0x409FF),
        ("", "7.2-rc1", "#1", 0x70200),
    ],
)
def test_versions_as_distributions_spell_them(
    monkeypatch: pytest.MonkeyPatch, signature: str, release: str, words: str, expected: int
):
    system = os.uname_result(("Linux", "host", release, words, "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: system)
    monkeypatch.setattr(proc, "version_signature", lambda: signature or None)
    assert kconfig.kernel_version() == expected


def test_an_object_without_configuration_does_not_import_any_of_it():
    code = (
        "import sys, purebpf\n"
        f"purebpf.load({str(DATA / 'load_counter.bpf.o')!r}).close()\n"
        "lazy = 'kconfig', 'externs', 'btf_modules', 'attach_target', 'btf_file', 'probe_event'\n"
        "print(*(m for m in sys.modules if m.split('.')[:2] == ['purebpf', 'kernel'] and "
        "m.split('.')[-1] in lazy))"
    )
    command = [os.sys.executable, "-c", code]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "\n"


def test_lines_for_an_object_without_settings_are_checked_too():
    spec = purebpf.read_object(DATA / "load_counter.bpf.o")
    with pytest.raises(purebpf.SchemaError, match="line 1 is not a setting: 'CONFIG_HZ 1000'"):
        purebpf.load(spec, kconfig="CONFIG_HZ 1000")
    purebpf.load(spec, kconfig="CONFIG_HZ=1000").close()
