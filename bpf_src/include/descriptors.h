// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The open files of the current task, by their numbers.
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "task.h"

struct file;

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

// NULL: the number is not open, or another thread has closed it by now.
static __always_inline struct file *file_at(u32 fd)
{
	struct task_struct___files *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

#endif
