// Faults in pages one by one, once a line arrives: argv[1] times 10000 of them.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 10000, PAGE = 4096 };

int main(int argc, char **argv)
{
	char *memory = mmap(0, PAGES * (long)PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line;

	if (memory == MAP_FAILED || argc < 2)
		return 1;
	madvise(memory, PAGES * (long)PAGE, MADV_NOHUGEPAGE);
	write(1, "ready\n", 6);
	read(0, &line, 1);
	for (int round = atoi(argv[1]); round; round--) {
		for (long page = 0; page < PAGES; page++)
			memory[page * PAGE] = 1;
		madvise(memory, PAGES * (long)PAGE, MADV_DONTNEED);
	}
	return 0;
}
