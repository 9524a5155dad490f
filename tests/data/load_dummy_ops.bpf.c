// The struct_ops that the kernel has for tests, run with BPF_PROG_TEST_RUN.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct bpf_dummy_ops_state {
	int val;
};

struct bpf_dummy_ops {
	int (*test_1)(struct bpf_dummy_ops_state *state);
};

SEC("struct_ops/test_1")
int BPF_PROG(on_test_1, struct bpf_dummy_ops_state *state)
{
	return 0xf2f3f4f5;
}

SEC(".struct_ops")
struct bpf_dummy_ops dummy = {
	.test_1 = (void *)on_test_1,
};

char LICENSE[] SEC("license") = "GPL";
