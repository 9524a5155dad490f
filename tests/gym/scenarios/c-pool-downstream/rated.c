#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int port;

__attribute__((noinline)) static int ask_rate(int fd)
{
	static const char request[] = "GET /rate HTTP/1.1\r\nHost: x\r\n\r\n";
	char answer[512];

	if (write(fd, request, sizeof(request) - 1) < 0)
		return -1;
	return read(fd, answer, sizeof(answer));
}

static void *work(void *unused)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, "127.0.0.1", &peer.sin_addr);
	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)))
		exit(1);
	for (;;)
		if (ask_rate(fd) <= 0)
			exit(1);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	port = argc > 1 ? atoi(argv[1]) : 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, work, NULL);
	for (;;)
		pause();
}
