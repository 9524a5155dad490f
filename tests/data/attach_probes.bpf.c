// One program for each way to watch a system call of one process, and what it returns.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

const volatile __u32 own_tgid;

extern bool LINUX_HAS_BPF_COOKIE __kconfig;

struct {
	__u64 kprobe, kretprobe, ksyscall, kretsyscall, multi, multi_return, session;
	__u64 fentry, fexit, fsession, fentries, fexits, fsessions, fmod_ret, lsm, uprobe, uretprobe, uprobes, uprobe_session;
	__u64 cookie;
	long returned;
} seen;

static __always_inline bool is_own(void)
{
	return bpf_get_current_pid_tgid() >> 32 == own_tgid;
}

#define COUNT(section, name, context)                             \
	SEC("?" section)                                          \
	int on_##name(context *regs)                              \
	{                                                         \
		if (is_own()) {                                   \
			__sync_fetch_and_add(&seen.name, 1);      \
			if (LINUX_HAS_BPF_COOKIE)                 \
				seen.cookie = bpf_get_attach_cookie(regs); \
		}                                                 \
		return 0;                                         \
	}

#define COUNT_RETURN(section, name)                               \
	SEC("?" section)                                          \
	int on_##name(struct pt_regs *regs)                       \
	{                                                         \
		if (is_own()) {                                   \
			__sync_fetch_and_add(&seen.name, 1);      \
			seen.returned = regs->rax;                \
		}                                                 \
		return 0;                                         \
	}

COUNT("kprobe/__x64_sys_getpriority", kprobe, struct pt_regs)
COUNT_RETURN("kretprobe/__x64_sys_getpriority", kretprobe)
COUNT("ksyscall/getpriority", ksyscall, struct pt_regs)
COUNT_RETURN("kretsyscall/getpriority", kretsyscall)
COUNT("kprobe.multi/__x64_sys_*etpriority", multi, struct pt_regs)
COUNT_RETURN("kretprobe.multi/__x64_sys_?etpriority", multi_return)
COUNT("kprobe.session/__x64_sys_?etpriority", session, struct pt_regs)
COUNT("fentry/__x64_sys_getpriority", fentry, void)
COUNT("fsession/__x64_sys_getpriority", fsession, void)
COUNT("fentry.multi/__x64_sys_?etpriority", fentries, void)
COUNT("fexit.multi/__x64_sys_?etpriority", fexits, void)
COUNT("fsession.multi/__x64_sys_?etpriority", fsessions, void)
COUNT("uprobe/libc.so.6:getpriority", uprobe, struct pt_regs)
COUNT_RETURN("uretprobe/libc.so.6:getpriority", uretprobe)
COUNT("uprobe.multi/libc.so.6:?etpriority", uprobes, struct pt_regs)
COUNT("uprobe.session/libc.so.6:?etpriority", uprobe_session, struct pt_regs)

SEC("?fexit/__x64_sys_getpriority")
int BPF_PROG(on_fexit, const struct pt_regs *regs, long returned)
{
	if (is_own()) {
		__sync_fetch_and_add(&seen.fexit, 1);
		seen.returned = returned;
	}
	return 0;
}

SEC("?fmod_ret/security_task_getscheduler")
int BPF_PROG(on_fmod_ret, void *task, int returned)
{
	if (!is_own())
		return returned;
	__sync_fetch_and_add(&seen.fmod_ret, 1);
	return -1;
}

SEC("?lsm/task_getscheduler")
int BPF_PROG(on_lsm, void *task, int so_far)
{
	if (!is_own())
		return so_far;
	__sync_fetch_and_add(&seen.lsm, 1);
	return -1;
}

char LICENSE[] SEC("license") = "GPL";
