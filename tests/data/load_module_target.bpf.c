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

SEC("?fentry/nf_tables:nf_conntrack_find_get")
int by_another_module(void *context)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
