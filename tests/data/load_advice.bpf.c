// The commonest reasons for which the verifier refuses programs, for the advice that follows them.
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct value {
	__u64 count;
	char name[16];
	__u32 marks[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, struct value);
} table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

int wanted;

SEC("?raw_tp/sys_enter")
int unchecked_value(void *ctx)
{
	__u32 key = 0;
	struct value *v = bpf_map_lookup_elem(&table, &key);

	v->count++;
	return 0;
}

SEC("?raw_tp/sys_enter")
int unchecked_record(void *ctx)
{
	__u64 *event = bpf_ringbuf_reserve(&ring, 8, 0);

	*event = 1;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

SEC("?raw_tp/sys_enter")
int unchecked_member(void *ctx)
{
	__u32 key = 0;
	struct value *v = bpf_map_lookup_elem(&table, &key);

	bpf_get_current_comm(v->name, sizeof(v->name));
	return 0;
}

SEC("?raw_tp/sys_enter")
int unchecked_argument(void *ctx)
{
	__u32 key = 0;
	struct value *v = bpf_map_lookup_elem(&table, &key);

	bpf_map_update_elem(&table, &key, v, 0);
	return 0;
}

SEC("?raw_tp/sys_enter")
int endless_branch(void *ctx)
{
	for (;;)
		if (bpf_get_prandom_u32() == 3)
			break;
	return 0;
}

SEC("?raw_tp/sys_enter")
int unbounded_index(void *ctx)
{
	__u32 key = 0;
	struct value *v = bpf_map_lookup_elem(&table, &key);

	if (!v)
		return 0;
	return v->marks[wanted];
}

SEC("?raw_tp/sys_enter")
int beyond_the_value(void *ctx)
{
	__u32 key = 0;
	struct value *v = bpf_map_lookup_elem(&table, &key);

	if (!v)
		return 0;
	return ((volatile __u32 *)v)[16];
}

SEC("?raw_tp/sys_enter")
int unbounded_length(void *ctx)
{
	char text[64];

	bpf_probe_read_kernel(text, wanted, ctx);
	return 0;
}

SEC("?raw_tp/sys_enter")
int too_long(void *ctx)
{
	char text[16];

	bpf_probe_read_kernel(text, 32, ctx);
	return 0;
}

SEC("?raw_tp/sys_enter")
int unbounded_stack(void *ctx)
{
	volatile char room[16] = {};

	return room[wanted];
}

SEC("?xdp")
int unchecked_packet(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;

	return eth->h_proto == 8 ? XDP_DROP : XDP_PASS;
}

SEC("?raw_tp/sys_enter")
int leaked_record(void *ctx)
{
	__u64 *event = bpf_ringbuf_reserve(&ring, 8, 0);

	if (!event)
		return 0;
	*event = 1;
	return 0;
}

SEC("?raw_tp/sys_enter")
int unset_argument(void *ctx, int second)
{
	return second;
}

SEC("?raw_tp/sys_enter")
int kernel_pointer(struct bpf_raw_tracepoint_args *ctx)
{
	return *(volatile long *)ctx->args[0];
}

SEC("?raw_tp/sys_enter")
int after_submit(void *ctx)
{
	__u64 *event = bpf_ringbuf_reserve(&ring, 8, 0);

	if (!event)
		return 0;
	bpf_ringbuf_submit(event, 0);
	*event = 2;
	return 0;
}

SEC("?raw_tp/sys_enter")
int number_for_pointer(void *ctx)
{
	bpf_map_lookup_elem(&table, (void *)(long)wanted);
	return 0;
}

SEC("?xdp")
int helper_of_others(struct xdp_md *ctx)
{
	return bpf_get_stackid(ctx, &table, 0);
}

SEC("?xdp")
int beyond_the_context(struct xdp_md *ctx)
{
	return *(volatile int *)((void *)ctx + 64);
}

SEC("?raw_tp/sys_enter")
int moved_context(struct bpf_raw_tracepoint_args *ctx)
{
	return *(volatile long *)((void *)ctx + (wanted & 8));
}

SEC("?cgroup/connect4")
int odd_return(void *ctx)
{
	return 7;
}

SEC("?raw_tp/sys_enter")
int other_map(void *ctx)
{
	__u64 data = 1;

	return bpf_perf_event_output(ctx, &table, 0, &data, 8);
}

SEC("?raw_tp/sys_enter")
int constant_written(void *ctx)
{
	static const volatile int limit = 3;

	*(volatile int *)&limit = 4;
	return 0;
}
