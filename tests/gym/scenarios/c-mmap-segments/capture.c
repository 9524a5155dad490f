#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct segment {
	char *data;
	struct segment *next;
};

static struct segment *segments;

static __attribute__((noinline)) char *map_segment(size_t size)
{
	char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	((struct segment *)data)->next = segments;
	segments = (struct segment *)data;
	return data;
}

static __attribute__((noinline)) void record_frame(int number)
{
	char *data = map_segment(40960);

	memset(data + sizeof(struct segment), number, 40960 - sizeof(struct segment));
}

int main(void)
{
	for (int number = 0;; number++) {
		record_frame(number);
		usleep(15000);
	}
}
