"""Types of the data that machine code touches: instructions and types in, claims out. Pure.

`types` models the types, `layout` finds the member at an offset, `dwarf` reads both from DWARF,
`code` decodes functions, `flow` follows pointers through registers and the stack, and `claims` says
which member an instruction touches, or why this is unknown. `kernel_code` does so for the kernel:
by BTF (`btf_types`), declarations of its functions (`kernel_scope`) and later uses (`later_uses`,
with the stack slots of `frames` and the structs around members of `containers`).
"""
