// One half of elf_linked.bpf.o, made by `bpftool gen object`; see elf_link_b.bpf.c.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

volatile int shared = 1;
static volatile int private_state = 2;

int from_b(int x);

static __noinline int same_name(int x)
{
	return x + private_state;
}

__weak __noinline int overridden(int x)
{
	return shared + x + 100;
}

SEC("raw_tp/sched_switch")
int entry_a(void *context)
{
	return same_name(shared) + overridden(1) + from_b(2);
}

char LICENSE[] SEC("license") = "GPL";
