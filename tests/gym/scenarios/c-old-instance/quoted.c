#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_listener(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (void *)&at, sizeof(at)) || listen(fd, 128))
		exit(1);
	return fd;
}

static __attribute__((noinline)) void flush_sessions(void)
{
	sigset_t none;

	sigemptyset(&none);
	for (;;)
		sigsuspend(&none); /* until the last session says goodbye */
}

static __attribute__((noinline)) int answer_quote(int client)
{
	char text[2048], body[64];
	double price = 101.25;

	if (read(client, text, sizeof(text)) <= 0)
		return -1;
	for (int i = 0; i < 20000; i++)
		price += (i % 7 - 3) * 1e-4;
	snprintf(body, sizeof(body), "%.4f\n", price);
	return dprintf(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
		       strlen(body), body);
}

int main(int argc, char **argv)
{
	int listener = open_listener(atoi(argv[1]));

	signal(SIGPIPE, SIG_IGN);
	if (argc > 2)
		flush_sessions();
	for (;;) {
		int client = accept(listener, NULL, NULL);

		answer_quote(client);
		close(client);
	}
}
