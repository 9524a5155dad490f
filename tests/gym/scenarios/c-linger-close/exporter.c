#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int archive_port;

static struct sockaddr_in local(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

/* closes only when the archive has everything */
static __attribute__((noinline)) int finish_document(int fd)
{
	struct linger wait = { 1, 20 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
	return close(fd);
}

static __attribute__((noinline)) int export_document(void)
{
	static char page[120000];
	struct sockaddr_in at = local(archive_port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (void *)&at, sizeof(at)) || send(fd, page, sizeof(page), 0) < 0) {
		close(fd);
		return -1;
	}
	return finish_document(fd);
}

static void *serve(void *argument)
{
	int client = (int)(long)argument;
	char text[2048];

	while (read(client, text, sizeof(text)) > 0) {
		int failed = export_document();

		dprintf(client, "HTTP/1.1 %s\r\nContent-Length: 3\r\n\r\nok\n", failed ? "502 Bad Gateway" : "200 OK");
	}
	close(client);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = local(atoi(argv[1]));
	int server = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	archive_port = atoi(argv[2]);
	signal(SIGPIPE, SIG_IGN);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 3 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	for (;;) {
		pthread_t thread;
		long client = accept(server, NULL, NULL);

		pthread_create(&thread, NULL, serve, (void *)client);
		pthread_detach(thread);
	}
}
