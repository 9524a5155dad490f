// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// User stacks, true to their ends: include this instead of stacks.h. See docs/stacks.md.
//
// By tables the program walks them itself (unwind_walk.h). Where it cannot finish, it sends user
// registers, what the sample is to be counted under, and the top of the stack, which the kernel
// appends as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER). User space finishes that
// stack, counts the sample, and fills the tables. Each sample is counted once: by the program, or,
// when this says STACK_SENT, by user space.
#ifndef USER_STACKS_H
#define USER_STACKS_H

#include "copy_budget.h"
#include "copy_output.h"
#include "stacks.h"

#define PYTHON_PLACES PLACES
#include "python_frames.h"
#define WALK_PLACES PLACES
#define WALK_EXTRA PYTHON_FRAMES
#include "unwind_walk.h"

#ifdef STACK_OWNERS
_Static_assert(OWNED_TOO_DEEP == WALK_TOO_DEEP, "stacks.h knows the reason");
#endif

enum call_graph {
	BY_FRAME_POINTERS = 0, // bpf_get_stack
	BY_TABLES = 1,	       // x86_64 and arm64, Linux 5.15
	BY_COPIES = 2,	       // as well: user space unwinds each sample
};

// Read-only, so that the verifier removes what is off. Frame pointers need nothing of a kernel.
CONFIG u32 call_graph = BY_FRAME_POINTERS;
CONFIG bool copies_deep = false; // user space goes on where the walk has all frames that it keeps

// By frame pointers the caller of a leaf without a frame is missing: its return address is at the
// stack pointer, or above the one register that was pushed. Both words are kept behind the frames
// where a call may have left them; user space knows by the leaf's rule which one it is, if any.
// On arm64 it is x30 instead.
enum leaf_words {
	NO_LEAF_WORDS = 0,
	OF_USER_MODE = 1, // of samples that interrupted code of the user
	OF_ALL = 2,	  // Linux 5.15: bpf_task_pt_regs
};

CONFIG u32 leaf_words = NO_LEAF_WORDS;

// Offsets in struct task_struct, which user space looks up in the kernel's BTF once samples are
// taken: the start does not wait for it. Until then processes have no identity, and every stack is
// copied. `group_leader_at` is written last.
u32 start_time_at = 0;
u32 self_exec_id_at = 0;
u32 group_leader_at = 0;

// The same of task_struct.mm and mm_struct.end_code, once a process exits or executes; the latter is
// written last. Until then stacks are looked for where there are none.
u32 mm_at = 0;
u32 end_code_at = 0;

#define MISS_KEY_WORDS 8
#define TICKET_BITS (FINISHED_BIT | 1ULL << 61) // of the ids of user_stack_by_ticket()

// What `copies` carries, as far as `depth` frames. `key` is what to count the sample under.
struct missed_stack {
	u64 time_ns;  // CLOCK_MONOTONIC
	u64 identity; // see process_identity(); 0: not known yet
	u32 cpu;
	u32 tgid;    // in our pid namespace; 0: it has no number there
	u32 process; // tgid in the initial pid namespace
	u32 depth;
	__u16 reason; // enum walk_reason
	__u16 guessed;
	u32 popped; // bytes that the copy begins below the stack pointer of `registers`
	u64 key[MISS_KEY_WORDS];
	u64 pc; // where the walk ended
	u64 sp;
	u64 fp;
	u64 is_exact;
	struct registers registers;
	u64 frames[WALK_FRAMES + DEEP_PYTHON_FRAMES];
};

// Of samples, one event per line.
struct unwind_stats {
	u64 tickets;	  // ids given to stacks that may be sent to user space
	u64 no_registers; // a task of the kernel, or its registers could not be read
	u64 no_stack;	  // a process that exits, or executes a program: has_dropped_stack()
	u64 walked;
	u64 frames;
	u64 copied;		// sent to `copies`
	u64 refused;		// the budget of copies was spent
	u64 output_full;	// the ring of the CPU had no room
	u64 output_none;	// the CPU has no ring, it came online later
	u64 output_failed;	//
	u64 ends[WALK_REASONS]; // walks, by reason
};

struct missed_stack *copies_record; // the type of what it carries

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct missed_stack);
} missed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct unwind_stats);
} unwind_stats SEC(".maps");

static __always_inline u64 task_word(u64 task, u32 offset)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)(task + offset));
	return word;
}

// As process_identity(), without the kernel's BTF at the load.
static __always_inline u64 identity_of_process(void)
{
	u64 leader;

	if (!group_leader_at)
		return 0;
	leader = task_word(bpf_get_current_task(), group_leader_at);
	return task_word(leader, start_time_at) << EXECUTED_BITS |
	       (task_word(leader, self_exec_id_at) & EXECUTED_MASK);
}

// Whether a call may have left a word.
static __always_inline bool is_return_address(u64 word)
{
	u64 code;

	return word >> 12 && !(word >> (arm64_code_bits ? 56 : 47)) &&
	       read_user(&code, sizeof(code), word - sizeof(code)) && ends_in_call(code);
}

// Puts the words at the stack pointer behind a stack of `depth` frames; a bit for each that was.
static __always_inline u32 append_leaf_words(struct stack *stack, u32 depth,
					     struct registers *registers)
{
	u64 top[2];
	u32 words = 0;

	if (registers->cs != USER_CS)
		return 0;
	if (arm64_code_bits)
		top[0] = registers->bx & arm64_code_bits;
	else if (!read_user(top, sizeof(top), registers->sp))
		return 0;
	// Checked anew for each: verifiers (6.1) forget the bounds of what is kept over a call.
	if (is_return_address(top[0])) {
		OPAQUE(depth);
		if (depth > MAX_DEPTH - 2)
			return 0;
		stack->addresses[depth] = top[0];
		depth++;
		words = 1;
	}
	if (!arm64_code_bits && registers->bp != registers->sp && // or it is a frame
	    is_return_address(top[1])) {
		OPAQUE(depth);
		if (depth > MAX_DEPTH - 1)
			return words;
		stack->addresses[depth] = top[1];
		words |= 2;
	}
	return words;
}

// What append_leaf_words() needs, of code of the user.
static __always_inline void leaf_registers(struct registers *ctx, struct registers *to)
{
	if (arm64_code_bits) {
		mark_arm64(to, CONTEXT_WORD(ARM64_PSTATE), 0);
		to->bx = CONTEXT_WORD(30);
		return;
	}
	to->cs = REGISTER(ctx, cs);
	to->sp = REGISTER(ctx, sp);
	to->bp = REGISTER(ctx, bp);
}

// Moves registers at an instruction that returns behind the call, as it will do itself.
static __always_inline bool pop_return(struct missed_stack *record, u64 *to)
{
	u32 size = record->registers.cs == USER_CS ? sizeof(u64) : sizeof(u32);
	u64 address = 0;

	if (size == sizeof(u64) ? !read_user(&address, sizeof(u64), record->registers.sp) :
				  !read_user(&address, sizeof(u32), record->registers.sp))
		return false;
	*to = address;
	record->registers.sp += size;
	record->popped = size;
	return true;
}

// The id of the current task's stack by frame pointers. `ctx` begins with the registers if this is
// a sample; `at_return`, of an instruction that returns: the stack begins with the caller.
static __always_inline u64 walk_by_frame_pointers(void *ctx, u32 place, bool is_sample,
						  bool at_return)
{
	struct stack *stack = bpf_map_lookup_elem(&scratch, &place);
	struct missed_stack *record = bpf_map_lookup_elem(&missed, &place);
	struct registers *registers = 0;
	u32 words = 0;
	long size;

	if (!stack || !record)
		return STACK_LOST;
	size = bpf_get_stack(ctx, stack->addresses, sizeof(stack->addresses), BPF_F_USER_STACK);
	if (leaf_words == NO_LEAF_WORDS || size <= 0)
		return keep(place, 0, size, 0);
	if (is_sample && is_of_user(ctx)) {
		leaf_registers(ctx, &record->registers);
		registers = &record->registers;
		if (at_return && !pop_return(record, &stack->addresses[0]))
			return keep(place, 0, size, 0);
	} else if (leaf_words == OF_ALL && saved_registers(&record->registers)) {
		registers = &record->registers;
	}
	if (registers)
		words = append_leaf_words(stack, size / sizeof(u64), registers);
	return keep(place, 0, size, words);
}

// As has_dropped_stack(), of a task in the kernel, without the kernel's BTF at the load.
static __always_inline bool dropped_stack(void)
{
	u64 mm;

	if (!end_code_at)
		return false;
	mm = task_word(bpf_get_current_task(), mm_at);
	return !mm || !task_word(mm, end_code_at);
}

// By a helper: the verifier would look at two instructions for each frame that there may be.
static __always_inline void copy_frames(u64 *to, struct walk *walk)
{
	u32 count = walk->depth;

	OPAQUE(count);
	if (count <= WALK_FRAMES)
		bpf_probe_read_kernel(to, count * sizeof(u64), walk->frames);
}

// Moves the walk at a place to the stack there.
static __always_inline void put_walk(struct stack *stack, struct walk *walk)
{
	u32 depth = walk->depth;

	stack->depth = depth;
	stack->reason = walk->reason;
	stack->guessed = walk->guessed;
	copy_frames(stack->addresses, walk);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < CHUNK; i++) { // what is compared beyond the depth is zero
		u32 at = depth + i;

		OPAQUE(at);
		if (at >= MAX_DEPTH)
			break;
		stack->addresses[at] = 0;
	}
}

// Puts the Python frames that a stack has no room for behind those that a record has; how many.
__noinline int more_python(u32 place)
{
	struct missed_stack *record = bpf_map_lookup_elem(&missed, &place);
	struct python_walk *frames = bpf_map_lookup_elem(&python_walks, &place);
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u32 depth, count;

	if (!python_deep || !record || !frames || !walk || !walk->has_more_python)
		return 0;
	depth = walk->depth;
	count = frames->depth - PYTHON_FRAMES;
	OPAQUE(depth);
	OPAQUE(count);
	if (depth > WALK_FRAMES || count > DEEP_PYTHON_FRAMES - PYTHON_FRAMES)
		return 0;
	if (bpf_probe_read_kernel(&record->frames[depth], count * sizeof(u64),
				  &frames->words[PYTHON_FRAMES]))
		return 0;
	return count;
}

// The bytes of a record that are to be sent.
static __always_inline u64 fill_missed(u32 place, struct missed_stack *record, struct walk *walk)
{
	u32 depth = walk->depth;

	record->cpu = bpf_get_smp_processor_id();
	record->reason = walk->reason;
	record->guessed = walk->guessed;
	record->depth = depth + (python_deep ? more_python(place) : 0);
	record->pc = walk->pc;
	record->sp = walk->sp;
	record->fp = walk->is_fp_lost ? 0 : walk->fp;
	record->is_exact = walk->is_exact;
	copy_frames(record->frames, walk);
	depth = record->depth;
	OPAQUE(depth);
	if (depth > WALK_FRAMES + (python_deep ? DEEP_PYTHON_FRAMES : 0))
		depth = WALK_FRAMES;
	return __builtin_offsetof(struct missed_stack, frames) + depth * sizeof(u64);
}

// True: user space has it. False: why not is the walk's reason.
static __always_inline bool send_missed(void *ctx, u32 place, struct missed_stack *record,
					struct walk *walk, struct unwind_stats *st)
{
	u64 size;

	if (!may_copy(record->time_ns)) {
		walk->reason = WALK_COPY_REFUSED;
		st->refused++;
		return false;
	}
	size = fill_missed(place, record, walk);
	if (output_copy(ctx, record, size, &st->copied, &st->output_full, &st->output_none,
			&st->output_failed))
		return true;
	walk->reason = WALK_COPY_LOST;
	return false;
}

#ifdef LIVE_MAPPINGS
// Tells user space of a process whose mappings are not published, by a stack that needs no copy;
// once of each process.
// False: it knows, or there is no room, and the stack is kept as it is.
static __always_inline bool tell_process(void *ctx, u32 place, struct missed_stack *record,
					 struct walk *walk, struct unwind_stats *st)
{
	u64 *told = told_process(walk, record->identity), ignored = 0, size;

	if (!told || *told == record->identity || !may_copy(record->time_ns))
		return false;
	size = fill_missed(place, record, walk);
	if (!output_copy(ctx, record, size, &st->copied, &ignored, &ignored, &ignored))
		return false;
	*told = record->identity;
	return true;
}
#endif

static __always_inline void start_walk(struct walk *walk, u32 place, struct missed_stack *record)
{
	u64 process = bpf_get_current_pid_tgid() >> 32;

	record->time_ns = bpf_ktime_get_ns();
	record->process = process;
	record->identity = identity_of_process();
	if (call_graph == BY_TABLES) {
		walk_stack(walk, place, &record->registers, process, record->identity);
		return;
	}
	begin_walk(walk, &record->registers);
	walk->reason = WALK_NOT_BUILT;
	if (walk->is_32_bits && arm64_code_bits)
		follow_i386_frames(walk, place);
}

// Puts the Python frames of the current task behind the native ones; user space merges them.
static __always_inline void append_python(struct walk *walk, u32 place, struct missed_stack *record)
{
	struct python_walk *frames = bpf_map_lookup_elem(&python_walks, &place);
	u32 depth = walk->depth, count;
	bool whole = walk->reason == WALK_COMPLETE || walk->reason == WALK_FP_GUESS;

	if (!frames || !walk_python(place, record->process, record->identity))
		return;
	count = frames->depth;
	if (frames->frame && !frames->is_cut && whole)
		walk->reason = WALK_TOO_DEEP; // more than PYTHON_FRAMES
	if (python_deep && count > PYTHON_FRAMES) {
		walk->has_more_python = 1;
		count = PYTHON_FRAMES;
		if (whole)
			walk->reason = WALK_TOO_DEEP;
	}
	OPAQUE(depth);
	OPAQUE(count);
	if (depth > WALK_FRAMES || count > PYTHON_FRAMES)
		return;
	if (depth + count > WALK_FRAMES) { // the outermost native ones are left out
		depth = WALK_FRAMES - count;
		if (whole)
			walk->reason = WALK_TOO_DEEP;
	}
	OPAQUE(depth);
	if (depth > WALK_FRAMES)
		return;
	bpf_probe_read_kernel(&walk->frames[depth], count * sizeof(u64), frames->words);
	walk->depth = depth + count;
}

// The stack of `record->registers`, of the current task. `record->key` and `tgid` are set. Only a
// stack that begins where the kernel says that it does can be sent.
static __always_inline u64 walk_record(void *ctx, u32 place, struct missed_stack *record,
				       bool may_send)
{
	struct unwind_stats *st = bpf_map_lookup_elem(&unwind_stats, &place);
	struct stack_stats *stack_st = bpf_map_lookup_elem(&stack_stats, &place);
	struct stack *stack = bpf_map_lookup_elem(&scratch, &place);
	struct walk *found = bpf_map_lookup_elem(&walks, &place);
	bool helps;

	if (!st || !stack_st || !stack || !found)
		return STACK_LOST;
	start_walk(found, place, record);
	st->walked++;
	st->frames += found->depth;
	if (found->reason < WALK_REASONS)
		st->ends[found->reason]++;
	if (python)
		append_python(found, place, record);
	helps = copy_helps(found->reason) || (copies_deep && found->reason == WALK_TOO_DEEP);
	if (may_send && helps && send_missed(ctx, place, record, found, st))
		return STACK_SENT;
#ifdef LIVE_MAPPINGS
	if (call_graph == BY_TABLES && may_send && !helps &&
	    tell_process(ctx, place, record, found, st))
		return STACK_SENT;
#endif
	if (found->reason == WALK_TOO_DEEP)
		stack_st->user_truncated++;
	put_walk(stack, found);
	return intern_scratch(place, 0);
}

static __always_inline u64 walk_registers(void *ctx, u32 place, struct missed_stack *record)
{
	return walk_record(ctx, place, record, true);
}

// The record of a place, for a sample that is counted under `key`, of `size` bytes.
static __always_inline struct missed_stack *describe_sample(u32 place, u32 tgid, const void *key,
							    u32 size)
{
	struct missed_stack *record = bpf_map_lookup_elem(&missed, &place);

	if (record) {
		record->popped = 0;
		record->tgid = tgid;
		__builtin_memcpy(record->key, key, size);
	}
	return record;
}

// What a sample's task has in user space: the id of its stack, or STACK_SENT. `ctx` begins with the
// registers, as that of a perf_event program does.
static __always_inline u64 user_stack_of_sample(void *ctx, u32 place, u32 tgid, const void *key,
						u32 size)
{
	struct unwind_stats *st = bpf_map_lookup_elem(&unwind_stats, &place);
	struct missed_stack *record;

	if (!user_stacks)
		return STACK_NONE;
	if (call_graph == BY_FRAME_POINTERS)
		return walk_by_frame_pointers(ctx, place, true, false);
	record = describe_sample(place, tgid, key, size);
	if (!record || !st)
		return STACK_LOST;
	if (!is_of_user(ctx) && dropped_stack()) {
		st->no_stack++;
		return STACK_NONE;
	}
	if (!user_registers(ctx, &record->registers)) {
		st->no_registers++;
		return STACK_NONE;
	}
	return walk_registers(ctx, place, record);
}

// An id that no stack had before.
static __always_inline u64 new_ticket(u32 place)
{
	struct unwind_stats *st = bpf_map_lookup_elem(&unwind_stats, &place);

	if (!st)
		return STACK_LOST;
	return TICKET_BITS | (u64)place << 56 | (u64)bpf_get_smp_processor_id() << 40 |
	       (++st->tickets & ((1ULL << 40) - 1));
}

// The same where something is counted only later: the id of the stack, or one that the copy was sent
// with as its key. User space gives the stack it finishes that id.
static __always_inline u64 stack_by_ticket(void *ctx, u32 place, u32 tgid, bool is_sample,
					   bool at_return)
{
	struct unwind_stats *st = bpf_map_lookup_elem(&unwind_stats, &place);
	struct missed_stack *record;
	u64 ticket, id;

	if (!user_stacks)
		return STACK_NONE;
	if (call_graph == BY_FRAME_POINTERS)
		return walk_by_frame_pointers(ctx, place, is_sample, at_return);
	if (!st)
		return STACK_LOST;
	if ((!is_sample || !is_of_user(ctx)) && dropped_stack()) {
		st->no_stack++;
		return STACK_NONE;
	}
	ticket = new_ticket(place);
	record = describe_sample(place, tgid, &ticket, sizeof(ticket));
	if (!record)
		return STACK_LOST;
#ifdef STACK_OWNERS
	record->key[1] = tgid;
#endif
	if (is_sample ? !user_registers(ctx, &record->registers) :
			!saved_registers(&record->registers)) {
		st->no_registers++;
		return STACK_NONE;
	}
	if (at_return && !pop_return(record, &record->registers.ip))
		return STACK_LOST;
	id = walk_registers(ctx, place, record);
	return id == STACK_SENT ? ticket : id;
}

static __always_inline u64 user_stack_by_ticket(void *ctx, u32 place, u32 tgid, bool is_sample)
{
	return stack_by_ticket(ctx, place, tgid, is_sample, false);
}

// At an instruction of user code that returns: the stack of its caller.
static __always_inline u64 callers_by_ticket(void *ctx, u32 place, u32 tgid)
{
	return stack_by_ticket(ctx, place, tgid, true, true);
}

static __always_inline u64 kernel_stack_of(void *ctx, u32 place)
{
	return kernel_stacks ? walk(ctx, place, KERNEL_BIT) : STACK_NONE;
}

#endif
