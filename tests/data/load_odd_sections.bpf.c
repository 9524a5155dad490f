// Sections whose targets are not what their kind of program takes.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("?uprobe/SSL_write")
int without_a_file(void *ctx)
{
	return 0;
}

SEC("?tp/sys_enter_lseek")
int without_a_category(void *ctx)
{
	return 0;
}

SEC("?kprobe/vfs-read")
int without_a_function(void *ctx)
{
	return 0;
}

SEC("?usdt/libc.so.6:setjmp")
int without_a_provider(void *ctx)
{
	return 0;
}
