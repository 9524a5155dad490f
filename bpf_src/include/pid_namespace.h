// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Numbers of tasks, as the pid namespace of who asks has them.
#ifndef PID_NAMESPACE_H
#define PID_NAMESPACE_H

#include "purebpf.h"

CONFIG u64 pid_namespace_dev = 0; // the namespace to number tasks in; 0: the initial one
CONFIG u64 pid_namespace_ino = 0;

// Numbers the current task, of which bpf_get_current_pid_tgid() says `both`. False: it has no
// number there, and gets 0.
static __always_inline bool own_numbers(u64 both, u32 *tgid, u32 *tid)
{
	struct bpf_pidns_info info = {};
	long err;

	if (!pid_namespace_ino) {
		*tgid = both >> 32;
		*tid = both;
		return true;
	}
	err = bpf_get_ns_current_pid_tgid(pid_namespace_dev, pid_namespace_ino, &info,
					  sizeof(info));
	*tgid = info.tgid;
	*tid = info.pid;
	return !err;
}

#endif
