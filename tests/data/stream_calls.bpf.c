// Streams the entry and the return of every system call of one process.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 tgid = 0;

struct moment {
	__u64 time_ns;
	__u32 tid;
	__u32 nr;     // of an entry
	__u32 enters; // else it returns
	__u32 pad;
};

struct moment *moments_record; // what the ring holds

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} moments SEC(".maps");

__u64 lost = 0;

static __always_inline int stream(__u32 nr, __u32 enters)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u64 id = bpf_get_current_pid_tgid();
	struct moment *moment;

	if (id >> 32 != tgid)
		return 0;
	moment = bpf_ringbuf_reserve(&moments, sizeof(*moment), 0);
	if (!moment) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	*moment = (struct moment){.time_ns = now_ns, .tid = id, .nr = nr, .enters = enters};
	bpf_ringbuf_submit(moment, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("raw_tp/sys_enter")
int on_enter(struct bpf_raw_tracepoint_args *ctx)
{
	return stream(ctx->args[1], 1);
}

SEC("raw_tp/sys_exit")
int on_return(struct bpf_raw_tracepoint_args *ctx)
{
	return stream(0, 0);
}

char LICENSE[] SEC("license") = "GPL";
