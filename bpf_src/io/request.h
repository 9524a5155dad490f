// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The parts of the kernel's block requests, and of the files behind their pages, that are used here.
#ifndef IO_REQUEST_H
#define IO_REQUEST_H

#include "task.h"

typedef __u16 u16;

#define REQ_OP_MASK 0xff
#define PAGE_MAPPING_FLAGS 3UL	      // anonymous or movable: no file (include/linux/page-flags.h)
#define LEAST_MASK 0xffffffffc0000000 // of struct pages in 1 GiB; no struct page is up there
#define S_IFMT 0170000
#define S_IFBLK 0060000

struct gendisk {
	int major;
	int first_minor;
} __attribute__((preserve_access_index));

struct request_queue {
	struct gendisk *disk;
} __attribute__((preserve_access_index));

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct hlist_node {
	struct hlist_node *next;
} __attribute__((preserve_access_index));

struct hlist_head {
	struct hlist_node *first;
} __attribute__((preserve_access_index));

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
} __attribute__((preserve_access_index));

struct dentry___without_d_u { // as in Linux 7.2
	struct hlist_node d_alias;
} __attribute__((preserve_access_index));

struct super_block {
	unsigned int s_dev;
} __attribute__((preserve_access_index));

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	struct hlist_head i_dentry;
} __attribute__((preserve_access_index));

struct address_space {
	struct inode *host;
} __attribute__((preserve_access_index));

struct page {
	unsigned long compound_head; // not in Linux 7.2
	unsigned long compound_info; // there: of a page behind the first one, that one, or a mask
	struct address_space *mapping;
} __attribute__((preserve_access_index));

struct bio_vec {
	struct page *bv_page;
} __attribute__((preserve_access_index));

struct bvec_iter {
	unsigned int bi_idx;
} __attribute__((preserve_access_index));

struct bio {
	struct bvec_iter bi_iter;
	u16 bi_vcnt;
	struct bio_vec *bi_io_vec;
} __attribute__((preserve_access_index));

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
} __attribute__((preserve_access_index));

struct request___before_5_17 { // commit f3fa33acca9f, "block: remove the ->rq_disk field"
	struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

// As the kernel's MKDEV(): of the whole disk.
static __always_inline u32 disk_of(struct request *request)
{
	struct request___before_5_17 *older = (void *)request;
	struct gendisk *disk;

	if (bpf_core_field_exists(older->rq_disk))
		disk = BPF_CORE_READ(older, rq_disk);
	else
		disk = BPF_CORE_READ(request, q, disk);
	if (!disk)
		return 0; // a command to a driver
	return (u32)BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
}

// The file that the first page of a request caches; NULL: none, as with O_DIRECT.
static __always_inline struct inode *inode_of(struct request *request)
{
	struct bio *bio = BPF_CORE_READ(request, bio);
	struct address_space *mapping;
	struct page *page;
	u64 head;

	if (!bio || !BPF_CORE_READ(request, __data_len))
		return NULL;
	page = BPF_CORE_READ(bio, bi_io_vec, bv_page);
	if (!page)
		return NULL;
	if (bpf_core_field_exists(page->compound_head))
		head = BPF_CORE_READ(page, compound_head);
	else
		head = BPF_CORE_READ(page, compound_info);
	if (head >= LEAST_MASK && head & 1)
		page = (void *)((u64)page & head);
	else if (head & 1) // a page behind the first one of a folio
		page = (void *)(head - 1);
	mapping = BPF_CORE_READ(page, mapping);
	if (!mapping || (u64)mapping & PAGE_MAPPING_FLAGS)
		return NULL;
	return BPF_CORE_READ(mapping, host);
}

// A name of an inode, and of the folder it is in; false: it has none at the moment.
static __always_inline bool names_of(struct inode *inode, char *name, char *folder, u32 size)
{
	struct hlist_node *first = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry___without_d_u *newer = NULL;
	struct dentry *entry = NULL;

	if (!first)
		return false;
	if (bpf_core_field_exists(newer->d_alias))
		entry = (void *)first - bpf_core_field_offset(newer->d_alias);
	else
		entry = (void *)first - bpf_core_field_offset(entry->d_u.d_alias);
	bpf_probe_read_kernel_str(name, size, BPF_CORE_READ(entry, d_name.name));
	bpf_probe_read_kernel_str(folder, size, BPF_CORE_READ(entry, d_parent, d_name.name));
	return true;
}

#endif
