"""From call frame information, registers and a copied stack to whole stack traces. Pure."""
