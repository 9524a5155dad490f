"""Run time and run count of programs, which the kernel only counts on request."""

from __future__ import annotations

import errno

from purebpf.abi.bpf import bpf_stats_type
from purebpf.errors import KernelError, NotSupportedError
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["run_time"]


def run_time() -> Descriptor:
    """Keep `run_time_ns` and `run_cnt` of every program of this machine, until it is closed.

        with statistics.run_time():
            ...
            print(program.info.run_cnt)

    Costs two clock reads for each run of each program. Others may have it on too: the numbers
    never go back, so compare two of them.

    Raises:
        NotSupportedError: a kernel without BPF_ENABLE_STATS (Linux 5.8, commit d46edd671a14).
        KernelError: EPERM, the process may not (CAP_SYS_ADMIN).
    """
    try:
        return bpf.enable_stats(bpf_stats_type.BPF_STATS_RUN_TIME)
    except KernelError as error:
        if error.errno == errno.EINVAL:
            reason = f"{error}; enable them for all processes: sysctl kernel.bpf_stats_enabled=1"
            raise NotSupportedError("run time statistics", reason) from None
        raise
