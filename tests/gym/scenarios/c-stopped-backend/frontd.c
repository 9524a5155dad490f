#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(int port)
{
	int sock = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return connect(sock, (void *)&at, sizeof(at)) ? -1 : sock;
}

static __attribute__((noinline)) ssize_t fetch_price(int backend, char *answer, size_t size)
{
	ssize_t got;

	dprintf(backend, "GET /price HTTP/1.1\r\nHost: back\r\n\r\n");
	got = read(backend, answer, size);
	return got < 0 ? 0 : got;
}

int main(int argc, char **argv)
{
	int one = 1, backend, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	char text[4096], answer[4096];

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 3 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	backend = connect_to(atoi(argv[2]));
	for (;;) {
		int client = accept(server, NULL, NULL);

		if (read(client, text, sizeof(text)) > 0 && fetch_price(backend, answer, sizeof(answer)))
			dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
		close(client);
	}
}
