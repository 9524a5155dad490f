// A program without a C library, small enough to keep: each instruction of prologues, epilogues,
// alloca, a realigned stack, recursion and a tail call. Built and run by scripts/freeze_stacks.py.
#define STEP __attribute__((noinline))

volatile unsigned long sink;

STEP unsigned long leaf(unsigned long x) { return x * 3 + sink; }

STEP unsigned long recurse(int depth, unsigned long x)
{
	return depth ? recurse(depth - 1, x + depth) * leaf(depth) : leaf(x);
}

STEP unsigned long allocates(unsigned long x)
{
	volatile char *room = __builtin_alloca(16 + (x & 31));

	room[3] = x;
	return leaf(room[3]) + room[3];
}

STEP unsigned long realigned(unsigned long x)
{
	volatile unsigned long values[4] __attribute__((aligned(64)));

	values[1] = x;
	return leaf((unsigned long)values) + values[1];
}

STEP unsigned long many(unsigned long a, unsigned long b, unsigned long c)
{
	unsigned long x = leaf(a), y = leaf(b), z = leaf(c);

	return x * leaf(y) + y * leaf(z) + z * leaf(x) + a + b + c;
}

STEP unsigned long tail(unsigned long x) { return many(x, x + 1, x + 2); }

void run(void)
{
	sink += recurse(2, 1) + allocates(5) + realigned(6) + tail(7);
	asm volatile("mov $60, %%eax\n xor %%edi, %%edi\n syscall" ::: "eax", "edi");
}

asm(".globl _start\n"
    "_start:\n"
    ".cfi_startproc\n"
    ".cfi_undefined rip\n"
    "xor %ebp, %ebp\n"
    "call run\n"
    ".cfi_endproc\n");
