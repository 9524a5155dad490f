#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static __attribute__((noinline)) long read_profile(const char *path)
{
	char text[4096];
	int file = open(path, O_RDONLY);
	long count = read(file, text, sizeof(text));

	close(file);
	return count;
}

static void answer(int listener)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp reply = { 0 };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
		return;
	usleep(12000);
	reply.id = asked.id;
	reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

int main(int argc, char **argv)
{
	int told[2], number = -1, child;
	long total = 0;

	if (argc < 2 || pipe(told))
		return 1;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "render");
		number = install_filter();
		if (write(told[1], &number, sizeof(number)) < 0)
			return 1;
		for (;;) {
			total += read_profile(argv[1]);
			usleep(500);
		}
	}
	if (read(told[0], &number, sizeof(number)) < 0 || number < 0)
		return 1;
	number = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), number, 0);
	for (;;)
		answer(number);
}
