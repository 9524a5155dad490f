// Refused: a function that is neither here nor the kernel's.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int nowhere(int x);

SEC("raw_tp/sched_switch")
int use(void *context)
{
	return nowhere(1);
}

char LICENSE[] SEC("license") = "GPL";
