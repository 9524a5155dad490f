"""The kinds of the arguments of system calls, from their manual pages. Pure.

A line for each call: its name, and a kind for each argument (kinds.py). The names of the arguments
come from the kernel's declaration. Calls without a line use their declared types.

A kind is `KIND`, or `KIND:TABLE` (a table of purebpf.abi.tables, or a struct). Behind
that is where its memory is read: `<` when the call begins, `>` when it ends, `<>` both. Then its
length: `2` is argument 2, `*2` the number that argument 2 points to, `r` the result. `-` is an
argument that is not shown.
"""

from __future__ import annotations

__all__ = ["CALLS"]

CALLS = """\
accept fd sa>*2 length<>
accept4 fd sa>*2 length<> F:sock_flags
access path F:access
acct path
add_key path path buf<3 size keyring
alarm uint
arch_prctl E:arch_prctl hex
bind fd sa<2 int
bpf E:bpf_cmd bpfattr uint
brk ptr
capget capheader< capdata>
capset capheader< capdata<
chdir path
chmod path mode
chown path id id
chroot path
clock_getres E:clock S:timespec>
clock_gettime E:clock S:timespec>
clock_nanosleep E:clock F:itimer_abs S:timespec< remaining:timespec>
clock_settime E:clock S:timespec<
close fd
close_range uint uint F:close_range
connect fd sa<2 int
copy_file_range fd offset<> fd offset<> size uint
creat path mode
dup fd
dup2 fd fd
dup3 fd fd F:open
epoll_create int
epoll_create1 F:epoll_create
epoll_ctl fd E:epoll_ctl fd S:epoll_event<
epoll_pwait fd events>r int int sigset<5 size
epoll_pwait2 fd events>r int S:timespec< sigset<5 size
epoll_wait fd events>r int int
eventfd uint
eventfd2 uint F:efd
execve path argv envp
execveat dirfd path argv envp F:at
exit int
exit_group int
faccessat dirfd path F:access
faccessat2 dirfd path F:access F:at
fadvise64 fd long size E:fadvise
fallocate fd F:fallocate long long
fchdir fd
fchmod fd mode
fchmodat dirfd path mode
fchmodat2 dirfd path mode F:at
fchown fd id id
fchownat dirfd path id id F:at
fdatasync fd
fgetxattr fd path buf>r size
flistxattr fd buf>r size
flock fd F:flock
fremovexattr fd path
fsconfig fd uint path ptr int
fsetxattr fd path buf<3 size F:xattr
fsmount fd F:fsmount uint
fsopen path F:fsopen
fspick dirfd path uint
fstat fd S:stat>
fstatfs fd S:statfs>
fsync fd
ftruncate fd long
futimesat dirfd path timevals<
get_mempolicy policy1> nodes>2 ulong ptr F:mempolicy_get
get_robust_list int ptr ptr
getcpu uint1> uint1> ptr
getcwd cwd> ulong
getdents fd dirents uint
getdents64 fd dirents uint
getegid
geteuid
getgid
getgroups int ids>r
getitimer E:itimer S:itimerval>
getpeername fd sa>*2 length<>
getpgid int
getpgrp
getpid
getppid
getpriority E:priority int
getrandom random>r size F:getrandom
getresgid uint1> uint1> uint1>
getresuid uint1> uint1> uint1>
getrlimit E:rlimit S:rlimit>
getrusage E:rusage S:rusage>
getsid int
getsockname fd sa>*2 length<>
getsockopt fd E:sol sockopt value>*4 length<>
gettid
gettimeofday S:timeval> S:timezone>
getuid
getxattr path path buf>r size
inotify_add_watch fd path F:inotify
inotify_init
inotify_init1 F:inotify_init
inotify_rm_watch fd int
io_uring_enter fd uint uint hex sigset<5 size
io_uring_setup uint ptr
ioctl fd request ioctl
ioprio_get E:ioprio_who int
ioprio_set E:ioprio_who int int
kill int signal
lchown path id id
lgetxattr path path buf>r size
link path path
linkat dirfd path dirfd path F:at
listen fd int
listxattr path buf>r size
llistxattr path buf>r size
lremovexattr path path
lseek fd long E:whence
lsetxattr path path buf<3 size F:xattr
lstat path S:stat>
madvise ptr size E:madvise
mbind ptr size policy nodes<4 ulong F:mempolicy_move
membarrier E:membarrier uint -
memfd_create path F:memfd
migrate_pages int ulong nodes<1 nodes<1
mincore ptr size ptr
mkdir path mode
mkdirat dirfd path mode
mknod path nodemode device
mknodat dirfd path nodemode device
mlock ptr size
mlock2 ptr size F:mlock2
mlockall F:mlockall
mount path path path F:mount path
move_mount dirfd path dirfd path F:move_mount
move_pages int ulong pages<1 ints<1 errors>1 F:mempolicy_move
mprotect ptr size prot
mremap ptr size size F:mremap moved
msync ptr size F:msync
munlock ptr size
munlockall
munmap ptr size
nanosleep S:timespec< remaining:timespec>
newfstatat dirfd path S:stat> F:at
open path open openmode
open_tree dirfd path F:open_tree
openat dirfd path open openmode
openat2 dirfd path how<3 size
pause
perf_event_open perfattr int int fd F:perf_open
personality hex
pidfd_getfd fd int uint
pidfd_open int F:open
pidfd_send_signal fd signal ptr uint
pipe fds>
pipe2 fds> F:open
pivot_root path path
pkey_alloc hex F:pkey
pkey_free int
pkey_mprotect ptr size prot int
poll pollfd<>1 uint int
ppoll pollfd<>1 uint S:timespec< sigset<4 size
prctl E:prctl prctl prctl prctl prctl
pread64 fd buf>r size long
preadv fd iov>r2 ulong long -
preadv2 fd iov>r2 ulong long - F:rwf
prlimit64 int E:rlimit S:rlimit< S:rlimit>
process_vm_readv int ptr ulong ptr ulong ulong
pselect6 int fdset<> fdset<> fdset<> S:timespec<> selectmask
ptrace E:ptrace int ptr ptr
pwrite64 fd buf<2 size long
pwritev fd iov<2 ulong long -
pwritev2 fd iov<2 ulong long - F:rwf
read fd buf>r size
readahead fd long size
readlink path buf>r size
readlinkat dirfd path buf>r size
readv fd iov>r2 ulong
recvfrom fd buf>r size F:msg sa>*5 length<>
recvmmsg fd received<>2 uint F:msg S:timespec<>
recvmsg fd message<> F:msg
removexattr path path
rename path path
renameat dirfd path dirfd path
renameat2 dirfd path dirfd path F:rename
rmdir path
rseq ptr hex F:rseq hex
rt_sigaction signal S:sigaction< S:sigaction> size
rt_sigpending sigset>1 size
rt_sigprocmask E:sigmask sigset<3 sigset>3 size
rt_sigqueueinfo int signal ptr
rt_sigreturn sigframe
rt_sigsuspend sigset<1 size
rt_sigtimedwait sigset<3 ptr S:timespec< size
sched_get_priority_max E:sched
sched_get_priority_min E:sched
sched_getaffinity int uint cpuset>r
sched_getparam int sched_param>
sched_getscheduler int
sched_rr_get_interval int S:timespec>
sched_setaffinity int uint cpuset<1
sched_setparam int sched_param<
sched_setscheduler int E:sched sched_param<
sched_yield
seccomp E:seccomp uint ptr
select int fdset<> fdset<> fdset<> S:timeval<>
sendfile fd fd offset<> size
sendmmsg fd sent<>2 uint F:msg
sendmsg fd message< F:msg
sendto fd buf<2 size F:msg sa<5 int
set_mempolicy policy nodes<2 ulong
set_mempolicy_home_node ptr size ulong hex
set_robust_list ptr size
set_tid_address ptr
setdomainname buf<1 uint
setfsgid id
setfsuid id
setgid id
setgroups int ids<0
sethostname buf<1 uint
setitimer E:itimer S:itimerval< S:itimerval>
setns fd F:clone
setpgid int int
setpriority E:priority int int
setregid id id
setresgid id id id
setresuid id id id
setreuid id id
setrlimit E:rlimit S:rlimit<
setsid
setsockopt fd E:sol sockopt value<4 int
settimeofday S:timeval< S:timezone<
setuid id
setxattr path path buf<3 size F:xattr
shutdown fd E:shutdown
sigaltstack S:stack< S:stack>
signalfd fd sigset<2 size
signalfd4 fd sigset<2 size F:sfd
socket E:address_family socktype protocol
socketpair E:address_family socktype protocol fds>
splice fd offset<> fd offset<> size F:splice
stat path S:stat>
statfs path S:statfs>
statx dirfd path statxflags F:statx_mask S:statx>
swapoff path
swapon path hex
symlink path path
symlinkat path dirfd path
sync
sync_file_range fd long long F:sync_range
syncfs fd
sysinfo S:sysinfo>
tee fd fd size F:splice
tgkill int int signal
time long1>
timer_create E:clock ptr int1>
timer_delete int
timer_getoverrun int
timer_gettime int S:itimerspec>
timer_settime int F:itimer_abs S:itimerspec< S:itimerspec>
timerfd_create E:clock F:tfd
timerfd_gettime fd S:itimerspec>
timerfd_settime fd F:tfd_settime S:itimerspec< S:itimerspec>
times S:tms>
tkill int signal
truncate path long
umask mode
umount2 path F:umount
uname S:utsname>
unlink path
unlinkat dirfd path F:at_remove
unshare F:clone
utime path S:utimbuf<
utimensat dirfd path timespecs< F:at
utimes path timevals<
vfork
vhangup
vmsplice fd iov<2 ulong F:splice
wait4 int status> F:wait S:rusage>
waitid E:waitid int siginfo> F:wait S:rusage>
write fd buf<2 size
writev fd iov<2 ulong
clone special special special special special
clone3 cloneargs<1 size
fcntl special special special
futex special special special special special special
mmap special special special special special special
"""
