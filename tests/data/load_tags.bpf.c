// What declaration tags say to the verifier: a function to call when the program throws, a
// parameter that is the program's context.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define tagged(text) __attribute__((btf_decl_tag(text)))

extern void bpf_throw(__u64 cookie) __ksym;

__u64 frames;

__noinline int scaled(int x)
{
	return x * 2;
}

__noinline int on_throw(__u64 cookie)
{
	return scaled(cookie) + 1;
}

__noinline int length(struct __sk_buff *packet tagged("arg:ctx"))
{
	return packet->len;
}

SEC("tc")
tagged("exception_callback:on_throw")
int throws(struct __sk_buff *packet)
{
	if (packet->len > 20)
		bpf_throw(packet->len);
	return 7;
}

SEC("tc")
int measures(struct __sk_buff *packet)
{
	return length(packet);
}

SEC("xdp")
int drops(struct xdp_md *frame)
{
	__sync_fetch_and_add(&frames, 1);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
