/* What the programs of the referee share: they measure each leaf call themselves, and write the CPU
 * time of each path of their own functions to the file that the first argument names. */
#ifndef REFEREE_TRUTH_H
#define REFEREE_TRUTH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline))
/* The call before it is not the last thing that its function does, and no two functions are the same,
 * as the compiler would make one of them. */
#define NOT_A_TAIL_CALL() __asm__ volatile("/* %0 */" ::"i"(__LINE__) : "memory")

static inline double cpu_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Some microseconds of work. */
static inline unsigned long spin(unsigned long turns)
{
	volatile unsigned long value = turns;

	for (unsigned long i = 0; i < turns; i++)
		value = value * 2862933555777941757UL + 3037000493UL;
	return value;
}

struct path {
	const char *functions; /* from the outermost to the leaf: "ref_a;ref_b" */
	void (*call)(void);
	double cpu_s;
};

static inline void run_paths(struct path *paths, int count, unsigned rounds)
{
	while (rounds--)
		for (int i = 0; i < count; i++) {
			double start = cpu_s(CLOCK_THREAD_CPUTIME_ID);

			paths[i].call();
			paths[i].cpu_s += cpu_s(CLOCK_THREAD_CPUTIME_ID) - start;
		}
}

static inline void write_truth(const char *file, const struct path *paths, int count)
{
	FILE *out = fopen(file, "w");

	if (!out)
		exit(2);
	fprintf(out, "{\"paths\": {");
	for (int i = 0; i < count; i++)
		fprintf(out, "%s\"%s\": %.6f", i ? ", " : "", paths[i].functions, paths[i].cpu_s);
	fprintf(out, "}, \"cpu_s\": %.6f}\n", cpu_s(CLOCK_PROCESS_CPUTIME_ID));
	fclose(out);
	while (getenv("REFEREE_STAYS")) /* a profiler looks names up while it lives */
		pause();
}

#endif
