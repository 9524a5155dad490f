// Makes a system call N times, ROUNDS times over, once a line has come; prints the least CPU
// nanoseconds of one call. The third word: "open" for openat(2) of a file that is missing, else getppid(2).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	long calls = atol(argv[1]);
	int rounds = atoi(argv[2]), opens = argc > 3 && !strcmp(argv[3], "open");
	double least = 1e18;

	if (getchar() == EOF)
		return 1;
	for (int round = 0; round < rounds; round++) {
		double start = cpu_ns(), each;

		for (long i = 0; i < calls; i++)
			if (opens)
				syscall(SYS_openat, -1, "/nowhere/at/all", O_RDONLY);
			else
				syscall(SYS_getppid);
		each = (cpu_ns() - start) / calls;
		if (each < least)
			least = each;
	}
	printf("%.1f\n", least);
	return 0;
}
