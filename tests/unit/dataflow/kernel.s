	.globl probe, find_inode, take, holder, on_cpu, moved, leaves, wakes, tail
	.globl per_cpu_member, nothing, chosen, calls, same, padded, warned, turned_off
	.globl around, flags, spilled, returned, by_members, clash, realigned
	.globl only_holder, several_holders, behind, of_page, on_frame, masked, in_tree, numbers
	.globl __raw_callee_save___pv_queued_spin_unlock, by_accesses
	.globl sites, indexed
	.globl filled, of_other_cpu, added, pair_find, takes_node, has_other, passes_inode
	.globl bucket, stores, end_of_stack, get_ref, demo_fill, fill, routed, overlaid
	.globl stacked, by_value, passes_value
	.globl fib_find, of_clone, find_inode.constprop.0, take.isra.0.part.1
	.globl overlaid_twice, of_program, walks, inside, paths
	.globl __x86_indirect_thunk_rax, __x86_return_thunk, open_box, wait_for
	.text
probe:				# (struct file *)
	movq	8(%rdi), %rax	# file.inode
	movl	4(%rax), %edx	# inode.mode
	ret
	.p2align 4
find_inode:			# returns a struct inode *
	xorl	%eax, %eax
	ret
	.p2align 4
take:				# (struct sem *)
	ret
	.p2align 4
holder:				# no prototype
	pushq	%rbx
	call	find_inode
	movq	%rax, %rbx
	leaq	16(%rbx), %rdi	# inode.sem
	call	take
	movl	4(%rbx), %eax	# inode.mode
	popq	%rbx
	ret
	.p2align 4
on_cpu:				# no prototype
	movq	%gs:0xffffffff81000000, %rax	# current
	movl	(%rax), %edx	# task.state
	movq	$0xffffffff81000010, %rcx
	addq	%gs:0xffffffff81000008, %rcx
	movl	4(%rcx), %edx	# queue.length of this CPU
	movq	(%rsi), %r8	# the offset of another one
	movl	0xffffffff81000014(%r8), %edx	# queue.length of that CPU
	ret
	.p2align 4
moved:				# no prototype; passes on what it got
	pushq	%rbx
	movq	%rdi, %rbx
	movl	4(%rbx), %eax	# inode.mode, by its use as an argument
	movl	64(%rbx), %eax	# behind an inode
	movq	%rbx, %rdi
	call	tail
	popq	%rbx
	ret
	.p2align 4
leaves:				# (struct inode *), a member of a larger struct
	leaq	-32(%rdi), %rax
	movl	8(%rax), %edx	# in front of the inode
	movl	36(%rax), %edx	# inode.mode
	ret
	.p2align 4
wakes:				# no prototype
	sti
	nop
	movl	(%rsi), %eax
	ret
	.p2align 4
tail:				# (struct inode *)
	ret
	.p2align 4
per_cpu_member:			# (struct cache *)
	movq	(%rdi), %rax	# cache.part, a per-CPU pointer
	movl	%gs:4(%rax), %edx	# queue.length of this CPU
	movq	%rax, %rcx
	addq	%gs:0xffffffff81000008, %rax
	movl	(%rax), %edx	# queue.lock of this CPU
	addq	%gs:0xffffffff81000010, %rcx	# no distance of a CPU
	movl	4(%rcx), %edx	# queue.length of an element
	ret
	.p2align 4
nothing:			# (struct file *)
	xorl	%eax, %eax
	movq	%rsi, %rcx
	testl	%edx, %edx
	je	1f
	movq	8(%rdi), %rax	# file.inode
	movq	%rax, %rcx	# or another thing
1:	movl	4(%rax), %edx	# inode.mode: it is NULL otherwise
	movl	4(%rcx), %edx	# unknown
	ret
	.p2align 4
chosen:				# (struct file *)
	movq	8(%rdi), %rax	# file.inode
	movq	$-12, %rdx
	movq	%rdi, %rcx
	cmovne	%rax, %rdx
	cmovne	%rax, %rcx
	movl	4(%rdx), %esi	# inode.mode
	movl	4(%rcx), %esi	# an inode, or a file
	ret
	.p2align 4
calls:				# (struct file *)
	pushq	%rbx
	movq	16(%rdi), %rbx	# file.ops
	movq	(%rbx), %rax	# ops.find, returns a struct inode *
	call	*%rax
	movl	4(%rax), %edx	# inode.mode
	movq	(%rbx), %rax	# ops.find
	call	__x86_indirect_thunk_rax
	movl	4(%rax), %edx	# inode.mode
	call	*(%rbx)		# ops.find
	movl	4(%rax), %edx	# inode.mode
	call	*8(%rbx)	# ops.close, returns nothing
	movl	4(%rax), %edx	# unknown
	popq	%rbx
	ret
	.p2align 4
__x86_indirect_thunk_rax:
	jmp	*%rax
	.p2align 4
__x86_return_thunk:
	ret
	.p2align 4
same:				# (struct twice *)
	movq	(%rdi), %rax	# twice.one, which is twice.other too
	movl	4(%rax), %edx	# inode.mode
	movq	8(%rdi), %rax	# of two types
	movl	4(%rax), %edx	# unknown
	ret
	.p2align 4
padded:				# (struct inode *)
	jmp	1f
	.p2align 5, 0x90
2:	ret
	int3
	.p2align 5, 0x90
1:	movl	4(%rdi), %edx	# inode.mode
	jne	1b
	jmp	2b
	.p2align 4
warned:				# (struct inode *)
	je	1f
	ud2
1:	movl	4(%rdi), %edx	# inode.mode
	ret
	.p2align 4
turned_off:			# (struct inode *)
	nopl	0(%rax,%rax)	# a jump to 1:, if it were turned on
	movl	4(%rdi), %edx	# inode.mode
2:	movl	(%rdi), %edx	# inode.flags
	ret
1:	movl	4(%rdi), %edx	# never runs
	jmp	2b
	.p2align 4
around:				# no prototype
	movl	4(%rdi), %edx	# inode.mode: it passes %rdi + 0 later
	leaq	-16(%rsi), %rax
	movl	(%rsi), %edx	# inode.sem.count: %rsi - 16 is an inode
	movl	-12(%rsi), %edx	# inode.mode
	pushq	%rax
	call	tail
	popq	%rdi
	jmp	tail
	.p2align 4
flags:				# no prototype
	movq	%rdi, %rbx
	andq	$-4, %rdi
	movl	4(%rbx), %edx	# inode.mode
	call	tail
	andq	$-4096, %rbx	# the start of its page is another thing
	movl	4(%rbx), %edx	# unknown
	ret
	.p2align 4
spilled:			# no prototype
	subq	$24, %rsp
	movl	4(%rdi), %edx	# inode.mode
	movq	%rdi, 8(%rsp)
	movl	4(%rsi), %edx	# unknown: its slot is written again
	movq	%rsi, (%rsp)
	movq	%rax, (%rsp)
	call	find_inode
	movq	8(%rsp), %rdi
	call	tail
	movq	(%rsp), %rdi
	call	tail
	addq	$24, %rsp
	ret
	.p2align 4
returned:			# returns a struct inode *
	movl	4(%rdi), %edx	# inode.mode
	movq	%rdi, %rax
	cmpq	$-4095, %rdi
	jmp	__x86_return_thunk
	.p2align 4
open_box:			# (struct sem *)
	ret
	.p2align 4
wait_for:			# (struct queue *)
	ret
	.p2align 4
by_members:			# no prototype
	pushq	%rbx
	movq	%rdi, %rbx
	movl	40(%rbx), %edx	# box.key: only a box has a sem and a queue at these places
	leaq	8(%rbx), %rdi
	call	open_box
	leaq	24(%rbx), %rdi
	call	wait_for
	popq	%rbx
	ret
	.p2align 4
clash:				# no prototype
	pushq	%rbx
	movq	%rdi, %rbx
	movl	40(%rbx), %edx	# a pair, or a double: both have two sems there
	leaq	8(%rbx), %rdi
	call	open_box
	leaq	24(%rbx), %rdi
	call	open_box
	popq	%rbx
	ret
	.p2align 4
realigned:			# (struct inode *)
	pushq	%rbp
	movq	%rsp, %rbp
	andq	$-64, %rsp
	subq	$64, %rsp
	movq	%rdi, 8(%rsp)
	xorl	%edi, %edi
	movq	8(%rsp), %rax
	movl	4(%rax), %edx	# inode.mode
	leave
	ret
	.p2align 4
only_holder:			# (struct tag *), which only a label has
	movl	24(%rdi), %eax	# label.weight
	movl	-8(%rdi), %eax	# in front of a label
	ret
	.p2align 4
several_holders:		# (struct sem *)
	movq	16(%rdi), %rax	# behind a sem, in one of several structs
	ret
	.p2align 4
behind:				# (struct sem *), which is in an inode
	subq	$16, %rdi
	movl	4(%rdi), %eax	# inode.mode
	jmp	tail
	.p2align 4
of_page:			# no prototype
	movq	%rdi, %rcx
	shrq	$12, %rdi
	shlq	$6, %rdi
	addq	0xffffffff81000100, %rdi
	movq	8(%rdi), %rax	# page.head
	shrq	$13, %rcx
	shlq	$6, %rcx
	addq	0xffffffff81000100, %rcx
	movq	8(%rcx), %rax	# unknown: pages have another size
	ret
	.p2align 4
on_frame:			# (struct inode *)
	subq	$40, %rsp
	movq	%rdi, %rsi
	movq	%rsp, %rdi
	movl	$4, %ecx
	rep stosq
	movq	%rsp, %rdi
	movl	$4, %ecx
	rep movsb		# from an inode
	addq	$40, %rsp
	ret
	.p2align 4
masked:				# (struct inode *)
	cmpq	%rsi, %rdx
	sbbq	%rcx, %rcx
	movq	%rdi, %rax
	andq	%rcx, %rdi
	movl	4(%rdi), %edx	# inode.mode, or NULL
	andq	%rsi, %rax
	movl	4(%rax), %edx	# unknown
	ret
	.p2align 4
in_tree:			# (struct maple_enode *)
	movq	%rdi, %rsi
	movq	%rdi, %rax
	xorb	%sil, %sil
	movq	8(%rsi), %rdx	# maple_node.slot
	andq	$-256, %rdi
	movq	8(%rdi), %rdx	# maple_node.slot
	movq	8(%rax), %rdx	# declared only
	ret
	.p2align 4
numbers:			# (unsigned long *)
	addq	$8, %rdi
	movq	(%rdi), %rax	# the next number
	ret
	.p2align 4
__raw_callee_save___pv_queued_spin_unlock:	# (struct qspinlock *)
	movb	$0, (%rdi)	# qspinlock.locked
	ret
	.p2align 4
by_accesses:			# no prototype
	pushq	%rbx
	movq	%rdi, %rbx
	movq	(%rbx), %rdx	# deep.inode: a shallow has two numbers there
	movl	8(%rbx), %edx	# deep.left
	leaq	56(%rbx), %rdi
	call	open_box
	popq	%rbx
	ret
	.p2align 4
sites:				# (struct inode *)
	movl	4(%rdi), %eax	# a register that stays
	nop
	movq	8(%rsi), %rsi	# one that changes
	nop
	movl	4(%rdi,%rcx,8), %eax	# an index
	nop
	movl	%gs:4(%rdi), %eax	# a segment
	nop
	cmpl	$0, -4(%rsi)	# fused with the branch
	je	1f
	nop
1:	leaq	4(%rdi), %rax	# no access
	nop
	ret
	.p2align 4
indexed:			# (struct table *), 40 bytes with two arrays of numbers
	imulq	$40, %rsi, %rax
	movq	(%rdi,%rax), %rdx	# table.key
	addq	%rdi, %rax
	movq	(%rax), %rdx		# table.key
	leaq	(%rsi,%rsi,4), %rax
	movq	(%rdi,%rax,8), %rdx	# table.key
	movq	%rsi, %rcx
	shlq	$3, %rcx
	leaq	(%rcx,%rcx,4), %rcx
	movq	(%rdi,%rcx), %rdx	# table.key
	imulq	$24, %rsi, %rax
	movq	(%rdi,%rax), %rdx	# unknown: no element, and one of two arrays
	movq	(%rdi,%rsi,8), %rdx	# one of two arrays
	ret
	.p2align 4
filled:				# (struct inode *)
	movl	$4, %ecx
	rep stosq		# an inode
	movq	%rdx, %rdi
	rep movsb		# between unknown places
	ret
	.p2align 4
of_other_cpu:			# no prototype
	movq	$0xffffffff81000010, %rdx
	movl	4(%rdi,%rdx), %eax	# queue.length of the CPU whose offset %rdi has
	ret
	.p2align 4
added:				# (struct cache *)
	shlq	$3, %rsi
	addq	(%rdi), %rsi	# cache.part[i]
	movl	4(%rsi), %eax	# queue.length
	ret
	.p2align 4
pair_find:			# (struct node *), of the part of the kernel that has a pair_item
	movq	16(%rdi), %rax	# pair_item.key
	ret
	.p2align 4
takes_node:			# (struct node *)
	movq	16(%rdi), %rax	# in one of several structs
	ret
	.p2align 4
has_other:			# (struct node *, struct other_item *)
	movq	16(%rdi), %rax	# perhaps in another struct than its parameter
	ret
	.p2align 4
passes_inode:			# (struct node *)
	movq	16(%rdi), %rdi	# third_item.inode: only a third_item has one there
	jmp	tail
	.p2align 4
bucket:				# no prototype
	movq	(%rsi,%rcx,8), %rdi	# a place that contains a struct inode *
	movl	(%rdx), %eax	# unknown
	jmp	tail
	.p2align 4
stores:				# (struct inode *)
	movq	%rdi, (%rsi,%rcx,8)	# a place that contains a struct inode *
	movl	%edi, (%rdx)	# a part of the pointer
	ret
	.p2align 4
end_of_stack:			# (struct task_struct *)
	movq	8(%rdi), %rax	# task_struct.stack
	cmpq	$0x57ac6e9d, (%rax)	# on this stack
	ret
	.p2align 4
get_ref:			# (struct percpu_ref *)
	movq	(%rdi), %rax	# percpu_ref.percpu_count_ptr
	incq	%gs:(%rax)	# the counter of this CPU
	ret
	.p2align 4
demo_fill:			# (struct super_block *), of a file system
	movq	8(%rdi), %rax	# super_block.s_fs_info
	movq	8(%rax), %rax	# demo_sb_info.blocks
	ret
	.p2align 4
fill:				# (struct super_block *)
	movq	8(%rdi), %rax	# super_block.s_fs_info
	movq	8(%rax), %rax	# unknown
	ret
	.p2align 4
routed:				# (struct sk_buff *)
	movq	8(%rdi), %rax	# sk_buff._skb_refdst
	andq	$-2, %rax
	movq	8(%rax), %rax	# dst_entry.ops
	ret
	.p2align 4
overlaid:			# (struct sk_buff *)
	movq	(%rdi), %rax	# a struct small *, or a struct large *
	movq	8(%rax), %rax	# large.two
	ret
	.p2align 4
overlaid_twice:			# (struct sk_buff *)
	movq	(%rdi), %rax	# a struct small *, or a struct large *
	movq	(%rax), %rax	# both have a member there
	ret
	.p2align 4
find_inode.constprop.0:		# returns a struct inode *
	ret
	.p2align 4
take.isra.0.part.1:		# returns nothing
	ret
	.p2align 4
of_clone:			# no prototype
	call	find_inode.constprop.0
	movl	4(%rax), %edx	# inode.mode
	call	take.isra.0.part.1
	movl	4(%rax), %edx	# unknown
	ret
	.p2align 4
stacked:			# (long, long, long, long, long, long, struct inode *)
	subq	$24, %rsp
	movq	%rcx, 8(%rsp)	# another place of the frame
	movq	32(%rsp), %rax
	movl	4(%rax), %ecx	# inode.mode
	movq	%rax, 16(%rsp)
	movl	$0, 8(%rsp)	# not over the pointer
	movq	16(%rsp), %rdx
	movl	4(%rdx), %ecx	# inode.mode
	movl	$0, 20(%rsp)	# over half of the pointer
	movq	16(%rsp), %rdx
	movl	4(%rdx), %ecx	# unknown
	addq	$24, %rsp
	ret
	.p2align 4
by_value:			# (struct words, struct inode *)
	movl	4(%rdx), %eax	# inode.mode
	movl	4(%rsi), %eax	# the second word
	ret
	.p2align 4
passes_value:			# no prototype
	movl	4(%rdx), %eax	# inode.mode
	movl	4(%rsi), %eax	# the second word
	call	by_value
	ret
	.p2align 4
fib_find:			# (struct fib_table *)
	movq	8(%rdi), %rax	# fib_table.tb_data
	movq	8(%rax), %rcx	# the first list of a leaf, or a struct key_vector *
1:	movl	4(%rcx), %edx	# key_vector.pos
	movq	8(%rcx,%rdx,8), %rcx
	testq	%rcx, %rcx
	jne	1b
	ret
	.p2align 4
of_program:			# no prototype
	stac
	movq	(%rdi), %rax	# memory of a program
	clac
	movq	(%rdi), %rax	# unknown
	ret
	.p2align 4
walks:				# (struct ma_state *)
	andq	$-256, %rsi
	movq	8(%rsi), %rax	# maple_node.slot
	andq	$-16, %rdx
	movq	8(%rdx), %rax	# unknown
	ret
	.p2align 4
inside:				# (struct inode *)
	leaq	4(%rdi), %rax
	andq	$-8, %rax
	movl	(%rax), %ecx	# inode.flags
	leaq	12(%rdi), %rax
	andq	$-8, %rax
	movl	(%rax), %ecx	# inode.size
	ret
	.p2align 4
paths:				# (struct inode *)
	je	1f
	movq	8(%rdi), %rax	# inode.size
1:	nop
	cmpl	$0, (%rdi)	# inode.flags
	je	2f
	movl	4(%rdi), %eax	# inode.mode
2:	nop
	cmpl	$0, (%rdi)	# inode.flags
	je	3f
	movl	(%rsi), %eax	# unknown
3:	nop
	cmpl	$0, (%rdi)	# inode.flags
	je	4f
	movl	8(%rsp), %eax	# on the stack
4:	nop
	ret
