// A program for each hook of a cgroup. Each counts its runs in hits[attach type], and refuses
// where it may when `refuse` is its attach type.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

// Linux 6.7, which is younger than the headers this is compiled with.
enum { UNIX_CONNECT = 49, UNIX_SENDMSG, UNIX_RECVMSG, UNIX_GETPEERNAME, UNIX_GETSOCKNAME };

volatile __u64 hits[64];
volatile __u32 refuse = 64;
volatile __u32 order[8]; // the numbers of the ordered programs, as they ran
volatile __u32 ran = 0;

#define HOOK(section, name, type, context)                                                         \
	SEC(section) int name(context *ctx)                                                            \
	{                                                                                              \
		__sync_fetch_and_add(&hits[type], 1);                                                      \
		return refuse != type;                                                                     \
	}

// Hooks that must not refuse.
#define WITNESS(section, name, type, context)                                                      \
	SEC(section) int name(context *ctx)                                                            \
	{                                                                                              \
		__sync_fetch_and_add(&hits[type], 1);                                                      \
		return 1;                                                                                  \
	}

HOOK("cgroup_skb/ingress", ingress, BPF_CGROUP_INET_INGRESS, struct __sk_buff)
HOOK("cgroup_skb/egress", egress, BPF_CGROUP_INET_EGRESS, struct __sk_buff)
HOOK("cgroup/sock_create", sock_create, BPF_CGROUP_INET_SOCK_CREATE, struct bpf_sock)
HOOK("cgroup/sock_release", sock_release, BPF_CGROUP_INET_SOCK_RELEASE, struct bpf_sock)
HOOK("cgroup/post_bind4", post_bind4, BPF_CGROUP_INET4_POST_BIND, struct bpf_sock)
HOOK("cgroup/post_bind6", post_bind6, BPF_CGROUP_INET6_POST_BIND, struct bpf_sock)
HOOK("cgroup/bind4", bind4, BPF_CGROUP_INET4_BIND, struct bpf_sock_addr)
HOOK("cgroup/bind6", bind6, BPF_CGROUP_INET6_BIND, struct bpf_sock_addr)
HOOK("cgroup/connect4", connect4, BPF_CGROUP_INET4_CONNECT, struct bpf_sock_addr)
HOOK("cgroup/connect6", connect6, BPF_CGROUP_INET6_CONNECT, struct bpf_sock_addr)
HOOK("cgroup/sendmsg4", sendmsg4, BPF_CGROUP_UDP4_SENDMSG, struct bpf_sock_addr)
HOOK("cgroup/sendmsg6", sendmsg6, BPF_CGROUP_UDP6_SENDMSG, struct bpf_sock_addr)
WITNESS("cgroup/recvmsg4", recvmsg4, BPF_CGROUP_UDP4_RECVMSG, struct bpf_sock_addr)
WITNESS("cgroup/recvmsg6", recvmsg6, BPF_CGROUP_UDP6_RECVMSG, struct bpf_sock_addr)
WITNESS("cgroup/getpeername4", getpeername4, BPF_CGROUP_INET4_GETPEERNAME, struct bpf_sock_addr)
WITNESS("cgroup/getpeername6", getpeername6, BPF_CGROUP_INET6_GETPEERNAME, struct bpf_sock_addr)
WITNESS("cgroup/getsockname4", getsockname4, BPF_CGROUP_INET4_GETSOCKNAME, struct bpf_sock_addr)
WITNESS("cgroup/getsockname6", getsockname6, BPF_CGROUP_INET6_GETSOCKNAME, struct bpf_sock_addr)
HOOK("cgroup/connect_unix", connect_unix, UNIX_CONNECT, struct bpf_sock_addr)
HOOK("cgroup/sendmsg_unix", sendmsg_unix, UNIX_SENDMSG, struct bpf_sock_addr)
WITNESS("cgroup/recvmsg_unix", recvmsg_unix, UNIX_RECVMSG, struct bpf_sock_addr)
WITNESS("cgroup/getpeername_unix", getpeername_unix, UNIX_GETPEERNAME,
	struct bpf_sock_addr)
WITNESS("cgroup/getsockname_unix", getsockname_unix, UNIX_GETSOCKNAME,
	struct bpf_sock_addr)
HOOK("cgroup/dev", device, BPF_CGROUP_DEVICE, struct bpf_cgroup_dev_ctx)
HOOK("cgroup/sysctl", sysctl, BPF_CGROUP_SYSCTL, struct bpf_sysctl)
HOOK("cgroup/getsockopt", getsockopt, BPF_CGROUP_GETSOCKOPT, struct bpf_sockopt)
HOOK("cgroup/setsockopt", setsockopt, BPF_CGROUP_SETSOCKOPT, struct bpf_sockopt)
HOOK("?lsm_cgroup/socket_bind", lsm_bind, BPF_LSM_CGROUP, void)

SEC("sockops") int socket_operations(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		__sync_fetch_and_add(&hits[BPF_CGROUP_SOCK_OPS], 1);
	return 1;
}

// Programs that say in which order they ran.
static __always_inline int took_turn(__u32 number)
{
	if (ran < 8)
		order[ran & 7] = number;
	ran += 1;
	return 1;
}

SEC("cgroup/sock_create") int first(struct bpf_sock *ctx) { return took_turn(1); }
SEC("cgroup/sock_create") int second(struct bpf_sock *ctx) { return took_turn(2); }
SEC("cgroup/sock_create") int third(struct bpf_sock *ctx) { return took_turn(3); }

// The storage that every cgroup with such a program has.
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
	__type(key, struct bpf_cgroup_storage_key);
	__type(value, __u64);
} created SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE);
	__type(key, struct bpf_cgroup_storage_key);
	__type(value, __u64);
} created_per_cpu SEC(".maps");

SEC("cgroup/sock_create") int with_storage(struct bpf_sock *ctx)
{
	__u64 *count = bpf_get_local_storage(&created, 0);

	__sync_fetch_and_add(count, 1);
	count = bpf_get_local_storage(&created_per_cpu, 0);
	*count += 1;
	return 1;
}
