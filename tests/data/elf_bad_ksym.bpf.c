// What no kernel has and is not weak, and what the kernel has with another type.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern int no_such_function(int) __ksym;
extern const int no_such_variable __ksym;
extern const void no_such_symbol __ksym;
struct unlike {
	int x;
};

extern const struct unlike bpf_prog_active __ksym;

volatile __u64 seen;

SEC("?tp_btf/sched_switch")
int call_it(void *context)
{
	return no_such_function(1);
}

SEC("?raw_tp/sched_switch")
int read_it(void *context)
{
	seen = no_such_variable;
	return 0;
}

SEC("?raw_tp/sched_switch")
int take_its_address(void *context)
{
	seen = (__u64)&no_such_symbol;
	return 0;
}

SEC("?raw_tp/sched_switch")
int mistake_it(void *context)
{
	seen = *(const int *)bpf_this_cpu_ptr(&bpf_prog_active);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
