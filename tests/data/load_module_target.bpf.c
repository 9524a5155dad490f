// A function that only a module has, by its name and by its module's too.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

volatile int calls;

SEC("?fentry/nf_conntrack_find_get")
int by_name(void *context)
{
	calls++;
	return 0;
}

SEC("?fentry/nf_conntrack:nf_conntrack_find_get")
int by_module(void *context)
{
	calls++;
	return 0;
}

SEC("?fentry.multi/nf_conntrack:nf_conntrack_find_g?t")
int by_pattern(void *context)
{
	calls++;
	return 0;
}

SEC("?fexit.multi/nf_conntrack:nf_conntrack_find_get")
int at_the_end(void *context)
{
	calls++;
	return 0;
}

SEC("?kprobe/nf_conntrack:nf_conntrack_find_get")
int by_probe(void *context)
{
	calls++;
	return 0;
}

SEC("?kprobe.multi/nf_conntrack_find_g?t")
int by_probes(void *context)
{
	calls++;
	return 0;
}

SEC("?fentry/nf_tables:nf_conntrack_find_get")
int by_another_module(void *context)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
