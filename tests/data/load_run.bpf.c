// Programs for BPF_PROG_TEST_RUN.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct request {
	__u32 left;
	__u32 right;
	__u64 product;
};

SEC("syscall")
int multiply(struct request *request)
{
	request->product = (__u64)request->left * request->right;
	return 7;
}

SEC("xdp")
int flip(struct xdp_md *ctx)
{
	unsigned char *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if ((void *)(data + 14) > end)
		return XDP_ABORTED;
	data[0] ^= 0xff;
	return XDP_TX;
}

SEC("raw_tp/task_rename")
int raw_cpu(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[0] * 1000 + bpf_get_smp_processor_id();
}

// Its verification takes long enough to be interrupted.
SEC("?raw_tp/task_rename")
int long_verified(void *ctx)
{
	volatile __u64 sum = 0;

	for (int i = 0; i < 60000; i++)
		sum += i;
	return 0;
}
