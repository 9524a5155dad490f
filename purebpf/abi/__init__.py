"""What the kernel defines: enums, layouts, instructions, section names; generated if it can be."""
