// Static probes: every argument of each, how many there are, and what the link's owner said.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/usdt.bpf.h>

struct {
	__u64 forms, guarded, silent;
	long values[BPF_USDT_MAX_ARG_CNT];
	long count, beyond, cookie, sum;
} seen;

SEC("?usdt//proc/self/exe:purebpf:forms")
int on_forms(struct pt_regs *regs)
{
	__sync_fetch_and_add(&seen.forms, 1);
	for (int i = 0; i < BPF_USDT_MAX_ARG_CNT; i++)
		bpf_usdt_arg(regs, i, &seen.values[i]);
	seen.count = bpf_usdt_arg_cnt(regs);
	seen.cookie = bpf_usdt_cookie(regs);
	return 0;
}

SEC("?usdt")
int BPF_USDT(on_guarded, unsigned int place)
{
	__sync_fetch_and_add(&seen.guarded, 1);
	__sync_fetch_and_add(&seen.sum, place);
	seen.cookie = bpf_usdt_cookie(ctx);
	return 0;
}

SEC("?usdt")
int on_silent(struct pt_regs *regs)
{
	__sync_fetch_and_add(&seen.silent, 1);
	seen.count = bpf_usdt_arg_cnt(regs);
	seen.beyond = bpf_usdt_arg(regs, 0, &seen.values[0]);
	return 0;
}


char LICENSE[] SEC("license") = "GPL";
