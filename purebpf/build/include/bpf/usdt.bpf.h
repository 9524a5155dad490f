/* SPDX-License-Identifier: MIT
 *
 * The arguments of static user-space probes (USDT). The loader fills the two maps: struct layouts
 * and names are what libbpf 1.7 and purebpf write.
 */
#ifndef PUREBPF_USDT_H
#define PUREBPF_USDT_H

#include "bpf_helpers.h"
#include "bpf_tracing.h"

/* Different descriptions of arguments, and places without a cookie (before Linux 5.15). */
#ifndef BPF_USDT_MAX_SPEC_CNT
#define BPF_USDT_MAX_SPEC_CNT 256
#endif
#ifndef BPF_USDT_MAX_IP_CNT
#define BPF_USDT_MAX_IP_CNT (4 * BPF_USDT_MAX_SPEC_CNT)
#endif
#define BPF_USDT_MAX_ARG_CNT 12

#define __PB_USDT_NO_ENTRY 2  /* ENOENT */
#define __PB_USDT_NO_PROBE 3  /* ESRCH */
#define __PB_USDT_INVALID 22 /* EINVAL */

enum __bpf_usdt_arg_type {
	BPF_USDT_ARG_CONST = 0,     /* val_off */
	BPF_USDT_ARG_REG = 1,       /* a register */
	BPF_USDT_ARG_REG_DEREF = 2, /* memory at register + val_off */
	BPF_USDT_ARG_SIB = 3,       /* memory at register + (index << scale) + val_off */
};

struct __bpf_usdt_arg_spec {
	__u64 val_off;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	enum __bpf_usdt_arg_type arg_type : 8;
	__u16 idx_reg_off : 12;
	__u16 scale_bitshift : 4;
	__u8 __reserved : 8;
#else
	__u8 __reserved : 8;
	__u16 idx_reg_off : 12;
	__u16 scale_bitshift : 4;
	enum __bpf_usdt_arg_type arg_type : 8;
#endif
	short reg_off; /* in struct pt_regs */
	_Bool arg_signed;
	char arg_bitshift; /* upper bits that are not the value's */
};

struct __bpf_usdt_spec {
	struct __bpf_usdt_arg_spec args[BPF_USDT_MAX_ARG_CNT];
	__u64 usdt_cookie;
	short arg_cnt;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BPF_USDT_MAX_SPEC_CNT);
	__type(key, int);
	__type(value, struct __bpf_usdt_spec);
} __bpf_usdt_specs SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BPF_USDT_MAX_IP_CNT);
	__type(key, long);
	__type(value, __u32);
} __bpf_usdt_ip_to_spec_id SEC(".maps") __weak;

extern const _Bool LINUX_HAS_BPF_COOKIE __kconfig;

/* The description of the probe that ctx is in, or NULL. */
static __always_inline struct __bpf_usdt_spec *__pb_usdt_spec(struct pt_regs *ctx)
{
	int number;

	if (LINUX_HAS_BPF_COOKIE) {
		number = bpf_get_attach_cookie(ctx);
	} else {
		long address = PT_REGS_IP(ctx);
		int *known = bpf_map_lookup_elem(&__bpf_usdt_ip_to_spec_id, &address);

		if (!known)
			return NULL;
		number = *known;
	}
	return bpf_map_lookup_elem(&__bpf_usdt_specs, &number);
}

/* The register at an offset of struct pt_regs: the verifier refuses variable offsets into ctx. */
static __always_inline long __pb_usdt_register(struct pt_regs *ctx, long offset,
					       unsigned long *value)
{
	return bpf_probe_read_kernel(value, sizeof(*value), (void *)ctx + offset);
}

/* The number of arguments of the probe, or a negative error. */
__weak __hidden int bpf_usdt_arg_cnt(struct pt_regs *ctx)
{
	struct __bpf_usdt_spec *spec = __pb_usdt_spec(ctx);

	return spec ? spec->arg_cnt : -__PB_USDT_NO_PROBE;
}

/* What the program was attached with: attach(..., cookie=). */
__weak __hidden long bpf_usdt_cookie(struct pt_regs *ctx)
{
	struct __bpf_usdt_spec *spec = __pb_usdt_spec(ctx);

	return spec ? spec->usdt_cookie : 0;
}

/* Reads argument `number`, from 0. Zero, or a negative error, and *result is 0 then. */
__weak __hidden int bpf_usdt_arg(struct pt_regs *ctx, __u64 number, long *result)
{
	struct __bpf_usdt_spec *spec = __pb_usdt_spec(ctx);
	struct __bpf_usdt_arg_spec *argument;
	unsigned long value = 0, index = 0;
	long err = 0;

	*result = 0;
	if (!spec)
		return -__PB_USDT_NO_PROBE;
	if (number >= BPF_USDT_MAX_ARG_CNT)
		return -__PB_USDT_NO_ENTRY;
	barrier_var(number);
	if (number >= spec->arg_cnt)
		return -__PB_USDT_NO_ENTRY;
	argument = &spec->args[number];
	switch (argument->arg_type) {
	case BPF_USDT_ARG_CONST:
		value = argument->val_off;
		break;
	case BPF_USDT_ARG_SIB:
		err = __pb_usdt_register(ctx, argument->idx_reg_off, &index);
		index <<= argument->scale_bitshift;
		/* fall through */
	case BPF_USDT_ARG_REG_DEREF:
		err = err ?: __pb_usdt_register(ctx, argument->reg_off, &value);
		value += index + argument->val_off;
		err = err ?: bpf_probe_read_user(&value, sizeof(value), (void *)value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		value >>= argument->arg_bitshift;
#endif
		break;
	case BPF_USDT_ARG_REG:
		err = __pb_usdt_register(ctx, argument->reg_off, &value);
		break;
	default:
		return -__PB_USDT_INVALID;
	}
	if (err)
		return err;
	value <<= argument->arg_bitshift;
	*result = argument->arg_signed ? (long)value >> argument->arg_bitshift
				       : (long)(value >> argument->arg_bitshift);
	return 0;
}

/* SEC("usdt/libc.so.6:libc:setjmp") int BPF_USDT(on_setjmp, void *place, int mask, void *address) */
#define __pb_usdt(number)                                                                          \
	({                                                                                         \
		long __pb_argument;                                                                \
		bpf_usdt_arg(ctx, number, &__pb_argument);                                         \
		(unsigned long long)__pb_argument;                                                 \
	})
#define BPF_USDT(name, arguments...)                                                               \
	__pb_program(name, struct pt_regs *ctx, __pb_with(__pb_usdt, arguments), ##arguments)

#endif
