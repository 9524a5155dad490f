#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (64L << 20)
#define HUGE (2L << 20)

static __attribute__((noinline)) char *map_scratch(void)
{
	char *at = mmap(NULL, SIZE + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(at, SIZE + HUGE, MADV_HUGEPAGE);
	return at;
}

static __attribute__((noinline)) long scan_image(const char *text)
{
	char *scratch = map_scratch();
	long sum = 0;

	for (long at = 0; at < SIZE; at += HUGE) {
		scratch[at] = text[0];
		sum += scratch[at];
	}
	munmap(scratch, SIZE + HUGE);
	return sum;
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	char text[4096];

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	for (;;) {
		int client = accept(server, NULL, NULL);

		if (read(client, text, sizeof(text)) > 0 && scan_image(text))
			dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
		close(client);
	}
}
