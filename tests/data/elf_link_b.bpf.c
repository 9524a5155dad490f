// The other half: a strong `overridden` replaces the weak one, and `same_name` is there again.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern volatile int shared;
static volatile int private_state = 3;

static __noinline int same_name(int x)
{
	return x * private_state;
}

__noinline int overridden(int x)
{
	return shared - x;
}

__noinline int from_b(int x)
{
	return same_name(x) + shared;
}

SEC("raw_tp/sched_switch")
int entry_b(void *context)
{
	return same_name(shared) + overridden(1);
}

char LICENSE[] SEC("license") = "GPL";
