// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where a directory or file is, as the process sees it: its name, that of the directory above it,
// and so on up to the root, across mounts. bpf_d_path() would say it at a few functions only.
#ifndef PATH_H
#define PATH_H

#include "purebpf.h"
#include <bpf/bpf_core_read.h>

#define NAME_ROOM 256  // include/uapi/linux/limits.h: NAME_MAX, and a NUL
#define PATH_ROOM 4096 // PATH_MAX
#define MAX_LEVELS 64  // names and mounts on the way up

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} __attribute__((preserve_access_index));

struct vfsmount {
	struct dentry *mnt_root;
} __attribute__((preserve_access_index));

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} __attribute__((preserve_access_index));

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} __attribute__((preserve_access_index));

struct fs_struct {
	struct path root;
	struct path pwd;
} __attribute__((preserve_access_index));

struct file {
	struct path f_path;
} __attribute__((preserve_access_index));

struct task_struct___paths {
	struct fs_struct *fs;
} __attribute__((preserve_access_index));

// A way up. `used`: bytes of names, each with its NUL, the innermost first; `whole`: it reached the
// root of the process, or of the mount namespace. It has to be in a map: of what is there the
// verifier knows nothing, so that it takes the ways through the loop for equal.
struct way_up {
	struct dentry *dentry;
	struct vfsmount *mnt;
	struct dentry *root;
	struct vfsmount *root_mnt;
	u32 used;
	bool whole;
};

static __always_inline void begin_way(struct way_up *way, struct path *path)
{
	struct task_struct___paths *task = (void *)bpf_get_current_task();

	way->dentry = BPF_CORE_READ(path, dentry);
	way->mnt = BPF_CORE_READ(path, mnt);
	way->root = BPF_CORE_READ(task, fs, root.dentry);
	way->root_mnt = BPF_CORE_READ(task, fs, root.mnt);
	way->used = 0;
	way->whole = false;
}

// Steps over the root of a mount. False: there is nothing above.
static __always_inline bool cross_mount(struct way_up *way)
{
	struct mount *mount = (void *)way->mnt - bpf_core_field_offset(struct mount, mnt);
	struct mount *above = BPF_CORE_READ(mount, mnt_parent);

	if (above == mount)
		return false;
	way->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
	way->mnt = (void *)above + bpf_core_field_offset(struct mount, mnt);
	return true;
}

// Writes the names to `names`, which has PATH_ROOM + NAME_ROOM bytes.
static __noinline int climb(struct way_up *way, char *names)
{
	if (!way || !names)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 level = 0; level < MAX_LEVELS; level++) {
		struct dentry *dentry = way->dentry, *parent;
		struct vfsmount *mnt = way->mnt;
		u32 used = way->used;
		long size;

		OPAQUE(level);
		if (!dentry || (dentry == way->root && mnt == way->root_mnt)) {
			way->whole = dentry;
			return 0;
		}
		parent = BPF_CORE_READ(dentry, d_parent);
		if (dentry == parent || dentry == BPF_CORE_READ(mnt, mnt_root)) {
			if (cross_mount(way))
				continue;
			way->whole = true;
			return 0;
		}
		OPAQUE(used);
		if (used > PATH_ROOM)
			return 0;
		size = bpf_probe_read_kernel_str(names + used, NAME_ROOM,
						 BPF_CORE_READ(dentry, d_name.name));
		if (size <= 0)
			return 0;
		way->used = used + size;
		way->dentry = parent;
	}
	return 0;
}

// A path that a call was given, with its NUL: bytes read, 0 if it is not in memory. On Linux 6.1 and
// 6.12 the helper says 0 for an empty string: strncpy_from_user_nofault() did not count its NUL.
static __always_inline u32 read_given_path(char *to, u64 from)
{
	long size = bpf_probe_read_user_str(to, PATH_ROOM, (void *)from);

	if (size)
		return size > 0 ? size : 0;
	to[0] = 0;
	return 1;
}

#endif
