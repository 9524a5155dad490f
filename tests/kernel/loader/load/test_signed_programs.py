"""BPF_PROG_LOAD with a signature: the kernel takes the signed instructions and no others."""

from __future__ import annotations

import ctypes
import errno
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import purebpf
from purebpf import ObjectSpec, asm

pytestmark = pytest.mark.needs("bpf", "signed_programs")

SESSION_KEYRING = -3
ADD_KEY = {"x86_64": 248, "aarch64": 217}


@pytest.fixture
def sign(tmp_path: Path) -> Callable[[bytes], bytes]:
    """Signs with a key of its own, which the session's keyring trusts from now on."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, certificate, data = (tmp_path / name for name in ("key.pem", "cert.pem", "data"))
    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-sha256", "-subj", "/CN=test"]
    made = [*new, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *made], check=True, capture_output=True)
    to_der = [openssl, "x509", "-in", str(certificate), "-outform", "DER"]
    der = subprocess.run(to_der, check=True, capture_output=True).stdout
    libc = ctypes.CDLL(None, use_errno=True)
    number = ADD_KEY[platform.machine()]
    serial = libc.syscall(number, b"asymmetric", b"purebpf", der, len(der), SESSION_KEYRING)
    assert serial > 0, errno.errorcode[ctypes.get_errno()]

    def sign_data(content: bytes) -> bytes:
        data.write_bytes(content)
        how = ["cms", "-sign", "-binary", "-noattr", "-nocerts", "-md", "sha256"]
        of = ["-in", str(data), "-signer", str(certificate), "-inkey", str(key)]
        command = [openssl, *how, *of, "-outform", "DER"]
        return subprocess.run(command, check=True, capture_output=True).stdout

    return sign_data


def program(result: int) -> ObjectSpec:
    code = asm.Program("answer", "socket")
    code.move(asm.R0, result)
    code.exit()
    return asm.build("signed", [code])


def load(spec: ObjectSpec, signature: bytes) -> None:
    with purebpf.load(spec.configure("answer", signature=signature, keyring=SESSION_KEYRING)):
        pass


def code_of(spec: ObjectSpec) -> bytes:
    return spec.functions["answer"].code


def test_a_signed_program_loads(sign: Callable[[bytes], bytes]) -> None:
    for result in (0, 1):
        spec = program(result)
        load(spec, sign(code_of(spec)))


def test_other_instructions_are_refused(sign: Callable[[bytes], bytes]) -> None:
    with pytest.raises(purebpf.VerifierError, match="of other instructions") as info:
        load(program(1), sign(code_of(program(0))))
    assert info.value.errno == errno.EKEYREJECTED


def test_a_damaged_signature_is_refused(sign: Callable[[bytes], bytes]) -> None:
    spec = program(0)
    signature = bytearray(sign(code_of(spec)))
    signature[-1] ^= 1
    with pytest.raises(purebpf.VerifierError) as info:
        load(spec, bytes(signature))
    assert info.value.errno in (errno.EKEYREJECTED, errno.EBADMSG)
