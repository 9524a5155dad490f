// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The state of a walk of a user stack, which all of its parts share: see unwind_walk.h.
#ifndef WALK_H
#define WALK_H

#include "unwind_tables.h"
#include "user_registers.h"

#define WALK_FRAMES 127
#ifndef WALK_EXTRA
#define WALK_EXTRA 0 // room behind the frames, for others than native ones
#endif
#ifndef WALK_PLACES
#define WALK_PLACES 1 // programs that may interrupt each other on a CPU
#endif
#define GO_ON -1
#define NEAR_BYTES 256	// of a function's start, in which a frame is set up
#define BELOW_WORDS 128 // of a frame, in which a switch of stacks left its return address

// Follow rules for the leaf only, then frame pointers: cheap, and whole where all code has them.
CONFIG bool walks_frame_pointers = false;

struct walk {
	u64 pc; // of the frame's next instruction
	u64 sp;
	u64 fp;
	struct code_mapping mapping; // that the last address was in
	u32 list;
	u32 count;
	u32 version;	  // of the mappings
	u32 is_called;	  // a call is known to have left pc
	struct rule rule; // of the frame
	u32 is_exact;	  // pc is no return address: of the leaf, or of what a signal interrupted
	u32 is_fp_lost;	  // fp is not known
	u32 depth;
	u32 reason;
	u32 guessed;	     // steps by frame pointer, for lack of a rule
	u32 guessed_at;	     // frames that there were at the last of them
	u32 has_more_python; // than a stack has room for
	u32 is_32_bits;	     // code of i386, with words of 4 bytes
	u64 identity;	     // of the program
	u32 process;	     // tgid in the initial pid namespace
	u64 ax;		     // of the leaf, with which generated code leaves its caller
	u64 bx;
	u64 dx;
	u64 r13;
	u64 lr;			 // arm64: where a leaf returns to; signed or not
	u8 code[NEAR_BYTES + 8]; // in which a frame that was set up is looked for
	u64 below[BELOW_WORDS];	 // of the frame that the frame pointer leads to
	u64 lacking;		 // address whose rule is not built
	u64 return_probes;	 // those of functions further out: see walk_uprobes.h
	// The leaf's address, then return addresses; one that a signal interrupted has 1 added, so
	// that the address before is in the function that ran.
	u64 frames[WALK_FRAMES + WALK_EXTRA];
};

// Written by the program at `place` on this CPU.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WALK_PLACES);
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline bool read_user(void *to, u32 size, u64 address)
{
	return !bpf_probe_read_user(to, size, (void *)address);
}

#endif
