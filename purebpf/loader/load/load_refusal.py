"""Handles a refused program: the parts to leave out for a retry, and the words for the user.

Imported only when a program was refused.
"""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_prog_type
from purebpf.errors import ENOTSUPP, KernelError, VerifierError
from purebpf.loader.host import privilege
from purebpf.loader.load import verifier
from purebpf.loader.load.load_call import UNRELATED, LoadCall, Outcome
from purebpf.relocate.linked_program import LinkedProgram
from purebpf.spec import ObjectSpec, ProgramSpec

__all__ = ["explain_refusal", "is_about_the_call", "leave_out_unknown"]

_CALL_REFUSED = frozenset({errno.EINVAL, errno.E2BIG})
"""A field that this kernel does not know, or one beyond its union bpf_attr."""

_TRACING = frozenset(
    {
        bpf_prog_type.BPF_PROG_TYPE_KPROBE,
        bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT,
        bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT,
        bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT,
        bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE,
        bpf_prog_type.BPF_PROG_TYPE_TRACING,
        bpf_prog_type.BPF_PROG_TYPE_LSM,
        bpf_prog_type.BPF_PROG_TYPE_STRUCT_OPS,
        bpf_prog_type.BPF_PROG_TYPE_EXT,
    }
)
_ANYONE = frozenset(
    {bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER, bpf_prog_type.BPF_PROG_TYPE_SYSCALL}
)

_UNSIGNED = {
    errno.EKEYREJECTED: "the signature is of other instructions, or by another key",
    errno.ENOKEY: "the keyring does not have the key of the signature",
    errno.EBADMSG: "the signature is not PKCS#7 in DER",
    errno.EOPNOTSUPP: "this kernel was built without CONFIG_SYSTEM_DATA_VERIFICATION",
    errno.E2BIG: "this kernel does not know of signatures (Linux 6.18)",
}


def is_about_the_call(outcome: Outcome) -> bool:
    """Return True if the kernel refused the call itself, before the verifier looked at the
    program.
    """
    result = outcome.result
    return not outcome.log and isinstance(result, KernelError) and result.errno in _CALL_REFUSED


def leave_out_unknown(call: LoadCall, program: ProgramSpec) -> LoadCall:
    """Return the call without the parts that this kernel does not know."""
    from purebpf.loader.features import features

    fields = dict(call.fields)
    name = call.name if features.have_program_names() else b""
    if "func_info" in fields and not features.have_function_info():
        fields = {
            key: value
            for key, value in fields.items()
            if not key.startswith(("func_info", "line_info", "prog_btf_fd"))
        }
    if program.definition is not None and program.definition.attach_type_optional:
        fields["expected_attach_type"] = 0
    return call._replace(fields=fields, name=name)


def explain_refusal(
    program: ProgramSpec,
    linked: LinkedProgram,
    outcome: Outcome,
    spec: ObjectSpec,
    btf_problem: str,
) -> KernelError:
    """Return the refusal in words; `btf_problem` is the kernel's complaint about the object's
    BTF.
    """
    error, log = outcome.result, outcome.log
    assert isinstance(error, KernelError)
    number = error.errno or 0
    if number in UNRELATED:
        return KernelError(error.call, number, f"program {program.name!r}")
    line, instruction, source, suggestion = verifier.explain(log)
    poisoned = ""

    def source_of(index: int) -> str:
        if spec.btf is None or not linked.line_info:
            return ""
        return verifier.source_line(linked.line_info, spec.btf, index)

    if instruction is not None:
        source = source_of(instruction) or source
        poisoned = linked.poisoned.get(instruction, "")
    if not line:
        why, fix = _silent_refusal(program, error, log)
    else:
        why, fix = "", ""
        if not poisoned:
            from purebpf.loader.load.verifier_advice import Refusal, advise
            from purebpf.loader.load.verifier_report import split_report

            terms = (program.section, spec.license, source_of, program.name)
            fix = advise(Refusal(line, source, split_report(log)[0], *terms))
            fix = fix or suggestion[:1].lower() + suggestion[1:].rstrip(".")
    if btf_problem:
        without = f"it was loaded without part of its BTF: {btf_problem}"
        why = f"{why}. {without}" if why else without
    return VerifierError(
        program.name,
        number,
        log=log,
        line=line,
        source=source,
        poisoned=poisoned,
        why=why,
        fix=fix,
    )


def _silent_refusal(program: ProgramSpec, error: KernelError, log: str) -> tuple[str, str]:
    """Explain a refusal without a verifier log, with advice."""
    if error.errno == errno.EPERM:
        needed = ["CAP_BPF"]
        if program.type in _TRACING:
            needed.append("CAP_PERFMON")
        elif program.type not in _ANYONE:
            needed.append("CAP_NET_ADMIN")
        return privilege.advice(_host(), *needed)
    if program.signature and (why := _UNSIGNED.get(error.errno or 0, "")):
        return why, ""
    if error.errno == errno.EINVAL:
        from purebpf.loader.features.features import have_program_type

        if not (type_support := have_program_type(program.type)):
            return f"this kernel does not support these programs ({type_support})", ""
    if program.ifindex and (why := _unbound(program.ifindex, error.errno or 0)):
        return why, ""
    if program.type == bpf_prog_type.BPF_PROG_TYPE_STRUCT_OPS and error.errno == ENOTSUPP:
        why = "no struct_ops map of the object has it as a member"
        return (
            why,
            (
                f"set it with spec.struct_ops(map, member={program.name!r}), or leave it out "
                "with spec.only(...)"
            ),
        )
    if log.strip():
        last = log.rstrip().rpartition("\n")[2].strip()
        return f"no line of the verifier log gives a reason; the last one: {last}", ""
    return "the verifier log is empty", ""


def _unbound(ifindex: int, error: int) -> str:
    """Why the kernel does not bind a program: bpf_prog_dev_bound_init (kernel/bpf/offload.c)."""
    import socket

    try:
        name = socket.if_indextoname(ifindex)
    except OSError:
        return f"no interface has index {ifindex}"
    if error == errno.EOPNOTSUPP:
        return f"the driver of {name} cannot be asked about frames"
    return "" if error != errno.EINVAL else "binding a program to an interface needs Linux 6.3"


def _host() -> privilege.Host:
    """Return the facts about permission; RLIMIT_MEMLOCK only on a kernel where it matters.

    The helper (Linux 5.11, commit d05512618056) came with the accounting that replaced the limit.
    """
    from purebpf.abi.helpers import bpf_func_id
    from purebpf.loader.features import features

    host = privilege.read_host()
    socket_filter = bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER
    if features.have_helper(socket_filter, bpf_func_id.BPF_FUNC_ktime_get_coarse_ns):
        return host._replace(memlock=None)
    return host
