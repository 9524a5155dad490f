// Variables of the kernel, by their type: both are per-CPU, as are all that BTF describes.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct rq {
	int cpu;
} __attribute__((preserve_access_index));

extern const struct rq runqueues __ksym;
extern const int bpf_prog_active __ksym;

struct {
	__u64 runs, active, own, first, beyond;
} seen;

SEC("raw_tp/sched_switch")
int read_variables(void *context)
{
	const int *active = bpf_this_cpu_ptr(&bpf_prog_active);
	const struct rq *own = bpf_this_cpu_ptr(&runqueues);
	const struct rq *first = bpf_per_cpu_ptr(&runqueues, 0);

	seen.own += own->cpu == bpf_get_smp_processor_id();
	seen.first += first && first->cpu == 0;
	seen.beyond += bpf_per_cpu_ptr(&runqueues, 1 << 20) != 0;
	seen.active |= *active;
	seen.runs++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
