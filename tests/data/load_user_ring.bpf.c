// Takes what user space wrote to a ring, when it is run.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct order {
	__u32 amount;
	char what[12];
};

struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 4096);
} orders SEC(".maps");

struct order *orders_record; // what the records are

volatile __u64 taken = 0;
volatile __u64 total = 0;
volatile __u64 short_ones = 0;
volatile char last[12];

static long take(struct bpf_dynptr *record, void *ctx)
{
	struct order order = {};

	if (bpf_dynptr_read(&order, sizeof(order), record, 0, 0))
		short_ones += 1;
	total += order.amount;
	taken += 1;
	__builtin_memcpy((void *)last, order.what, sizeof(order.what));
	return 0;
}

SEC("syscall") int work(void *ctx)
{
	return bpf_user_ringbuf_drain(&orders, take, 0, 0);
}
