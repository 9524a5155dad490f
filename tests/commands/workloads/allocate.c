// Calls malloc() a known number of times with known sizes, after a byte on standard input.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept; // keeps the compiler from leaving malloc() out

#define AGAIN __asm__ volatile("") // keeps a call from becoming a jump

__attribute__((noinline)) static void allocate_small(void)
{
	for (int i = 0; i < 1009; i++) {
		kept = malloc(100);
		free(kept);
	}
	AGAIN;
}

__attribute__((noinline)) static void allocate_big(void)
{
	for (int i = 0; i < 101; i++) {
		kept = malloc(5000);
		free(kept);
	}
	AGAIN;
}

int main(void)
{
	char byte;

	if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
		return 1;
	allocate_small();
	allocate_big();
	if (write(1, "done\n", 5) != 5 || read(0, &byte, 1) < 0)
		return 1;
	return 0;
}
