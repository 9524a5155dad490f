// Programs that are static in C, beside a static subprogram in a section of programs.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

__attribute__((section("socket"), noinline)) static int add_one(int number)
{
	asm volatile("" : "+r"(number));
	return number + 1;
}

SEC("socket")
static int is_static(void *ctx)
{
	return add_one(6);
}

SEC("socket")
int is_global(void *ctx)
{
	return add_one(10);
}

SEC("socket/other")
static int is_static_elsewhere(void *ctx)
{
	return 3;
}
