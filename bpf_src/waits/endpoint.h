// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The other end of a descriptor of the current task or of a socket.
#ifndef WAITS_ENDPOINT_H
#define WAITS_ENDPOINT_H

#include "task.h"
#include "maps.h"

#define AF_INET 2
#define AF_INET6 10
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFIFO 0010000

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
} __attribute__((preserve_access_index));

struct sock_common {
	u32 skc_daddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	int sk_err;
	u16 sk_protocol;
} __attribute__((preserve_access_index));

struct socket {
	struct sock *sk;
} __attribute__((preserve_access_index));

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
} __attribute__((preserve_access_index));

struct file {
	struct inode *f_inode;
	void *private_data;
} __attribute__((preserve_access_index));

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

struct task_struct___files {
	struct files_struct *files;
} __attribute__((preserve_access_index));

static __always_inline void describe_socket(struct sock *sk, struct endpoint *endpoint)
{
	endpoint->kind = ENDPOINT_SOCKET;
	endpoint->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (endpoint->family != AF_INET && endpoint->family != AF_INET6)
		return;
	endpoint->port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	endpoint->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (endpoint->family == AF_INET)
		endpoint->address[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	else
		BPF_CORE_READ_INTO(&endpoint->address, sk,
				   __sk_common.skc_v6_daddr.in6_u.u6_addr32);
}

// Reads what a task has open as `fd`. The endpoint stays as it was if nothing is.
static __always_inline void describe_fd(struct task_struct *task, s32 fd, struct endpoint *endpoint)
{
	struct task_struct___files *owner = (void *)task;
	struct fdtable *table = BPF_CORE_READ(owner, files, fdt);
	struct file **files, *file = NULL;
	struct inode *inode;
	struct socket *socket;
	u32 mode;

	if (fd < 0 || (u32)fd >= BPF_CORE_READ(table, max_fds))
		return;
	files = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	endpoint->inode = BPF_CORE_READ(inode, i_ino);
	endpoint->kind = mode == S_IFIFO ? ENDPOINT_PIPE : ENDPOINT_FILE;
	if (mode != S_IFSOCK)
		return;
	socket = BPF_CORE_READ(file, private_data);
	describe_socket(BPF_CORE_READ(socket, sk), endpoint);
}

#endif
