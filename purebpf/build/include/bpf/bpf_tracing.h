/* SPDX-License-Identifier: MIT
 *
 * Programs with the arguments of what they trace: registers by their role, and the macros that name
 * a function's arguments. x86 and arm64. The names are those of libbpf's header of this name.
 */
#ifndef PUREBPF_TRACING_H
#define PUREBPF_TRACING_H

#include "bpf_core_read.h"

#if !defined(__TARGET_ARCH_x86) && !defined(__TARGET_ARCH_arm64)
#error "compile with -D__TARGET_ARCH_x86 or -D__TARGET_ARCH_arm64: registers have other names"
#endif

struct pt_regs;

/* ---- the registers of struct pt_regs: in the kernel, and in <linux/ptrace.h> ---- */

#ifdef __TARGET_ARCH_x86

#define __pb_regs(ctx) (ctx)
#if defined(__VMLINUX_H__) || defined(__KERNEL__)
#define __pb_reg_1 di
#define __pb_reg_2 si
#define __pb_reg_3 dx
#define __pb_reg_4 cx
#define __pb_reg_result ax
#define __pb_reg_stack sp
#define __pb_reg_frame bp
#define __pb_reg_code ip
#else
#define __pb_reg_1 rdi
#define __pb_reg_2 rsi
#define __pb_reg_3 rdx
#define __pb_reg_4 rcx
#define __pb_reg_result rax
#define __pb_reg_stack rsp
#define __pb_reg_frame rbp
#define __pb_reg_code rip
#endif
#define __pb_reg_5 r8
#define __pb_reg_6 r9
#define __pb_reg_return __pb_reg_stack
#define __pb_call_1(regs) (regs)->__pb_reg_1
#define __pb_call_1_core(regs) BPF_CORE_READ(regs, __pb_reg_1)
#define __pb_reg_call_4 r10 /* SYSCALL overwrites rcx */

#else

struct pt_regs___arm64 {
	unsigned long orig_x0;
} __attribute__((preserve_access_index));

#define __pb_regs(ctx) ((const struct user_pt_regs *)(ctx))
#define __pb_reg_1 regs[0]
#define __pb_reg_2 regs[1]
#define __pb_reg_3 regs[2]
#define __pb_reg_4 regs[3]
#define __pb_reg_5 regs[4]
#define __pb_reg_6 regs[5]
#define __pb_reg_7 regs[6]
#define __pb_reg_8 regs[7]
#define __pb_reg_result regs[0]
#define __pb_reg_stack sp
#define __pb_reg_frame regs[29]
#define __pb_reg_code pc
#define __pb_reg_return regs[30]
#define __pb_call_1(regs) ((const struct pt_regs___arm64 *)(regs))->orig_x0
#define __pb_call_1_core(regs) BPF_CORE_READ((const struct pt_regs___arm64 *)(regs), orig_x0)
#define __pb_reg_call_4 __pb_reg_4

#endif

#define PT_REGS_PARM1(ctx) (__pb_regs(ctx)->__pb_reg_1)
#define PT_REGS_PARM1_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_1)
#define PT_REGS_PARM2(ctx) (__pb_regs(ctx)->__pb_reg_2)
#define PT_REGS_PARM2_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_2)
#define PT_REGS_PARM3(ctx) (__pb_regs(ctx)->__pb_reg_3)
#define PT_REGS_PARM3_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_3)
#define PT_REGS_PARM4(ctx) (__pb_regs(ctx)->__pb_reg_4)
#define PT_REGS_PARM4_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_4)
#define PT_REGS_PARM5(ctx) (__pb_regs(ctx)->__pb_reg_5)
#define PT_REGS_PARM5_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_5)
#define PT_REGS_PARM6(ctx) (__pb_regs(ctx)->__pb_reg_6)
#define PT_REGS_PARM6_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_6)
#ifdef __TARGET_ARCH_arm64
#define PT_REGS_PARM7(ctx) (__pb_regs(ctx)->__pb_reg_7)
#define PT_REGS_PARM7_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_7)
#define PT_REGS_PARM8(ctx) (__pb_regs(ctx)->__pb_reg_8)
#define PT_REGS_PARM8_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_8)
#endif
#define PT_REGS_RET(ctx) (__pb_regs(ctx)->__pb_reg_return)
#define PT_REGS_RET_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_return)
#define PT_REGS_FP(ctx) (__pb_regs(ctx)->__pb_reg_frame)
#define PT_REGS_FP_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_frame)
#define PT_REGS_RC(ctx) (__pb_regs(ctx)->__pb_reg_result)
#define PT_REGS_RC_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_result)
#define PT_REGS_SP(ctx) (__pb_regs(ctx)->__pb_reg_stack)
#define PT_REGS_SP_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_stack)
#define PT_REGS_IP(ctx) (__pb_regs(ctx)->__pb_reg_code)
#define PT_REGS_IP_CORE(ctx) BPF_CORE_READ(__pb_regs(ctx), __pb_reg_code)

/* The address behind the call of the probed function. */
#ifdef __TARGET_ARCH_x86
#define BPF_KPROBE_READ_RET_IP(address, ctx) \
	bpf_probe_read_kernel(&(address), sizeof(address), (void *)PT_REGS_RET(ctx))
#define BPF_KRETPROBE_READ_RET_IP(address, ctx) \
	bpf_probe_read_kernel(&(address), sizeof(address), (void *)(PT_REGS_FP(ctx) + 8))
#else
#define BPF_KPROBE_READ_RET_IP(address, ctx) ((address) = PT_REGS_RET(ctx))
#define BPF_KRETPROBE_READ_RET_IP BPF_KPROBE_READ_RET_IP
#endif

/* ---- arguments of system calls, in the registers that a call was made with ---- */

#define PT_REGS_SYSCALL_REGS(ctx) ((struct pt_regs *)PT_REGS_PARM1(ctx))
#define PT_REGS_PARM1_SYSCALL(regs) __pb_call_1(regs)
#define PT_REGS_PARM1_CORE_SYSCALL(regs) __pb_call_1_core(regs)
#define PT_REGS_PARM2_SYSCALL(regs) (__pb_regs(regs)->__pb_reg_2)
#define PT_REGS_PARM2_CORE_SYSCALL(regs) BPF_CORE_READ(__pb_regs(regs), __pb_reg_2)
#define PT_REGS_PARM3_SYSCALL(regs) (__pb_regs(regs)->__pb_reg_3)
#define PT_REGS_PARM3_CORE_SYSCALL(regs) BPF_CORE_READ(__pb_regs(regs), __pb_reg_3)
#define PT_REGS_PARM4_SYSCALL(regs) (__pb_regs(regs)->__pb_reg_call_4)
#define PT_REGS_PARM4_CORE_SYSCALL(regs) BPF_CORE_READ(__pb_regs(regs), __pb_reg_call_4)
#define PT_REGS_PARM5_SYSCALL(regs) (__pb_regs(regs)->__pb_reg_5)
#define PT_REGS_PARM5_CORE_SYSCALL(regs) BPF_CORE_READ(__pb_regs(regs), __pb_reg_5)
#define PT_REGS_PARM6_SYSCALL(regs) (__pb_regs(regs)->__pb_reg_6)
#define PT_REGS_PARM6_CORE_SYSCALL(regs) BPF_CORE_READ(__pb_regs(regs), __pb_reg_6)

/* ---- programs with named arguments ---- */

#define __pb_parameter_0 (unsigned long long)PT_REGS_PARM1(ctx)
#define __pb_parameter_1 (unsigned long long)PT_REGS_PARM2(ctx)
#define __pb_parameter_2 (unsigned long long)PT_REGS_PARM3(ctx)
#define __pb_parameter_3 (unsigned long long)PT_REGS_PARM4(ctx)
#define __pb_parameter_4 (unsigned long long)PT_REGS_PARM5(ctx)
#define __pb_parameter_5 (unsigned long long)PT_REGS_PARM6(ctx)
#define __pb_parameter_6 (unsigned long long)PT_REGS_PARM7(ctx)
#define __pb_parameter_7 (unsigned long long)PT_REGS_PARM8(ctx)
#define __pb_parameter(number) __pb_parameter_##number
#define __pb_result_0 (unsigned long long)PT_REGS_RC(ctx)
#define __pb_result(number) __pb_result_##number
#define __pb_call_argument_0 (unsigned long long)PT_REGS_PARM1_SYSCALL(regs)
#define __pb_call_argument_1 (unsigned long long)PT_REGS_PARM2_SYSCALL(regs)
#define __pb_call_argument_2 (unsigned long long)PT_REGS_PARM3_SYSCALL(regs)
#define __pb_call_argument_3 (unsigned long long)PT_REGS_PARM4_SYSCALL(regs)
#define __pb_call_argument_4 (unsigned long long)PT_REGS_PARM5_SYSCALL(regs)
#define __pb_call_argument_5 (unsigned long long)PT_REGS_PARM6_SYSCALL(regs)
#define __pb_call_argument(number) __pb_call_argument_##number
#define __pb_core_argument_0 (unsigned long long)PT_REGS_PARM1_CORE_SYSCALL(regs)
#define __pb_core_argument_1 (unsigned long long)PT_REGS_PARM2_CORE_SYSCALL(regs)
#define __pb_core_argument_2 (unsigned long long)PT_REGS_PARM3_CORE_SYSCALL(regs)
#define __pb_core_argument_3 (unsigned long long)PT_REGS_PARM4_CORE_SYSCALL(regs)
#define __pb_core_argument_4 (unsigned long long)PT_REGS_PARM5_CORE_SYSCALL(regs)
#define __pb_core_argument_5 (unsigned long long)PT_REGS_PARM6_CORE_SYSCALL(regs)
#define __pb_core_argument(number) __pb_core_argument_##number
#define __pb_slot(number) ctx[number]
#define __pb_with(f, arguments...) (ctx __pb_cat(__pb_comma_, __pb_count(arguments))(f))
#define __pb_comma_0(f)
#define __pb_comma_1(f), f(0)
#define __pb_comma_2(f), f(0), f(1)
#define __pb_comma_3(f), f(0), f(1), f(2)
#define __pb_comma_4(f), f(0), f(1), f(2), f(3)
#define __pb_comma_5(f), f(0), f(1), f(2), f(3), f(4)
#define __pb_comma_6(f), f(0), f(1), f(2), f(3), f(4), f(5)
#define __pb_comma_7(f), f(0), f(1), f(2), f(3), f(4), f(5), f(6)
#define __pb_comma_8(f), f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#define __pb_comma_9(f), f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8)
#define __pb_comma_10(f), f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9)
#define __pb_comma_11(f), f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10)
#define __pb_comma_12(f), f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11)

/* fentry, fexit, fmod_ret, LSM, BTF tracepoints, struct_ops: SEC("fentry/vfs_read") int
 * BPF_PROG(on_read, struct file *file).
 */
#define BPF_PROG(name, arguments...) \
	__pb_program(name, unsigned long long *ctx, __pb_with(__pb_slot, arguments), ##arguments)

#define BPF_KPROBE(name, arguments...) \
	__pb_program(name, struct pt_regs *ctx, __pb_with(__pb_parameter, arguments), ##arguments)
#define BPF_UPROBE(name, arguments...) BPF_KPROBE(name, ##arguments)

/* One argument at most: what the function returned. */
#define BPF_KRETPROBE(name, arguments...) \
	__pb_program(name, struct pt_regs *ctx, __pb_with(__pb_result, arguments), ##arguments)
#define BPF_URETPROBE(name, arguments...) BPF_KRETPROBE(name, ##arguments)

/* SEC("ksyscall/openat") and a kprobe at __x64_sys_openat: most kernels pass the registers of the
 * call as the only argument (CONFIG_ARCH_HAS_SYSCALL_WRAPPER).
 */
extern _Bool LINUX_HAS_SYSCALL_WRAPPER __kconfig;

#define BPF_KSYSCALL(name, arguments...) \
	name(struct pt_regs *ctx); \
	static __always_inline typeof(name(0)) __pb_cat(____, name)(struct pt_regs *ctx, ##arguments); \
	typeof(name(0)) name(struct pt_regs *ctx) \
	{ \
		struct pt_regs *regs = LINUX_HAS_SYSCALL_WRAPPER ? PT_REGS_SYSCALL_REGS(ctx) : ctx; \
		_Pragma("clang diagnostic push") \
		_Pragma("clang diagnostic ignored \"-Wint-conversion\"") \
		if (LINUX_HAS_SYSCALL_WRAPPER) \
			return __pb_cat(____, name) __pb_with(__pb_core_argument, arguments); \
		return __pb_cat(____, name) __pb_with(__pb_call_argument, arguments); \
		_Pragma("clang diagnostic pop") \
	} \
	static __always_inline typeof(name(0)) __pb_cat(____, name)(struct pt_regs *ctx, ##arguments)
#define BPF_KPROBE_SYSCALL BPF_KSYSCALL

#endif
