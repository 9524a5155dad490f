#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct entry {
	struct entry *next;
	long cents;
};

static struct entry *book;

static __attribute__((noinline)) long sum_book(int turn)
{
	long sum = 0;

	for (struct entry *at = book; at; at = at->next)
		sum += at->cents;
	if (turn % 9 == 8)
		book->next = (struct entry *)0x8; /* the page was given back */
	return sum;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(fd, (void *)&at, sizeof(at)) || listen(fd, 64))
		return 1;
	for (int i = 0; i < 200; i++) {
		struct entry *new = malloc(sizeof(*new));

		new->cents = i;
		new->next = book;
		book = new;
	}
	for (int turn = 0;; turn++) {
		char text[2048];
		int client = accept(fd, NULL, NULL);

		if (read(client, text, sizeof(text)) > 0)
			dprintf(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 8\r\n\r\n%07ld\n", sum_book(turn));
		close(client);
	}
}
