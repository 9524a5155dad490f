/* Calls of a 32-bit program, without a C library, for a comparison with strace. */
#include <asm/unistd_32.h>

#define C(name, ...) call6(__NR_##name, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define call6(nr, a, b, c, d, e, f, ...) \
	call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define S(number, ...) C(socketcall, number, ((long[6]){__VA_ARGS__}))
#define P(value) ((long)(value))

typedef unsigned long long u64;
typedef unsigned int u32;

struct pair {
	int first, second;
};

struct iovec {
	const void *base;
	u32 size;
};

struct msghdr {
	void *name;
	int name_size;
	struct iovec *parts;
	u32 count;
	void *control;
	u32 control_size, flags;
};

struct mmsghdr {
	struct msghdr header;
	u32 size;
};

struct flock {
	short type, whence;
	int start, length, pid;
};

struct flock64 {
	short type, whence;
	long long start, length;
	int pid;
} __attribute__((packed));

struct sigaction {
	void *handler;
	u32 flags;
	void *restorer;
	u64 mask;
};

struct user_desc {
	u32 entry, base, limit, flags;
};

static char buffer[8192];

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	long arguments[] = {nr, f};
	long result;

	asm volatile("push %%ebp; mov 4(%%eax), %%ebp; mov (%%eax), %%eax; int $0x80; pop %%ebp"
		     : "=a"(result)
		     : "a"(arguments), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
		     : "memory");
	return result;
}

/* Returns of signal handlers, as vdso has them: sigreturn(2) finds its frame behind the number. */
asm("restore: pop %eax; mov $119, %eax; int $0x80\n"
    "rt_restore: mov $173, %eax; int $0x80\n");
extern char restore[], rt_restore[];

static void on_signal(int number)
{
	(void)number;
}

static void files(void)
{
	struct iovec out[2] = {{"first ", 6}, {"second, which is longer than thirty-two bytes\n", 46}};
	struct iovec in[2] = {{buffer, 5}, {buffer + 100, 60}};
	struct flock lock = {1, 0, 1, 2, 0};
	struct flock64 lock64 = {1, 0, 1, 0x200000000LL, 0};
	struct pair times[2] = {{1, 2}, {0, 0x3fffffff}}, old[2] = {{1, 2}, {3, 4}};
	u64 times64[4] = {5, 6, 7, 8}, where = 3;
	int fd, at = 0, ends[2];

	fd = C(open, "file", 0102 | 02000000, 0640);
	C(write, fd, "text of twenty bytes", 20);
	C(writev, fd, out, 2);
	C(pwrite64, fd, "patch", 5, 7, 0);
	C(pwritev, fd, out, 2, 100, 0);
	C(pwritev2, fd, out, 1, 200, 0, 0);
	C(lseek, fd, -2, 2);
	C(lseek, fd, 0, 0);
	C(_llseek, fd, 1, 2, buffer, 0);
	C(_llseek, fd, 0, 0, buffer, 0);
	C(readv, fd, in, 2);
	C(pread64, fd, buffer, 100, 3, 0);
	C(preadv, fd, in, 2, 1, 0);
	C(stat64, "file", buffer);
	C(lstat64, "nothing", buffer);
	C(fstat64, fd, buffer);
	C(stat64, "/dev/null", buffer);
	C(stat, "/proc", buffer);
	C(fstatat64, -100, "file", buffer, 0x100);
	C(statx, -100, "file", 0x100, 1, buffer);
	C(statfs, "/proc", buffer);
	C(statfs64, "/proc", 84, buffer);
	C(fstatfs64, -1, 84, buffer);
	C(ftruncate64, fd, 50, 0);
	C(truncate64, "file", 40, 0);
	C(truncate, "file", 40);
	C(fallocate, fd, 1, 0, 0, 4096, 0);
	C(fadvise64_64, fd, 0, 0, 100, 0, 2);
	C(fadvise64, fd, 0, 0, 100, 2);
	C(readahead, fd, 0, 0, 100);
	C(sync_file_range, fd, 0, 0, 10, 0, 2);
	C(fcntl64, fd, 3);
	C(fcntl64, fd, 6, &lock);
	C(fcntl64, fd, 5, &lock);
	C(fcntl64, fd, 13, &lock64);
	C(fcntl64, fd, 12, &lock64);
	C(fcntl, fd, 4, 02002);
	C(utimensat, -100, "file", times, 0);
	C(utimensat_time64, -100, "file", times64, 0);
	C(utimes, "file", old);
	C(utime, "file", old);
	C(chown32, "file", 0, 0);
	C(lchown, "file", -1, 0);
	C(pipe2, ends, 02000000);
	C(sendfile, ends[1], fd, &at, 8);
	where = 3;
	C(sendfile64, ends[1], fd, &where, 8);
	C(splice, ends[0], 0, fd, &where, 4, 2);
	C(ioctl, ends[0], 0x541b, buffer);
	C(umount, "nothing");
	C(umount2, "nothing", 2);
	C(getdents64, -1, buffer, 100);
}

static void memory_and_tasks(void)
{
	struct user_desc area = {-1, 0x1000, 0xfffff, 0x51};
	long pages[6] = {0, 4096, 3, 0x22, -1, 0};
	int status, *flag = (int *)(buffer + 128);
	char *page;

	page = (char *)C(mmap2, 0, 8192, 3, 0x22, -1, 0);
	C(mmap2, 0, 4096, 1, 2, -1, 5);
	C(munmap, page, 4096);
	C(mmap, pages);
	C(brk, 0);
	C(set_thread_area, &area);
	C(getrlimit, 7, buffer);
	C(ugetrlimit, 3, buffer);
	C(setrlimit, 4, ((struct pair[]){{0, -1}}));
	C(prlimit64, 0, 4, 0, buffer);
	C(getrusage, 7, buffer);
	C(getuid32);
	C(setreuid32, -1, 0);
	C(setregid, -1, 0);
	C(getgroups32, 0, 0);
	C(setgroups32, 1, &status);
	C(uname, buffer);
	C(personality, -1);
	C(prctl, 15, "renamed");
	C(sched_rr_get_interval, -1, buffer);
	C(sched_getaffinity, 0, 8, buffer);
	C(waitpid, -1, &status, 1);
	if (!C(clone, 17, 0, 0, 0, 0))
		C(exit_group, 7);
	C(waitpid, -1, &status, 0);
	if (!C(fork))
		C(exit, 3);
	C(wait4, -1, &status, 0, 0);
	*flag = 0;
	if (!C(clone, 0x180011, 0, flag, &area, 0))
		C(exit, 0);
	C(waitid, 0, 0, buffer, 4, 0);
	C(execve, "nothing", ((const char *[]){"zero", "one", 0}), ((const char *[]){"A=1", 0}));
}

static void signals(void)
{
	struct sigaction action = {on_signal, 0x04000000 | 0x10000000, restore, 1 << 4 | 1LL << 40};
	u64 set = 1 << 9 | 1 << 16, none = 0, other = 1 << 11;
	struct pair now = {0, 0};
	int self = C(getpid);

	C(rt_sigaction, 10, &action, 0, 8);
	action.flags |= 4;
	action.restorer = rt_restore;
	C(rt_sigaction, 12, &action, buffer, 8);
	C(rt_sigaction, 10, 0, buffer, 8);
	C(rt_sigprocmask, 2, &set, 0, 8);
	C(rt_sigprocmask, 2, &none, buffer, 8);
	C(rt_sigpending, buffer, 8);
	C(rt_sigtimedwait, &set, 0, &now, 8);
	C(rt_sigtimedwait_time64, &set, 0, &none, 8);
	C(kill, self, 10);
	set |= 1LL << 40;
	C(rt_sigprocmask, 2, &set, 0, 8);
	C(kill, self, 12);
	C(rt_sigprocmask, 2, &other, 0, 8);
	C(sigaltstack, ((long[]){P(buffer), 0, 4096}), 0);
	C(sigaltstack, 0, buffer + 4096);
}

static void times_and_events(void)
{
	struct pair ts = {0, 1000}, bad = {-1, 0}, timer[2] = {{0, 0}, {100, 0}}, none[2] = {{0, 0}, {0, 0}};
	long long wide[2] = {0, 1000}, mask = 1 << 9;
	struct {
		void *mask;
		u32 size;
	} selected = {&mask, 8};
	struct {
		int fd;
		short events, got;
	} polled = {0, 2, 0};
	struct {
		u32 events;
		u64 data;
	} __attribute__((packed)) event = {1, 77};
	long select_words[5] = {0, 0, 0, 0, P(none)};
	int fd, epoll;

	C(nanosleep, &ts, 0);
	C(nanosleep, &bad, 0);
	C(clock_nanosleep, 1, 0, &ts, buffer);
	C(clock_nanosleep_time64, 1, 0, wide, 0);
	C(clock_getres, 1, buffer);
	C(clock_getres_time64, 1, buffer);
	C(clock_settime, 1, &ts);
	C(clock_settime64, 1, wide);
	C(setitimer, 0, timer, 0);
	C(setitimer, 0, none, 0);
	C(getitimer, 1, buffer);
	fd = C(timerfd_create, 1, 02000000);
	C(timerfd_settime, fd, 1, timer, 0);
	C(timerfd_settime, fd, 0, none, buffer);
	C(timerfd_gettime64, fd, buffer);
	C(_newselect, 0, 0, 0, 0, none);
	C(select, select_words);
	C(pselect6, 0, 0, 0, 0, &ts, &selected);
	C(pselect6_time64, 0, 0, 0, 0, wide, &selected);
	C(poll, &polled, 1, 0);
	C(ppoll, &polled, 1, none, 0, 8);
	C(ppoll_time64, &polled, 1, wide, 0, 8);
	epoll = C(epoll_create1, 02000000);
	fd = C(eventfd2, 3, 02000000);
	C(epoll_ctl, epoll, 1, fd, &event);
	C(epoll_wait, epoll, buffer, 4, 0);
	C(futex, buffer, 0, 1, none);
	C(futex_time64, buffer, 0, 1, wide);
	C(sysinfo, 0);
}

static void sockets(void)
{
	struct iovec parts[2] = {{"message ", 8}, {"of two", 6}}, into[1] = {{buffer, 100}};
	struct msghdr message = {.parts = parts, .count = 2}, got = {.parts = into, .count = 1};
	struct mmsghdr several[2] = {{{.parts = parts, .count = 1}}, {{.parts = parts, .count = 2}}};
	struct mmsghdr filled[2] = {{{.parts = into, .count = 1}}, {{.parts = into, .count = 1}}};
	int rights[6] = {12 + 8, 1, 1, 0, 1}, pair[2], fd, one = 1, size = 4;
	struct {
		short family;
		char path[14];
	} un = {1, "socket"};

	S(8, 1, 1 | 02000000, 0, P(pair));
	S(9, pair[0], P("hello"), 5, 0x4000);
	S(10, pair[1], P(buffer), 100, 2);
	S(11, pair[0], P("hello"), 5, 0, 0, 0);
	size = 16;
	S(12, pair[1], P(buffer), 100, 0, P(buffer + 200), P(&size));
	C(sendto, pair[0], "direct", 6, 0, 0, 0);
	C(recvfrom, pair[1], buffer, 100, 0, 0, 0);
	S(16, pair[0], P(&message), 0);
	S(17, pair[1], P(&got), 0x40);
	message.control = rights;
	message.control_size = sizeof(rights) - 4;
	C(sendmsg, pair[0], &message, 0);
	got.control = buffer + 1000;
	got.control_size = 64;
	C(recvmsg, pair[1], &got, 0x40000000);
	C(sendmmsg, pair[0], several, 2, 0);
	C(recvmmsg, pair[1], filled, 2, 0x40, 0);
	S(20, pair[0], P(several), 1, 0);
	S(19, pair[1], P(filled), 2, 0x40, 0);
	S(13, pair[0], 1);
	fd = S(1, 1, 1, 0);
	S(2, fd, P(&un), 9);
	S(4, fd, 5);
	size = 16;
	S(6, fd, P(buffer), P(&size));
	S(3, pair[0], P(&un), 9);
	S(5, -1, 0, 0);
	S(18, -1, 0, 0, 02000000);
	S(14, fd, 1, 2, P(&one), 4);
	size = 4;
	S(15, fd, 1, 3, P(&one), P(&size));
	S(7, fd, P(buffer), P(&size));
	C(socket, 2, 2, 17);
}

void begin(void)
{
	files();
	memory_and_tasks();
	signals();
	times_and_events();
	sockets();
	C(exit_group, 0);
}

asm(".globl _start; _start: and $-16, %esp; call begin");
