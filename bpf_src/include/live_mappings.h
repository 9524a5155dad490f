// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Finds the mapping of an address in the process itself, until user space has published its mappings:
// the files that it maps may have rules already, for other processes.
//
// A lookup takes the lock of the address space, unless somebody has it to write. In an interrupt the
// kernel does one lookup, as it gives the lock back behind it: what follows is another mapping's.
#ifndef LIVE_MAPPINGS_H
#define LIVE_MAPPINGS_H

#include "walk.h"

#define VM_EXEC 4

CONFIG bool finds_vma = false; // bpf_find_vma() is there (Linux 5.17, commit 7c7e3d31e785)

// Offsets in this kernel, which user space sets; 0: not known, and nothing is looked up.
u32 vm_start_at = 0; // struct vm_area_struct
u32 vm_end_at = 0;
u32 vm_pgoff_at = 0;
u32 vm_flags_at = 0;
u32 vm_file_at = 0;
u32 f_inode_at = 0; // struct file
u32 i_ino_at = 0;   // struct inode
u32 i_sb_at = 0;
u32 i_size_at = 0;
u32 mtime_s_at = 0;
u32 mtime_ns_at = 0;
u32 s_dev_at = 0;   // struct super_block
u32 page_shift = 0; // written last

struct live_file {
	u64 inode;
	u32 device;
	u32 unused;
};

// The code of a file with rules, as long as it is not written to.
struct live_code {
	u64 size; // of the file
	u64 mtime_s;
	u32 mtime_ns;
	u32 exe;
	u64 first; // byte of the file that the code begins at, and the one behind it
	u64 end;
	u64 shift; // of an address in the file against its place
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct live_file);
	__type(value, struct live_code);
} live_files SEC(".maps");

static __always_inline u64 word_at(u64 address, u32 offset)
{
	return kernel_word((void *)(address + offset));
}

struct vm_area_struct;

// Puts a mapping into the walk, if it has the code of a file with rules.
static long take_area(struct task_struct *task, struct vm_area_struct *vma, u32 *at)
{
	u32 place = *at;
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	struct live_file key = {};
	struct live_code *code;
	u64 area, file, inode, offset;

	if (!walk)
		return 0;
	*(volatile u64 *)&walk->below[0] = (u64)vma; // read back, it is a number for the verifier
	area = *(volatile u64 *)&walk->below[0];
	file = word_at(area, vm_file_at);
	if (!file || !(word_at(area, vm_flags_at) & VM_EXEC))
		return 0;
	inode = word_at(file, f_inode_at);
	key.inode = word_at(inode, i_ino_at);
	key.device = word_at(word_at(inode, i_sb_at), s_dev_at);
	code = bpf_map_lookup_elem(&live_files, &key);
	if (!code || code->size != word_at(inode, i_size_at) ||
	    code->mtime_s != word_at(inode, mtime_s_at) ||
	    code->mtime_ns != (u32)word_at(inode, mtime_ns_at))
		return 0;
	offset = word_at(area, vm_pgoff_at) << (page_shift & 31);
	if (offset < code->first || offset >= code->end)
		return 0;
	walk->mapping.start = word_at(area, vm_start_at);
	walk->mapping.end = word_at(area, vm_end_at);
	walk->mapping.bias = walk->mapping.start - offset - code->shift;
	walk->mapping.exe = code->exe;
	return 0;
}

// As find_mapping(), of a process whose mappings are not published.
__noinline int find_live_mapping(u32 place, u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u32 at = place;

	if (!walk || !finds_vma || !page_shift)
		return WALK_UNKNOWN_MAPPING;
	walk->mapping.start = walk->mapping.end = 0;
	bpf_find_vma(bpf_get_current_task_btf(), address, take_area, &at, 0);
	if (address < walk->mapping.start || address >= walk->mapping.end)
		return WALK_UNKNOWN_MAPPING;
	return GO_ON;
}

// The process that a walk was finished of last, by part of its identity: user space is told once of
// each, by a copy, though it can do no better, so that it publishes the process.
#define TOLD_PROCESSES 256

struct told {
	u64 identities[TOLD_PROCESSES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct told);
} told_processes SEC(".maps");

// Where a process is noted; 0: its mappings are published, or it is not known which one it is.
static __always_inline u64 *told_process(struct walk *walk, u64 identity)
{
	u32 zero = 0, at = (identity ^ identity >> 8 ^ identity >> 24) & (TOLD_PROCESSES - 1);
	struct told *told;

	if (walk->version || !identity)
		return 0;
	told = bpf_map_lookup_elem(&told_processes, &zero);
	OPAQUE(at);
	return told ? &told->identities[at & (TOLD_PROCESSES - 1)] : 0;
}

#endif
