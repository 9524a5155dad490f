// Programs on samples: one that writes long records and drops all, one that writes short ones and
// keeps all, and one that has another kind.
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct place {
	__u32 cpu;
	char comm[16];
};

struct numbered {
	__u64 number;
	struct place place;
	__u8 bytes[4];
};

struct padded {
	__u64 number;
	__u8 bytes[400];
};

__u64 seen = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__type(value, struct numbered);
} short_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} long_records SEC(".maps");

struct padded *long_records_record;

SEC("perf_event")
int keep_all(struct bpf_perf_event_data *ctx)
{
	struct numbered record = {.bytes = {1, 2, 3, 4}};

	record.number = seen;
	record.place.cpu = bpf_get_smp_processor_id();
	__sync_fetch_and_add(&seen, 1);
	bpf_get_current_comm(record.place.comm, sizeof(record.place.comm));
	bpf_perf_event_output(ctx, &short_records, BPF_F_CURRENT_CPU, &record, sizeof(record));
	return 1;
}

SEC("perf_event")
int drop_all(struct bpf_perf_event_data *ctx)
{
	struct padded record = {};

	record.number = seen;
	__sync_fetch_and_add(&seen, 1);
	bpf_perf_event_output(ctx, &long_records, BPF_F_CURRENT_CPU, &record, sizeof(record));
	return 0;
}

SEC("?tracepoint/syscalls/sys_enter_getppid")
int another_kind(void *ctx)
{
	return 0;
}
