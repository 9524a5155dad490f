// Allocates, frees, maps and touches a known number of times, by a function each.
//
// Without arguments at once; with one, when it reads `g`. Before that it says `ready`, and allocates
// a byte for each other character; afterwards it says `done`, and waits for the end of its input.
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP __attribute__((noinline, noclone))
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

STEP void leaks(int n)
{
	for (int i = 0; i < n; i++) {
		void *memory = malloc(101);

		KEEP(memory);
	}
}

STEP void frees_half(int n)
{
	for (int i = 0; i < n; i++) {
		void *memory = calloc(7, 11);

		KEEP(memory);
		if (i & 1)
			free(memory);
	}
}

STEP void frees_all(int n)
{
	for (int i = 0; i < n; i++) {
		void *memory;

		if (posix_memalign(&memory, 64, 200))
			abort();
		KEEP(memory);
		free(memory);
	}
}

STEP void resizes(int n)
{
	void *memory = NULL;

	for (int i = 1; i <= n; i++) {
		memory = realloc(memory, 1000 * i);
		KEEP(memory);
	}
	if (realloc(memory, 1UL << 62)) // fails, and leaves it as it is
		abort();
	KEEP(memory);
}

STEP void aligns(int n)
{
	for (int i = 0; i < n; i++) {
		void *memory = aligned_alloc(32, 320);

		KEEP(memory);
	}
}

STEP void maps(int n)
{
	for (int i = 0; i < n; i++) {
		char *memory = mmap(NULL, 3 * 4096 - 5, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (int page = 0; page < 3; page++)
			((volatile char *)memory)[page * 4096] = 1;
	}
}

STEP void reserves(void)
{
	KEEP(mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

STEP void *in_thread(void *handed)
{
	free(handed);
	handed = malloc(55);
	KEEP(handed);
	return handed;
}

STEP void hands_over(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		void *back;

		pthread_create(&thread, NULL, in_thread, malloc(33));
		pthread_join(thread, &back);
		free(back);
	}
}

static int reads(void)
{
	char next;

	return read(0, &next, 1) > 0 ? next : 0;
}

int main(int count, char **words)
{
	(void)words;
	if (count > 1) {
		(void)!write(1, "ready\n", 6);
		for (;;) {
			int next = reads();
			void *one;

			if (!next)
				return 1;
			if (next == 'g')
				break;
			one = malloc(1);
			KEEP(one);
			free(one);
		}
	}
	leaks(1009);
	frees_half(2003);
	frees_all(503);
	resizes(11);
	aligns(307);
	maps(101);
	reserves();
	hands_over(13);
	if (count > 1) {
		(void)!write(1, "done\n", 5);
		while (reads())
			;
	}
	return 7;
}
