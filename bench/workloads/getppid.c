// Calls getppid(2) N times, five times over; prints the least nanoseconds of one call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 100003;
	double least = 1e18;

	for (int round = 0; round < 5; round++) {
		double start = now_ns(), each;

		for (long i = 0; i < calls; i++)
			syscall(SYS_getppid);
		each = (now_ns() - start) / calls;
		if (each < least)
			least = each;
	}
	printf("%.1f\n", least);
	return 0;
}
