// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A pair of programs that do nothing.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tp_btf/sys_enter")
int enter(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int leave(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
