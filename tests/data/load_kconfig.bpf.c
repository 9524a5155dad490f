// Configuration values of every type that there is, as a program sees them.
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

extern int LINUX_KERNEL_VERSION __kconfig;
extern bool LINUX_HAS_BPF_COOKIE __kconfig;
extern int LINUX_HAS_SYSCALL_WRAPPER __kconfig __weak;
extern int LINUX_SOMETHING_ELSE __kconfig __weak;

extern bool CONFIG_BPF_SYSCALL __kconfig;
extern enum libbpf_tristate CONFIG_NET __kconfig;
extern char CONFIG_BPF __kconfig;
extern int CONFIG_HZ __kconfig;
extern unsigned long CONFIG_PHYSICAL_START __kconfig __weak;
extern short CONFIG_NO_SUCH_NUMBER __kconfig __weak;
extern char CONFIG_DEFAULT_HOSTNAME[4] __kconfig __weak;
extern char CONFIG_LOCALVERSION[32] __kconfig __weak;

volatile struct {
	__u64 version, cookie, wrapper, other;
	__u64 flag, state, letter, number, large, absent;
	char cut[4], text[32];
} seen;

SEC("syscall")
int read_configuration(void *context)
{
	seen.version = LINUX_KERNEL_VERSION;
	seen.cookie = LINUX_HAS_BPF_COOKIE;
	seen.wrapper = LINUX_HAS_SYSCALL_WRAPPER;
	seen.other = LINUX_SOMETHING_ELSE;
	seen.flag = CONFIG_BPF_SYSCALL;
	seen.state = CONFIG_NET;
	seen.letter = CONFIG_BPF;
	seen.number = CONFIG_HZ;
	seen.large = CONFIG_PHYSICAL_START;
	seen.absent = CONFIG_NO_SUCH_NUMBER;
	for (int i = 0; i < 4; i++)
		seen.cut[i] = CONFIG_DEFAULT_HOSTNAME[i];
	for (int i = 0; i < 32; i++)
		seen.text[i] = CONFIG_LOCALVERSION[i];
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
