// A program with a function of its own, and what can be put in that function's place.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile __u64 entered = 0;

__attribute__((noinline)) int decide(struct xdp_md *ctx)
{
	int answer = XDP_PASS;

	asm volatile("" : "+r"(answer)); // or the caller would know the answer
	return answer;
}

SEC("xdp") int ask(struct xdp_md *ctx)
{
	return decide(ctx);
}

SEC("xdp") int ask_as_well(struct xdp_md *ctx)
{
	return decide(ctx);
}

SEC("?freplace/decide") int refuse(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("?freplace/decide") int refuse_otherwise(int *ctx)
{
	return XDP_DROP;
}

SEC("?freplace/no_such_function") int replaces_nothing(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("?fentry/decide") int watch(void *ctx)
{
	__sync_fetch_and_add(&entered, 1);
	return 0;
}
