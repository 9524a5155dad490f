// No license, no maps, no data.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("perf_event")
int nothing(void *context)
{
	return 0;
}
