	.globl probe, find_inode, take, holder, on_cpu, moved, leaves, wakes, tail
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
