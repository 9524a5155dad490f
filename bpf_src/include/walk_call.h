// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Tells return addresses, which a call left, from other addresses.
#ifndef WALK_CALL_H
#define WALK_CALL_H

#include "walk.h"
#include "walk_arm64.h"

#define CODE(back) ((u8)(code >> (64 - 8 * (back)))) // the byte so far before an address
#define CALL_INDIRECT(size) (CODE(size) == 0xff && (CODE((size) - 1) & 0x38) == 0x10)

// Whether the 8 bytes before an address end in a call.
static __always_inline bool ends_in_call(u64 code)
{
	if (arm64_code_bits)
		return is_arm64_call(code >> 32);
	return CODE(5) == 0xe8 || CALL_INDIRECT(2) || CALL_INDIRECT(3) || CALL_INDIRECT(4) ||
	       CALL_INDIRECT(6) || CALL_INDIRECT(7);
}

// Whether a call may have left the return address of a frame: rules hold for no other. libgcc
// writes the address of an exception handler over one (uw_install_context_1) before it goes there,
// and makecontext(3) begins a stack with a function. GO_ON; or else how the walk ends.
__noinline int check_call(u32 place)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &place);
	u64 code, key;
	u32 *is_entry;

	if (!walk)
		return WALK_RULE_UNSUPPORTED;
	if (!read_user(&code, sizeof(code), walk->pc - sizeof(code))) {
		key = (u64)walk->mapping.exe << 48 |
		      ((walk->pc - walk->mapping.bias) & ((1ull << 48) - 1));
		is_entry = bpf_map_lookup_elem(&call_sites, &key);
		if (!is_entry)
			return WALK_READ_FAULT;
		return *is_entry ? WALK_RULE_UNSUPPORTED : GO_ON;
	}
	return ends_in_call(code) ? GO_ON : WALK_RULE_UNSUPPORTED;
}

#endif
