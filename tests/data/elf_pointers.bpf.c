// A table of pointers, which nobody relocates: read with a warning.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

volatile int target;
volatile int *volatile pointers[2] = { &target, &target };

SEC("raw_tp/sched_switch")
int use(void *context)
{
	return pointers[1] != 0;
}

char LICENSE[] SEC("license") = "GPL";
