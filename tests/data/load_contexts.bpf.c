// Functions whose parameter is the context of whichever program calls them, in any spelling.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>

#define __context __attribute__((btf_decl_tag("arg:ctx")))

__u64 reached;

__noinline int length(int more, void *packet __context)
{
	return ((struct __sk_buff *)packet)->len + more;
}

__noinline int interface(struct xdp_md *frame __context, void *same __context)
{
	return frame->ingress_ifindex + ((struct xdp_md *)same)->rx_queue_index;
}

__noinline int counted(struct pt_regs *regs __context)
{
	__sync_fetch_and_add(&reached, regs != 0);
	return bpf_get_func_ip(regs) != 0;
}

SEC("tc")
int measures(struct __sk_buff *packet)
{
	return length(1, packet);
}

SEC("xdp")
int names(struct xdp_md *frame)
{
	return interface(frame, frame);
}

SEC("?kprobe/__x64_sys_getpriority")
int counts(struct pt_regs *regs)
{
	return counted(regs);
}

char LICENSE[] SEC("license") = "GPL";
