// Calls that nest, recurse, spin for known times and leave without a return. It times each call
// itself, around it, and prints at the end: function, argument, nanoseconds; then "done".
// Before that it waits for a line of its input, or does not, with an argument; "deep": it only calls
// a function that calls itself 100 times.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <pthread.h>
#include <unistd.h>

#define OUT __attribute__((noinline, noclone, visibility("default")))

static jmp_buf back;
static struct { const char *name; long argument, ns; } times[4096];
static int calls;

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void note(const char *name, long argument, long began)
{
	long ns = now() - began;

	times[calls].name = name;
	times[calls].argument = argument;
	times[calls++].ns = ns;
}

static void spin(long us)
{
	for (long end = now() + us * 1000; now() < end;)
		;
}

OUT int leaf(int us)
{
	spin(us);
	return -us;
}

OUT int recurse(int left)
{
	spin(300);
	if (left) {
		long began = now();

		recurse(left - 1);
		note("recurse", left - 1, began);
	}
	return left;
}

OUT int outer(int times)
{
	spin(1000);
	for (int i = 0; i < times; i++) {
		long began = now();

		leaf(2000);
		note("leaf", 2000, began);
	}
	return times;
}

OUT int jumps(int far)
{
	if (far)
		longjmp(back, 1);
	return 7;
}

OUT int deep(int left)
{
	int below = left ? deep(left - 1) : 0;

	asm volatile("" : "+r"(below));
	return below + 1;
}

OUT int last(int word)
{
	return word + 1;
}

OUT int tail(int word)
{
	asm volatile("");
	return last(word); // a jump with -O2
}

OUT void *in_thread(void *word)
{
	leaf(100);
	return word;
}

OUT void never_returns(void)
{
	exit(0);
}

static void do_all(void)
{
	pthread_t threads[5];
	long began;

	for (int i = 0; i < 11; i++) {
		began = now();
		leaf(i % 3 ? 500 : 4000);
		note("leaf", i % 3 ? 500 : 4000, began);
	}
	for (int i = 0; i < 3; i++) {
		began = now();
		recurse(6);
		note("recurse", 6, began);
	}
	began = now();
	outer(5);
	note("outer", 5, began);
	for (volatile int i = 0; i < 13; i++)
		if (!setjmp(back))
			jumps(1);
	for (int i = 0; i < 17; i++)
		jumps(0);
	deep(22);
	for (int i = 0; i < 19; i++)
		tail(i);
	for (int i = 0; i < 5; i++)
		pthread_create(&threads[i], NULL, in_thread, NULL);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2 && getchar() == EOF)
		return 0;
	if (argc > 1 && *argv[1] == 'd')
		return deep(100) != 101;
	do_all();
	for (int i = 0; i < calls; i++)
		printf("%s %ld %ld\n", times[i].name, times[i].argument, times[i].ns);
	printf("done\n");
	fflush(stdout);
	never_returns();
}
