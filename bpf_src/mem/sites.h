// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is added up by stack, and which allocations have not been freed.
#ifndef MEM_SITES_H
#define MEM_SITES_H

#include "comm.h"
#include "pid_namespace.h"
#include "places.h"
#include "targets.h"
#include "user_stacks.h"

enum kind {
	MINOR_FAULT = 0, // a page that was in memory, or is new
	MAJOR_FAULT = 1, // one that was read from a disk
	MAPPED = 2,	 // mmap and mremap: anonymous memory
	FILE_MAPPED = 3, // of a file, or shared
	RESERVED = 4,	 // of addresses alone: PROT_NONE
	HEAP = 5,	 // brk
	ALLOCATED = 6,	 // malloc and the like
};

struct site_key {
	u64 user_stack;
	u32 tgid; // in our pid namespace
	u32 kind;
	char comm[TASK_COMM_LEN];
};

// Written by every CPU.
struct site {
	u64 count;
	u64 bytes;
	u64 freed;
	u64 freed_bytes;
	u64 unfollowed; // `allocations` had no place for them: neither freed nor not freed
	u64 unfollowed_bytes;
};

struct allocation_key {
	u64 address;
	u64 process; // tgid in the initial namespace: what frees may be outside of ours
};

struct allocation {
	u64 bytes;
	struct site_key site;
};

// One event per line. Programs at probes may be preempted, so that every field is added to
// atomically.
struct stats {
	u64 faults;	 // of every process but ours: the events' own counts say how many are due
	u64 growths;	 // mmap, mremap and brk of the target
	u64 allocations; // of the target
	u64 frees;	 // of an allocation that was followed
	u64 failed;	 // allocators returned no memory
	u64 returns_missed;  // allocators were left without a return (an exception, longjmp)
	u64 heaps_destroyed; // with all that is in them, which counts as not freed
	u64 texts_copied;    // by functions of the allocator, of sizes that are not known
	u64 replaced;	     // allocations at an address that was not freed before: after an execve
	u64 sites_full;	     // `sites` had no place
	u64 sites_busy;	     // it was locked by what the program interrupted
	u64 allocations_full;  // `allocations` had no place
	u64 allocations_busy;  //
	u64 calls_full;	       // `calls` had no place: the allocation is missing
	u64 places_taken;      // more programs than PLACES were preempted: the stack is missing
	u64 outside_namespace; // tasks without a number in our pid namespace
};

CONFIG u32 own_tgid = 0; // who is asking: left out

bool phase = false; // on

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 40960);
	__type(key, struct site_key);
	__type(value, struct site);
} sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct allocation_key);
	__type(value, struct allocation);
} allocations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

static __always_inline struct stats *stats_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

#define COUNT(st, field) __sync_fetch_and_add(&(st)->field, 1)

// Where a program finds the registers that a stack begins with.
struct origin {
	struct registers *registers; // NULL: those that the task entered the kernel with
	struct registers *caller;    // of the allocator that the task is in, or NULL
	bool at_return; // of an instruction that returns: the stack begins with its caller
};

// Puts the registers to walk from into the record. False: there are none. Inside of an allocator the
// stack begins with the caller; `is_whole` says that it does not.
static __always_inline bool find_registers(struct missed_stack *record, struct origin *from,
					   bool *is_whole)
{
	*is_whole = true;
	if (from->registers) {
		if (!user_registers(from->registers, &record->registers))
			return false;
	} else if (!saved_registers(&record->registers)) {
		return false;
	}
	if (from->at_return) {
		if (!pop_return(record, &record->registers.ip))
			return false;
		record->registers.ip -= 1; // behind the call
	}
	if (from->caller && record->registers.sp < from->caller->sp) {
		*is_whole = false;
		record->registers = *from->caller;
		record->registers.ip -= 1;
	}
	return true;
}

// The user stack of the current task.
static __always_inline u64 stack_here(void *ctx, struct origin *from, u32 tgid, struct stats *st)
{
	u64 id = STACK_LOST, ticket;
	struct missed_stack *record;
	bool is_whole;
	u32 place;

	if (!user_stacks)
		return STACK_NONE;
	place = take_place();
	if (place >= PLACES) {
		COUNT(st, places_taken);
		return STACK_LOST;
	}
	if (call_graph == BY_FRAME_POINTERS) {
		id = walk_by_frame_pointers(ctx, place, from->registers, from->at_return);
		give_back(place);
		return id;
	}
	ticket = new_ticket(place);
	record = describe_sample(place, tgid, &ticket, sizeof(ticket));
	if (record)
		id = find_registers(record, from, &is_whole) ?
			     walk_record(ctx, place, record, is_whole) :
			     STACK_NONE;
	give_back(place);
	return id == STACK_SENT ? ticket : id;
}

static const struct site no_site;

// The site of a key, which is made if need be; NULL: it had no place, and that is counted.
static __always_inline struct site *site_of(struct site_key *key, struct stats *st)
{
	struct site *site = bpf_map_lookup_elem(&sites, key);
	int err;

	if (site)
		return site;
	err = bpf_map_update_elem(&sites, key, &no_site, BPF_NOEXIST);
	site = bpf_map_lookup_elem(&sites, key); // another CPU may have been first
	if (site)
		return site;
	if (err == -EBUSY)
		COUNT(st, sites_busy);
	else
		COUNT(st, sites_full);
	return NULL;
}

static __always_inline bool add_to_site(struct site_key *key, u64 bytes, struct stats *st)
{
	struct site *site = site_of(key, st);

	if (!site)
		return false;
	__sync_fetch_and_add(&site->count, 1);
	__sync_fetch_and_add(&site->bytes, bytes);
	return true;
}

static __always_inline bool is_own_process(void)
{
	u32 tgid, tid;

	if (!own_tgid)
		return false;
	own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);
	return tgid == own_tgid;
}

// Whether the current task is asked for; puts it into the key.
static __always_inline bool wanted(struct site_key *key, u32 kind, struct stats *st)
{
	u32 tgid, tid;
	bool numbered = own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid);

	if ((own_tgid && tgid == own_tgid) || !listed(tgid, tid) || !in_scope())
		return false;
	if (!numbered)
		COUNT(st, outside_namespace);
	key->tgid = tgid;
	key->kind = kind;
	read_comm(&key->comm);
	return true;
}

#endif
