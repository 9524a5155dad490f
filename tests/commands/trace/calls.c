/* Calls of many kinds with arguments that are the same in each run, for a comparison with strace. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/random.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#define C(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static char buffer[65536];

static void on_signal(int number)
{
	(void)number;
}

static void files(void)
{
	struct stat st;
	struct statx stx;
	struct statfs fs;
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	struct iovec out[2] = {{"first ", 6}, {"second, which is longer than thirty-two bytes\n", 46}};
	struct iovec in[2] = {{buffer, 5}, {buffer + 100, 60}};
	struct timespec times[2] = {{1, 2}, {0, UTIME_NOW}};
	struct timeval old[2] = {{1, 2}, {3, 4}};
	struct utimbuf ub = {5, 6};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 2};
	off_t at = 0;
	loff_t where = 3;
	int fd, other, ends[2];

	C(mkdir, "dir", 0755);
	C(mkdirat, AT_FDCWD, "dir/below", 0700);
	C(chdir, "dir");
	C(getcwd, buffer, 4096);
	fd = C(open, "file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	C(write, fd, "line\n\"quoted\" \\ \t\1\0019\377\n", 20);
	C(write, fd, "twenty-nine and some more text that is too long", 47);
	C(writev, fd, out, 2);
	C(pwrite64, fd, "patch", 5, 7);
	C(pwritev, fd, out, 2, 100, 0);
	C(pwritev2, fd, out, 1, 200, 0, 0);
	C(lseek, fd, 0, SEEK_SET);
	C(read, fd, buffer, 10);
	C(readv, fd, in, 2);
	C(pread64, fd, buffer, 100, 3);
	C(preadv, fd, in, 2, 1, 0);
	C(preadv2, fd, in, 2, 1, 0, 0);
	C(lseek, fd, -2, SEEK_END);
	C(fstat, fd, &st);
	C(stat, "file", &st);
	C(lstat, "nothing", &st);
	C(stat, "/dev/null", &st);
	C(newfstatat, AT_FDCWD, "below", &st, AT_SYMLINK_NOFOLLOW);
	C(statx, AT_FDCWD, "file", AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_SIZE, &stx);
	C(statfs, "/proc", &fs);
	C(fstatfs, -1, &fs);
	C(ftruncate, fd, 50);
	C(truncate, "file", 40);
	C(fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, 4096);
	C(fsync, fd);
	C(fdatasync, fd);
	C(syncfs, -1);
	C(sync_file_range, fd, 0, 10, SYNC_FILE_RANGE_WRITE);
	C(fadvise64, fd, 0, 100, POSIX_FADV_SEQUENTIAL);
	C(readahead, fd, 0, 100);
	C(flock, fd, LOCK_EX | LOCK_NB);
	C(fcntl, fd, F_GETFL);
	C(fcntl, fd, F_SETFL, O_RDWR | O_APPEND | O_NONBLOCK);
	C(fcntl, fd, F_GETFD);
	C(fcntl, fd, F_SETFD, FD_CLOEXEC);
	C(fcntl, fd, F_SETLK, &lock);
	C(fcntl, fd, F_GETLK, &lock);
	C(fcntl, fd, F_DUPFD_CLOEXEC, 20);
	C(fcntl, -1, F_GETFD);
	C(fchmod, fd, 0600);
	C(chmod, "file", 04755);
	C(fchmodat, AT_FDCWD, "file", 0644);
	C(chown, "file", 0, 0);
	C(lchown, "file", -1, 0);
	C(fchown, fd, 0, -1);
	C(fchownat, AT_FDCWD, "file", 0, 0, AT_SYMLINK_NOFOLLOW);
	C(utimensat, AT_FDCWD, "file", times, 0);
	C(utimensat, fd, NULL, NULL, 0);
	C(utimes, "file", old);
	C(futimesat, AT_FDCWD, "file", old);
	C(utime, "file", &ub);
	C(access, "file", R_OK | W_OK);
	C(access, "file", F_OK);
	C(faccessat, AT_FDCWD, "file", X_OK);
	C(faccessat2, AT_FDCWD, "file", R_OK, AT_EACCESS);
	C(setxattr, "file", "user.one", "value", 5, XATTR_CREATE);
	C(getxattr, "file", "user.one", buffer, 100);
	C(lsetxattr, "file", "user.two", "other", 5, 0);
	C(fsetxattr, fd, "user.one", "again", 5, XATTR_REPLACE);
	C(fgetxattr, fd, "user.none", buffer, 100);
	C(listxattr, "file", buffer, 100);
	C(llistxattr, "nothing", buffer, 100);
	C(flistxattr, fd, buffer, 100);
	C(removexattr, "file", "user.two");
	C(fremovexattr, fd, "user.one");
	C(lgetxattr, "file", "user.one", buffer, 100);
	C(link, "file", "hard");
	C(linkat, AT_FDCWD, "file", AT_FDCWD, "hard2", 0);
	C(symlink, "file", "soft");
	C(symlinkat, "file", AT_FDCWD, "soft2");
	C(readlink, "soft", buffer, 100);
	C(readlinkat, AT_FDCWD, "nothing", buffer, 100);
	C(rename, "hard", "hard3");
	C(renameat, AT_FDCWD, "hard3", AT_FDCWD, "hard4");
	C(renameat2, AT_FDCWD, "hard4", AT_FDCWD, "hard2", RENAME_NOREPLACE);
	C(mknod, "fifo", S_IFIFO | 0600, 0);
	C(mknodat, AT_FDCWD, "null", S_IFCHR | 0600, 0x103);
	other = C(openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
	C(close, other);
	C(openat, AT_FDCWD, "nothing", O_WRONLY | O_APPEND | O_NOFOLLOW);
	C(openat, AT_FDCWD, NULL, O_RDONLY);
	C(openat2, AT_FDCWD, "file", &how, sizeof(how));
	C(creat, "made", 0600);
	C(dup, fd);
	C(dup2, fd, 30);
	C(dup3, fd, 31, O_CLOEXEC);
	C(close_range, 30, 31, 0);
	C(pipe, ends);
	C(pipe2, ends, O_NONBLOCK | O_CLOEXEC);
	C(sendfile, ends[1], fd, &at, 8);
	C(splice, ends[0], NULL, fd, &where, 4, SPLICE_F_NONBLOCK);
	C(tee, ends[0], ends[0], 4, 0);
	C(vmsplice, ends[1], out, 1, 0);
	C(copy_file_range, fd, NULL, fd, NULL, 0, 0);
	C(ioctl, ends[0], FIONREAD, buffer);
	C(ioctl, fd, TIOCGWINSZ, buffer);
	C(memfd_create, "memory", MFD_CLOEXEC);
	C(unlink, "fifo");
	C(unlink, "null");
	C(unlinkat, AT_FDCWD, "below", AT_REMOVEDIR);
	C(rmdir, "nothing");
	C(umask, 022);
	C(fchdir, -1);
	C(chroot, "nothing");
	C(mount, "none", "nothing", "tmpfs", MS_NOSUID | MS_NODEV, NULL);
	C(umount2, "nothing", MNT_DETACH);
	C(swapoff, "nothing");
	C(acct, "nothing");
	C(pivot_root, "nothing", "neither");
}

static void memory(void)
{
	char *page = (char *)C(mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	C(mprotect, page, 4096, PROT_NONE);
	C(madvise, page, 4096, MADV_DONTNEED);
	C(mlock, page, 4096);
	C(munlock, page, 4096);
	C(mlock2, page, 4096, 1);
	C(msync, page, 4096, MS_SYNC);
	C(mremap, page, 8192, 4096, MREMAP_MAYMOVE);
	C(munmap, page, 4096);
	C(mlockall, 0);
	C(munlockall);
	C(brk, NULL);
	C(membarrier, 0, 0);
	C(mmap, NULL, 0, PROT_READ, MAP_SHARED, -1, 0);
}

/* Policies of NUMA, and protection keys. */
static void policies(void)
{
	unsigned long nodes[16] = {1}, got[16];
	char *page = (char *)C(mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pages[2] = {page, NULL};
	int mode, in[2] = {0, 0}, status[2];

	C(get_mempolicy, &mode, got, 1024, NULL, 0);
	C(get_mempolicy, &mode, NULL, 0, NULL, MPOL_F_ADDR | MPOL_F_NODE);
	C(set_mempolicy, MPOL_BIND, nodes, 64);
	C(get_mempolicy, &mode, got, 1024, NULL, 0);
	C(set_mempolicy, MPOL_INTERLEAVE | MPOL_F_STATIC_NODES, nodes, 64);
	C(set_mempolicy, 99, nodes, 200);
	C(set_mempolicy, MPOL_DEFAULT, NULL, 0);
	C(mbind, page, 4096, MPOL_PREFERRED, nodes, 2, MPOL_MF_STRICT | MPOL_MF_MOVE);
	C(mbind, page, 4096, MPOL_DEFAULT, NULL, 0, 0);
	C(migrate_pages, 0, 64, nodes, nodes);
	*page = 1;
	C(move_pages, 0, 2, pages, NULL, status, 0);
	C(move_pages, 0, 2, pages, in, status, MPOL_MF_MOVE);
	C(pkey_alloc, 1, PKEY_DISABLE_WRITE);
	C(pkey_mprotect, page, 4096, PROT_READ, 99);
	C(pkey_free, 99);
}

/* Events of perf: without access to them the attributes are the same. */
static void counters(void)
{
	struct perf_event_attr event = {PERF_TYPE_SOFTWARE, PERF_ATTR_SIZE_VER5, PERF_COUNT_SW_DUMMY};

	event.sample_freq = 99;
	event.freq = 1;
	event.precise_ip = 2;
	event.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	event.disabled = event.inherit = event.sample_id_all = 1;
	C(perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	event = (struct perf_event_attr){PERF_TYPE_HW_CACHE, PERF_ATTR_SIZE_VER0, 0x10002};
	event.read_format = PERF_FORMAT_ID;
	C(perf_event_open, &event, -1, -1, -1, 0);
	event = (struct perf_event_attr){PERF_TYPE_TRACEPOINT, PERF_ATTR_SIZE_VER7, 99999};
	C(perf_event_open, &event, 0, -1, -1, 0);
}

static void tasks(void)
{
	struct rlimit limit;
	struct rusage usage;
	struct sched_param priority = {0};
	struct timespec interval;
	struct utsname name;
	gid_t groups[4] = {0};
	cpu_set_t cpus;
	int status;
	pid_t pid;

	C(getpid);
	C(getuid);
	C(geteuid);
	C(getgid);
	C(getegid);
	C(getpgrp);
	C(getpgid, -1);
	C(getsid, -1);
	C(setpgid, -5, 0);
	C(getresuid, buffer, buffer + 4, buffer + 8);
	C(getresgid, buffer, buffer + 4, buffer + 8);
	C(getgroups, 0, NULL);
	C(setgroups, 1, groups);
	C(setuid, 0);
	C(setgid, 0);
	C(setreuid, -1, 0);
	C(setregid, -1, 0);
	C(setresuid, 0, -1, 0);
	C(setresgid, 0, 0, -1);
	C(setfsuid, 0);
	C(setfsgid, 0);
	C(getpriority, PRIO_PROCESS, 0);
	C(setpriority, PRIO_PROCESS, 0, 0);
	C(getrlimit, RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 512;
	C(setrlimit, RLIMIT_NOFILE, &limit);
	C(prlimit64, 0, RLIMIT_CORE, NULL, &limit);
	C(getrusage, 7, &usage);
	C(sched_yield);
	C(sched_getscheduler, 0);
	C(sched_getparam, 0, &priority);
	C(sched_setscheduler, 0, SCHED_OTHER, &priority);
	C(sched_setparam, 0, &priority);
	C(sched_get_priority_max, SCHED_FIFO);
	C(sched_get_priority_min, SCHED_RR);
	C(sched_rr_get_interval, -1, &interval);
	C(sched_getaffinity, 0, 8, &cpus);
	C(sched_setaffinity, 0, 8, &cpus);
	C(uname, &name);
	C(personality, 0xffffffff);
	C(prctl, PR_SET_NAME, "renamed");
	C(prctl, PR_CAPBSET_READ, 1);
	C(prctl, PR_GET_NAME, buffer);
	C(prctl, PR_SET_PDEATHSIG, SIGHUP);
	C(kill, -99999, SIGTERM);
	C(tkill, -1, SIGUSR1);
	C(tgkill, -1, -1, SIGUSR2);
	C(capget, NULL, NULL);
	C(pidfd_open, -1, 0);
	C(unshare, 0);
	C(setns, -1, CLONE_NEWNET);
	C(sethostname, NULL, 3);
	C(setdomainname, NULL, 3);
	C(wait4, -1, &status, WNOHANG, NULL);
	C(waitid, P_ALL, 0, NULL, WEXITED | WNOHANG, NULL);
	pid = fork();
	if (!pid)
		_exit(7);
	C(wait4, pid, &status, 0, NULL);
	C(ioprio_get, 1, 0);
	C(gettid);
	C(alarm, 0);
	C(seccomp, 77, 0, NULL);
	C(execve, "nothing", (char *[]){"zero", "one", NULL}, (char *[]){"A=1", NULL});
}

/* What ioctl(2) points to, of terminals, network interfaces and files. */
static void controls(void)
{
	static struct ifreq request = {.ifr_name = "lo"}, missing = {.ifr_name = "nothing0"};
	struct winsize window = {24, 80, 1, 2};
	int zero = 0, one = 1, number, terminal, ends[2], fd;
	struct file_clone_range range = {.src_length = 4096};
	static struct fiemap map = {.fm_length = 4096};
	struct fsxattr attributes;
	char *space = buffer + 1024, name[64];

	terminal = C(openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY);
	C(ioctl, terminal, TIOCGPTN, &number);
	C(ioctl, terminal, TIOCSPTLCK, &zero);
	snprintf(name, sizeof(name), "/dev/pts/%d", number);
	terminal = C(openat, AT_FDCWD, name, O_RDWR | O_NOCTTY);
	C(ioctl, terminal, TCGETS, space);
	C(ioctl, terminal, TCSETS, space);
	C(ioctl, terminal, TCSETSW, space);
	C(ioctl, terminal, 0x802c542a, space); /* TCGETS2 */
	C(ioctl, -1, TCGETS, space);
	C(ioctl, terminal, TIOCSWINSZ, &window);
	C(ioctl, terminal, TIOCGWINSZ, &window);
	C(ioctl, terminal, TIOCGPGRP, &number);
	C(ioctl, terminal, TIOCOUTQ, &number);
	C(ioctl, terminal, TIOCGETD, &number);
	C(ioctl, terminal, TCFLSH, TCIOFLUSH);
	C(ioctl, terminal, TCSBRK, 1);
	C(ioctl, terminal, TCXONC, TCOON);
	C(ioctl, terminal, TIOCSCTTY, 0);
	C(ioctl, terminal, TIOCEXCL);
	C(ioctl, terminal, TIOCNXCL);

	fd = C(socket, AF_INET, SOCK_DGRAM, 0);
	C(ioctl, fd, FIONBIO, &one);
	C(ioctl, fd, FIOASYNC, &zero);
	C(ioctl, fd, FIOCLEX);
	C(ioctl, fd, FIONCLEX);
	C(ioctl, fd, SIOCGIFINDEX, &request);
	C(ioctl, fd, SIOCGIFFLAGS, &request);
	C(ioctl, fd, SIOCGIFADDR, &request);
	C(ioctl, fd, SIOCGIFNETMASK, &request);
	C(ioctl, fd, SIOCGIFMTU, &request);
	C(ioctl, fd, SIOCGIFHWADDR, &request);
	C(ioctl, fd, SIOCGIFTXQLEN, &request);
	C(ioctl, fd, SIOCGIFMAP, &request);
	C(ioctl, fd, SIOCGIFMTU, &missing);
	request.ifr_ifindex = 1;
	C(ioctl, fd, SIOCGIFNAME, &request);

	fd = C(openat, AT_FDCWD, "file", O_RDWR);
	C(ioctl, fd, FICLONE, -1);
	range.src_fd = fd;
	C(ioctl, fd, FICLONERANGE, &range);
	C(ioctl, fd, FS_IOC_GETFLAGS, &number);
	C(ioctl, fd, FS_IOC_FIEMAP, &map);
	C(ioctl, fd, FS_IOC_FSGETXATTR, &attributes);
	C(ioctl, fd, BLKGETSIZE64, space);
	C(ioctl, fd, BLKSSZGET, &number);
	C(ioctl, fd, 0xdeadbeef, 7);
	C(ioctl, fd, _IO('x', 9), 0);
	fd = C(openat, AT_FDCWD, "/dev/urandom", O_RDONLY);
	C(ioctl, fd, RNDGETENTCNT, &number);
}

/* sendmmsg(2) and recvmmsg(2). */
static void several(void)
{
	static char into[3][64];
	struct iovec out[3] = {{"hello", 5}, {"a text of more than thirty-two bytes", 36}, {"third", 5}};
	struct iovec in[3] = {{into[0], 64}, {into[1], 20}, {into[2], 64}};
	struct sockaddr_storage from[2];
	struct sockaddr_in to = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}};
	struct mmsghdr sent[5] = {{{0, 0, out, 1}}, {{0, 0, out + 1, 1}}, {{0, 0, out, 3}}};
	struct mmsghdr addressed[2] = {{{&to, sizeof(to), out, 2}}, {{&to, sizeof(to), out, 1}}};
	struct mmsghdr got[3] = {{{from, sizeof(*from), in, 1}}, {{from + 1, sizeof(*from), in + 1, 1}},
				 {{0, 0, in + 2, 1}}};
	struct msghdr single = {from, sizeof(*from), in, 1};
	int ends[2], fd;

	C(socketpair, AF_UNIX, SOCK_DGRAM, 0, ends);
	C(sendmmsg, ends[0], sent, 3, MSG_DONTWAIT);
	C(recvmmsg, ends[1], got, 3, MSG_DONTWAIT, NULL);
	C(recvmmsg, ends[1], got, 3, MSG_DONTWAIT, NULL);
	C(sendmmsg, ends[0], sent, 1, 0);
	C(recvmsg, ends[1], &single, 0);
	C(sendmmsg, -1, sent, 2, 0);
	fd = C(socket, AF_INET, SOCK_DGRAM, 0);
	C(sendmmsg, fd, addressed, 2, 0);
}

static void capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct sets[2];

	C(capget, &header, sets);
	C(capset, &header, sets);
	header.version = 1;
	C(capget, &header, NULL);
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	stack_t stack = {.ss_sp = buffer, .ss_size = 32768};
	struct timespec now = {0, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigaction(SIGUSR1, &action, NULL);
	C(rt_sigaction, SIGINT, NULL, buffer, 8);
	C(rt_sigprocmask, SIG_BLOCK, &set, NULL, 8);
	C(rt_sigprocmask, SIG_SETMASK, NULL, buffer, 8);
	C(rt_sigpending, buffer, 8);
	C(rt_sigtimedwait, &set, NULL, &now, 8);
	C(rt_sigprocmask, SIG_UNBLOCK, &set, NULL, 8);
	C(sigaltstack, &stack, NULL);
	C(sigaltstack, NULL, buffer);
	C(signalfd4, -1, &set, 8, SFD_CLOEXEC);
	C(rt_sigaction, 99, NULL, NULL, 8);
	C(rt_sigprocmask, SIG_BLOCK, &set, NULL, 8);
	C(rt_sigprocmask, SIG_SETMASK, &(sigset_t){{1 << (SIGUSR2 - 1)}}, NULL, 8);
	C(tkill, getpid(), SIGUSR1); /* its handler returns by rt_sigreturn */
}

static void times_(void)
{
	struct itimerval timer = {{0, 0}, {100, 0}}, none = {0};
	struct itimerspec spec = {{0, 0}, {50, 5}};
	sigset_t mask = {{1 << (SIGUSR1 - 1)}};
	struct {
		sigset_t *mask;
		size_t size;
	} selected = {&mask, 8};
	fd_set none_of_them;
	struct timespec ts = {0, 1000}, bad = {-1, 0};
	struct timeval tv;
	int fd;

	C(nanosleep, &ts, NULL);
	C(nanosleep, &ts, &bad);
	C(nanosleep, &bad, NULL);
	C(clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
	C(clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, buffer);
	FD_ZERO(&none_of_them);
	FD_SET(0, &none_of_them);
	C(pselect6, 0, NULL, NULL, NULL, &ts, &selected);
	C(pselect6, 1, &none_of_them, NULL, NULL, &bad, NULL);
	C(clock_getres, CLOCK_MONOTONIC, buffer);
	C(clock_gettime, 99, buffer);
	C(clock_settime, CLOCK_MONOTONIC, &ts);
	C(gettimeofday, NULL, NULL);
	C(settimeofday, (struct timeval[]){{1, 2000000}}, NULL);
	C(setitimer, ITIMER_REAL, &timer, NULL);
	C(setitimer, ITIMER_REAL, &none, NULL);
	C(getitimer, ITIMER_VIRTUAL, &timer);
	fd = C(timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	C(timerfd_settime, fd, TFD_TIMER_ABSTIME, &spec, NULL);
	C(timerfd_settime, fd, 0, (struct itimerspec[]){{{0, 0}, {0, 0}}}, NULL);
	C(timerfd_gettime, fd, &spec);
	C(timer_delete, -1);
	tv = (struct timeval){0, 10};
	C(select, 0, NULL, NULL, NULL, &tv);
}

static void events(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 77}, got[4];
	struct pollfd polled[2];
	struct timespec none = {0, 0};
	struct timeval tv = {0, 0};
	fd_set set;
	int epoll, fd;

	epoll = C(epoll_create1, EPOLL_CLOEXEC);
	C(epoll_create, 5);
	fd = C(eventfd2, 3, EFD_CLOEXEC | EFD_NONBLOCK);
	C(eventfd, 0);
	C(epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &event);
	C(epoll_wait, epoll, got, 4, 0);
	C(epoll_pwait, epoll, got, 4, 0, NULL, 8);
	C(epoll_ctl, epoll, EPOLL_CTL_DEL, fd, NULL);
	polled[0] = (struct pollfd){fd, POLLIN | POLLOUT, 0};
	polled[1] = (struct pollfd){-1, 0, 0};
	C(poll, polled, 2, 0);
	polled[0].events = POLLPRI;
	C(poll, polled, 1, 0);
	C(ppoll, polled, 1, &none, NULL, 8);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	C(select, fd + 1, &set, NULL, NULL, &tv);
	fd = C(inotify_init1, IN_CLOEXEC);
	C(inotify_init);
	C(inotify_add_watch, fd, "/tmp", IN_CREATE | IN_DELETE);
	C(inotify_rm_watch, fd, 1);
	C(futex, buffer, FUTEX_WAKE_PRIVATE, 1);
	C(futex, buffer, FUTEX_WAIT, 1, &none);
	C(futex, buffer, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, -1);
	C(getrandom, buffer, 0, GRND_NONBLOCK);
}

static void sockets(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = 1, .sin6_addr = {{{0}}}};
	struct sockaddr_un un = {AF_UNIX, "socket"};
	struct sockaddr_storage any;
	struct iovec parts[2] = {{"message ", 8}, {"of two", 6}}, into[1] = {{buffer, 100}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2}, got = {.msg_iov = into, .msg_iovlen = 1};
	union {
		struct cmsghdr header;
		char room[64];
	} rights = {0};
	socklen_t size = sizeof(any);
	int pair[2], fd, one = 1;

	C(socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
	C(sendto, pair[0], "hello", 5, MSG_NOSIGNAL, NULL, 0);
	C(recvfrom, pair[1], buffer, 100, MSG_PEEK, NULL, NULL);
	C(recvfrom, pair[1], buffer, 100, 0, &any, &size);
	C(sendmsg, pair[0], &message, 0);
	C(recvmsg, pair[1], &got, MSG_DONTWAIT);
	C(recvmsg, pair[1], &got, MSG_DONTWAIT);
	rights.header.cmsg_len = CMSG_LEN(2 * sizeof(int));
	rights.header.cmsg_level = SOL_SOCKET;
	rights.header.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&rights.header), pair, sizeof(pair));
	message.msg_control = &rights;
	message.msg_controllen = CMSG_SPACE(2 * sizeof(int));
	C(sendmsg, pair[0], &message, 0);
	got.msg_control = &rights;
	got.msg_controllen = sizeof(rights);
	C(recvmsg, pair[1], &got, MSG_CMSG_CLOEXEC);
	C(shutdown, pair[0], SHUT_WR);
	fd = C(socket, AF_UNIX, SOCK_STREAM, 0);
	C(bind, fd, &un, sizeof(un));
	C(listen, fd, 5);
	size = sizeof(any);
	C(getsockname, fd, &any, &size);
	C(connect, pair[0], &un, sizeof(un));
	C(accept, -1, NULL, NULL);
	C(accept4, -1, NULL, NULL, SOCK_CLOEXEC);
	fd = C(socket, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP);
	C(setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, 4);
	size = 4;
	C(getsockopt, fd, SOL_SOCKET, SO_TYPE, &one, &size);
	C(bind, fd, &in, sizeof(in));
	C(getpeername, fd, &any, &size);
	fd = C(socket, AF_INET6, SOCK_STREAM, IPPROTO_TCP);
	C(setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &one, 4);
	C(connect, fd, &in6, sizeof(in6));
	C(socket, 99, SOCK_RAW, 0);
}

int main(void)
{
	files();
	memory();
	policies();
	counters();
	tasks();
	signals();
	controls();
	several();
	capabilities();
	times_();
	events();
	sockets();
	return 0;
}
