/* Calls whose entry the kernel does not trace, and calls without a return: `unseen KIND`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 5

static int filter(unsigned number, unsigned action, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void ask(void)
{
	/* on the stack: the kernel, which refuses the call, does not bring in the page of a literal */
	char from[] = "/nothing", to[] = "/nowhere";

	for (int i = 0; i < TIMES; i++)
		syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void on_signal(int number)
{
	(void)number;
}

static void *ask_in_thread(void *unused)
{
	filter(SYS_linkat, SECCOMP_RET_KILL_THREAD, 0);
	ask();
	return unused;
}

/* Another process answers for the kernel. */
static void ask_a_supervisor(void)
{
	int listener = filter(SYS_linkat, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);

	if (!fork()) {
		for (int i = 0; i < TIMES; i++) {
			struct seccomp_notif notice = {};
			struct seccomp_notif_resp answer = {.error = -EXDEV};

			ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice);
			answer.id = notice.id;
			ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		}
		_exit(0);
	}
	ask();
	wait(0);
}

/* A tracer lets no call of the child's reach the kernel (PTRACE_SYSEMU), or takes away its number. */
static void trace_a_child(int request)
{
	pid_t child = fork();
	int status, entering = 0;

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		ask();
		_exit(0);
	}
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		struct user_regs_struct registers;

		ptrace(request, child, 0, 0);
		waitpid(child, &status, 0);
		if (!WIFSTOPPED(status))
			return;
		ptrace(PTRACE_GETREGS, child, 0, &registers);
		entering = !entering;
		if (registers.orig_rax != SYS_linkat) {
			if (request == PTRACE_SYSEMU) {
				kill(child, SIGKILL);
				waitpid(child, &status, 0);
				return;
			}
			continue;
		}
		if (request == PTRACE_SYSEMU)
			registers.rax = -EXDEV;
		else if (entering)
			registers.orig_rax = -1;
		ptrace(PTRACE_SETREGS, child, 0, &registers);
	}
}

int main(int count, char **words)
{
	const char *kind = count > 1 ? words[1] : "";

	if (!strcmp(kind, "errno"))
		filter(SYS_linkat, SECCOMP_RET_ERRNO | EPERM, 0), ask();
	else if (!strcmp(kind, "zero"))
		filter(SYS_linkat, SECCOMP_RET_ERRNO, 0), ask();
	else if (!strcmp(kind, "trap"))
		signal(SIGSYS, on_signal), filter(SYS_linkat, SECCOMP_RET_TRAP, 0), ask();
	else if (!strcmp(kind, "nobody"))
		filter(SYS_linkat, SECCOMP_RET_TRACE, 0), ask();
	else if (!strcmp(kind, "process"))
		filter(SYS_linkat, SECCOMP_RET_KILL_PROCESS, 0), ask();
	else if (!strcmp(kind, "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), ask();
	else if (!strcmp(kind, "supervisor"))
		ask_a_supervisor();
	else if (!strcmp(kind, "emulated"))
		trace_a_child(PTRACE_SYSEMU);
	else if (!strcmp(kind, "skipped"))
		trace_a_child(PTRACE_SYSCALL);
	else if (!strcmp(kind, "thread")) {
		pthread_t thread;

		pthread_create(&thread, 0, ask_in_thread, 0);
		pthread_join(thread, 0);
	} else if (!strcmp(kind, "exec")) {
		filter(SYS_execve, SECCOMP_RET_ERRNO | EACCES, 0);
		for (int i = 0; i < TIMES; i++)
			execl("/nothing", "nothing", NULL);
	} else if (!strcmp(kind, "open")) {
		filter(SYS_openat, SECCOMP_RET_ERRNO | EACCES, 0);
		for (int i = 0; i < TIMES; i++)
			open("/nothing", O_RDONLY);
	} else if (!strcmp(kind, "signals")) {
		/* SIGKILL, and the end of all threads: without a siginfo */
		if (!fork())
			kill(getpid(), SIGKILL);
		wait(0);
		if (!fork()) {
			pthread_t thread;

			pthread_create(&thread, 0, (void *(*)(void *))pause, 0);
			usleep(20000);
			_exit(7);
		}
		wait(0);
	} else if (!strcmp(kind, "forks")) {
		for (int i = 0; i < TIMES; i++) {
			if (!fork())
				_exit(0);
			wait(0);
		}
	}
	return 0;
}
