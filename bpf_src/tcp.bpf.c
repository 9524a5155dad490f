// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// TCP connections: how they begin, what they carry, and how they end.
//
// A socket's changes of state are traced while it is locked, in the task that asks for them or in
// the interrupt that a packet brings. Only two of them are certain to be in the task that owns the
// connection: the SYN that connect(2) sends, and the return of accept(2). So the owner is taken
// there, and never from whatever runs when a connection ends.
#include "tcp/dns.h"
#include "tcp/emit.h"

static __always_inline void begin(u64 socket, u64 now_ns, bool is_ours)
{
	struct connection connection = {.began_ns = now_ns, .in_state_ns = now_ns};

	connection.direction = is_ours ? DIRECTION_OUT : DIRECTION_IN;
	if (is_ours)
		own(&connection.owner);
	else
		bpf_map_delete_elem(&owners, &socket); // of one that was at this address before
	if (bpf_map_update_elem(&connections, &socket, &connection, BPF_ANY))
		COUNT(connections_full);
}

static __always_inline void end(u64 socket)
{
	bpf_map_delete_elem(&connections, &socket);
	bpf_map_delete_elem(&owners, &socket);
}

// What a change of state means to the user, beyond being one.
static __always_inline void tell(struct sock *sk, struct connection *connection,
				 struct owner *owner, struct change *change)
{
	if (connection)
		change->took_ns = change->now_ns - connection->began_ns;
	if (change->new_state == STATE_ESTABLISHED && change->old_state == STATE_SYN_SENT)
		change->kind = TCP_CONNECT;
	else if (change->new_state != STATE_CLOSE || change->old_state == STATE_LISTEN)
		return;
	else if (change->old_state == STATE_SYN_SENT)
		change->kind = TCP_FAILED;
	else
		change->kind = TCP_CLOSED;
	emit(sk, NULL, owner, change);
}

SEC("tp_btf/inet_sock_set_state")
int on_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u64 socket = (u64)sk;
	struct change change = {.now_ns = bpf_ktime_get_ns(), .kind = TCP_STATE};
	struct connection *connection;
	struct owner *owner;

	if (!is_tcp(sk))
		return 0;
	change.old_state = ctx[1];
	change.new_state = ctx[2];
	if (change.new_state == STATE_SYN_SENT)
		begin(socket, change.now_ns, true);
	else if (change.old_state == STATE_LISTEN && change.new_state == STATE_SYN_RECV)
		begin(socket, change.now_ns, false);
	connection = bpf_map_lookup_elem(&connections, &socket);
	owner = owner_of(socket, connection);
	if (connection) {
		change.direction = connection->direction;
		change.took_ns = change.now_ns - connection->in_state_ns;
		connection->in_state_ns = change.now_ns;
		if (change.new_state == STATE_ESTABLISHED)
			connection->established_ns = change.now_ns;
	}
	emit(sk, NULL, owner, &change);
	tell(sk, connection, owner, &change);
	if (change.new_state == STATE_CLOSE)
		end(socket);
	return 0;
}

static __always_inline int again(struct sock *sk, struct sock_common *ends, u8 kind)
{
	u64 socket = (u64)sk;
	struct change change = {.now_ns = bpf_ktime_get_ns(), .kind = kind};
	struct connection *connection;

	if (!sk)
		return 0;
	connection = bpf_map_lookup_elem(&connections, &socket);
	change.direction = connection ? connection->direction : DIRECTION_UNKNOWN;
	change.old_state = change.new_state = BPF_CORE_READ(sk, __sk_common.skc_state);
	emit(sk, ends, owner_of(socket, connection), &change);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int on_retransmit(u64 *ctx)
{
	return again((void *)ctx[0], NULL, TCP_RETRANSMIT);
}

SEC("tp_btf/tcp_retransmit_synack")
int on_synack(u64 *ctx)
{
	struct request_sock *request = (void *)ctx[1];

	return again((void *)ctx[0], (void *)request + bpf_core_field_offset(request->__req_common),
		     TCP_SYNACK);
}

static __always_inline int accepted(long fd)
{
	u64 now_ns = bpf_ktime_get_ns(), socket;
	struct change change = {.now_ns = now_ns, .kind = TCP_ACCEPT, .direction = DIRECTION_IN};
	struct connection *connection;
	struct owner owner = {};
	struct sock *sk;

	if (fd < 0)
		return 0;
	sk = socket_at(fd);
	socket = (u64)sk;
	if (!sk || !is_tcp(sk))
		return 0;
	own(&owner);
	if (bpf_map_update_elem(&owners, &socket, &owner, BPF_ANY))
		COUNT(owners_full);
	connection = bpf_map_lookup_elem(&connections, &socket);
	if (connection && connection->established_ns)
		change.took_ns = now_ns - connection->established_ns;
	change.old_state = change.new_state = BPF_CORE_READ(sk, __sk_common.skc_state);
	emit(sk, NULL, &owner, &change);
	return 0;
}

struct sys_exit_record {
	u64 common;
	long id;
	long ret;
};

SEC("?tracepoint/syscalls/sys_exit_accept4")
int on_accept4(struct sys_exit_record *ctx)
{
	accepted(ctx->ret);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_exit_accept")
int on_accept(struct sys_exit_record *ctx)
{
	accepted(ctx->ret);
	return SEEN_BY_PERF;
}

struct pt_regs {
	unsigned long orig_ax; // x86
	int syscallno;	       // arm64
} __attribute__((preserve_access_index));

CONFIG u32 accept_numbers[2] = {}; // accept and accept4

// For want of tracefs, which has the number of the tracepoints above: of every call.
SEC("?tp_btf/sys_exit")
int on_any_exit(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u32 number;

	if (bpf_core_field_exists(regs->orig_ax))
		number = BPF_CORE_READ(regs, orig_ax);
	else
		number = BPF_CORE_READ(regs, syscallno);
	if (number != accept_numbers[0] && number != accept_numbers[1])
		return 0;
	return accepted(ctx[1]);
}

SEC("?tp_btf/netif_receive_skb")
int on_packet(u64 *ctx)
{
	return look_for_answer((void *)ctx[0]);
}

SEC("?tp_btf/net_dev_queue")
int on_sent_packet(u64 *ctx)
{
	return look_for_question((void *)ctx[0]);
}

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
} __attribute__((preserve_access_index));

// The TCP sockets that processes have open already.
SEC("?iter/task_file")
int list_sockets(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct open_socket found = {};
	struct socket *socket;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || !is_tcp(sk))
		return 0;
	found.socket = (u64)sk;
	found.tgid = task->tgid;
	found.tid = task->pid;
	if (pid_namespace_ino)
		numbers_of(task, &found.tgid, &found.tid);
	BPF_CORE_READ_STR_INTO(&found.comm, task, comm);
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
