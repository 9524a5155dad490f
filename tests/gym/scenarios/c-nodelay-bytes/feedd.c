#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static __attribute__((noinline)) ssize_t send_field(int sock, const char *field)
{
	ssize_t sent = send(sock, field, strlen(field), 0);

	return sent < 0 ? 0 : sent;
}

static __attribute__((noinline)) long send_tick(int sock, int number)
{
	char price[12];
	long sent = 0;

	snprintf(price, sizeof(price), "%d", number % 97);
	sent += send_field(sock, "eu");
	sent += send_field(sock, price);
	sent += send_field(sock, "\n");
	return sent;
}

static void receive(int server)
{
	int client = accept(server, NULL, NULL);
	char text[65536];

	while (recv(client, text, sizeof(text), MSG_WAITALL) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	int one = 1, sock, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	volatile long sum = 0;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 4))
		return 1;
	if (fork() == 0)
		receive(server);
	sock = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(sock, (void *)&at, sizeof(at)))
		return 1;
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (int number = 0;; number++) {
		sum += send_tick(sock, number);
		if (number % 400 == 0)
			usleep(2000);
	}
}
