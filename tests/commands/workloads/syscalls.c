// Makes known numbers of system calls. `syscalls [wait] KIND [NUMBER...]`; with `wait` it prints
// "ready", waits for a line, does it, prints "done" and waits for the end of its input.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **arguments;
static long count = 1;

static long number(int index)
{
	return atol(arguments[index]);
}

static void calls(long times)
{
	for (long i = 0; i < times; i++)
		syscall(SYS_getppid);
}

static void *thread(void *unused)
{
	prctl(PR_SET_NAME, "worker");
	calls(count);
	return NULL;
}

static void threads(long times)
{
	pthread_t made[64];

	for (long i = 0; i < times; i++)
		pthread_create(&made[i], NULL, thread, NULL);
	for (long i = 0; i < times; i++)
		pthread_join(made[i], NULL);
}

static void short_threads(long times)
{
	pthread_t made;

	for (long i = 0; i < times; i++) {
		pthread_create(&made, NULL, thread, NULL);
		pthread_join(made, NULL);
	}
}

// Many threads that live at once, with stacks as small as they may be.
static pthread_barrier_t everybody;

static void *patient(void *unused)
{
	calls(count);
	pthread_barrier_wait(&everybody);
	return NULL;
}

static void crowd(long times)
{
	pthread_t *made = calloc(times, sizeof(*made));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	pthread_barrier_init(&everybody, NULL, times + 1);
	for (long i = 0; i < times; i++)
		if (pthread_create(&made[i], &small, patient, NULL))
			exit(3);
	pthread_barrier_wait(&everybody);
	for (long i = 0; i < times; i++)
		pthread_join(made[i], NULL);
}

static void forks(long times)
{
	for (long i = 0; i < times; i++)
		if (!fork()) {
			calls(count);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void failures(void)
{
	for (long i = 0; i < number(0); i++)
		open("/nonexistent", O_RDONLY);
	for (long i = 0; i < number(1); i++)
		syscall(SYS_dup, -1);
	for (long i = 0; i < number(2); i++)
		syscall(9999);
}

static void sleeps(long times, long ns)
{
	struct timespec length = {ns / 1000000000, ns % 1000000000};

	for (long i = 0; i < times; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
}

static void *sleeper(void *unused)
{
	sleeps(1, number(1));
	return NULL;
}

static void long_sleeps(long times)
{
	pthread_t made[64];

	for (long i = 0; i < times; i++)
		pthread_create(&made[i], NULL, sleeper, NULL);
	for (long i = 0; i < times; i++)
		pthread_join(made[i], NULL);
}

#ifdef __x86_64__
static void other_abis(long i386, long x32)
{
	for (long i = 0; i < i386; i++) {
		long result = 64; // getppid

		asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
	}
	for (long i = 0; i < x32; i++)
		syscall(0x40000000 | SYS_getppid);
}
#else
static void other_abis(long i386, long x32)
{
}
#endif

static void refused(long times)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	calls(times);
}

static void *execute(void *unused)
{
	execl("/proc/self/exe", "again", "calls", arguments[0], NULL);
	return NULL;
}

static void execute_in_thread(void)
{
	pthread_t made;

	pthread_create(&made, NULL, execute, NULL);
	pause();
}

static void act(const char *kind)
{
	if (!strcmp(kind, "calls"))
		calls(number(0));
	else if (!strcmp(kind, "threads"))
		threads(number(0));
	else if (!strcmp(kind, "short-threads"))
		short_threads(number(0));
	else if (!strcmp(kind, "crowd"))
		crowd(number(0));
	else if (!strcmp(kind, "forks"))
		forks(number(0));
	else if (!strcmp(kind, "failures"))
		failures();
	else if (!strcmp(kind, "sleeps"))
		sleeps(number(0), number(1));
	else if (!strcmp(kind, "long-sleeps"))
		long_sleeps(number(0));
	else if (!strcmp(kind, "abis"))
		other_abis(number(0), number(1));
	else if (!strcmp(kind, "refused"))
		refused(number(0));
	else if (!strcmp(kind, "execute-in-thread"))
		execute_in_thread();
	else
		exit(2);
}

int main(int argc, char **argv)
{
	int waits = argc > 2 && !strcmp(argv[1], "wait");
	char line[16];

	argv += waits;
	arguments = argv + 2;
	if (getenv("CALLS"))
		count = atol(getenv("CALLS"));
	if (waits) {
		write(1, "ready\n", 6);
		read(0, line, sizeof(line));
	}
	act(argv[1]);
	if (waits) {
		write(1, "done\n", 5);
		while (read(0, line, sizeof(line)) > 0)
			;
	}
	return 0;
}
