// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Whose a lock is, and who holds it.
#ifndef LOCK_OWNER_H
#define LOCK_OWNER_H

#include "pid_namespace.h"
#include "slab.h"
#include "stacks.h"

typedef struct {
	s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

struct mutex {
	atomic_long_t owner; // a struct task_struct, and three bits of the mutex
} __attribute__((preserve_access_index));

struct rw_semaphore {
	atomic_long_t owner; // the writer, or with its first bit the last of the readers
} __attribute__((preserve_access_index));

struct mm_struct___locks {
	struct rw_semaphore mmap_lock;
} __attribute__((preserve_access_index));

struct spinlock {
	u32 value;
};

struct sighand_struct {
	struct spinlock siglock;
} __attribute__((preserve_access_index));

struct task_struct___locks {
	struct mm_struct___locks *mm;
	struct sighand_struct *sighand;
} __attribute__((preserve_access_index));

struct rq;

struct cfs_rq {
	struct rq *rq; // with CONFIG_FAIR_GROUP_SCHED
} __attribute__((preserve_access_index));

struct sched_entity {
	struct cfs_rq *cfs_rq; // with CONFIG_FAIR_GROUP_SCHED
} __attribute__((preserve_access_index));

struct task_struct___queued {
	struct sched_entity se;
} __attribute__((preserve_access_index));

extern struct task_struct *bpf_task_from_pid(int pid) __ksym __weak; // Linux 6.2
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

// The object of a slab cache that a lock is in.
struct slab_place {
	char cache[CACHE_LENGTH]; // "": in none, or the kernel does not tell
	u32 object_size;
	u32 offset;	  // of the lock in it, if the slab is as large as usual
	u32 least_offset; // if it is as small as it may be
	u32 shared;	  // caches of other objects are part of it
};

#define OWNER_BITS 7UL
#define READER_OWNED 1UL // RWSEM_READER_OWNED of kernel/locking/rwsem.c

static __always_inline bool is_own_mmap_lock(u64 lock)
{
	struct task_struct___locks *task = (void *)bpf_get_current_task();
	struct mm_struct___locks *mm = BPF_CORE_READ(task, mm);

	return mm && lock == (u64)mm + bpf_core_field_offset(mm->mmap_lock);
}

static __always_inline bool is_own_siglock(u64 lock)
{
	struct task_struct___locks *task = (void *)bpf_get_current_task();
	struct sighand_struct *sighand = BPF_CORE_READ(task, sighand);

	return sighand && lock == (u64)sighand + bpf_core_field_offset(sighand->siglock);
}

// The run queue of this CPU, by the task that runs on it; 0: not known.
static __always_inline u64 own_run_queue(void)
{
	struct task_struct___queued *task = (void *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->se.cfs_rq))
		return 0;
	return (u64)BPF_CORE_READ(task, se.cfs_rq, rq);
}

static __always_inline void read_slab(u64 address, struct slab_place *place)
{
	struct kmem_cache *cache;

	if (!bpf_get_kmem_cache)
		return;
	cache = bpf_get_kmem_cache(address);
	if (!cache)
		return;
	bpf_probe_read_kernel_str(place->cache, sizeof(place->cache), BPF_CORE_READ(cache, name));
	place->shared = (int)BPF_CORE_READ(cache, refcount) > 1;
	place->object_size = BPF_CORE_READ(cache, object_size);
	place->offset = slab_offset(cache, address, BPF_CORE_READ(cache, oo.x));
	place->least_offset = slab_offset(cache, address, BPF_CORE_READ(cache, min.x));
}

// Who holds a mutex, or holds a semaphore to write. Other locks do not say: NULL.
static __always_inline struct task_struct *owner_of(u64 lock, u32 flags)
{
	u64 owner = 0;

	if (flags == 32) { // IS_MUTEX
		struct mutex *mutex = (void *)lock;

		if (!bpf_core_field_exists(mutex->owner)) // PREEMPT_RT
			return NULL;
		owner = BPF_CORE_READ(mutex, owner.counter);
	} else if (flags == 2 || flags == 4) { // READS, WRITES: and neither spins nor is per CPU
		struct rw_semaphore *semaphore = (void *)lock;

		if (!bpf_core_field_exists(semaphore->owner))
			return NULL;
		owner = BPF_CORE_READ(semaphore, owner.counter);
		if (owner & READER_OWNED)
			return NULL;
	}
	return (void *)(owner & ~OWNER_BITS);
}

static __always_inline void name_owner(struct task_struct *task, u32 *tgid, u32 *tid,
				       char (*comm)[TASK_COMM_LEN])
{
	if (!task)
		return;
	if (pid_namespace_ino) {
		numbers_of(task, tgid, tid);
	} else {
		*tgid = BPF_CORE_READ(task, tgid);
		*tid = BPF_CORE_READ(task, pid);
	}
	BPF_CORE_READ_STR_INTO(comm, task, comm);
}

// The kernel stack of an owner that sleeps; STACK_NONE: it runs, or the kernel cannot say.
static __always_inline u64 owner_stack(struct task_struct *owner)
{
	struct task_struct *task;
	u64 id = STACK_NONE;
	u32 zero = 0;
	struct stack *mine = bpf_map_lookup_elem(&scratch, &zero);

	if (!bpf_task_from_pid || !owner || !mine)
		return id;
	task = bpf_task_from_pid(BPF_CORE_READ(owner, pid));
	if (!task)
		return id;
	if (task == owner) {
		long size = bpf_get_task_stack(task, mine->addresses, sizeof(mine->addresses), 0);

		if (size > 0)
			id = keep(0, KERNEL_BIT, size, 0);
	}
	bpf_task_release(task);
	return id;
}

#endif
