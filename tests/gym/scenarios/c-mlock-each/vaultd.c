#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (48L << 20)

static __attribute__((noinline)) int open_vault(const char *text)
{
	char *vault = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int is_locked = mlock(vault, SIZE) == 0;

	memcpy(vault, text, 16);
	munmap(vault, SIZE);
	return is_locked + 1;
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

		if (read(client, text, sizeof(text)) > 0 && open_vault(text))
			dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
		close(client);
	}
}
