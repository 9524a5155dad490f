#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *sign_path;

static __attribute__((noinline)) int get_signature(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), got = -1;
	char text[64];

	strncpy(at.sun_path, sign_path, sizeof(at.sun_path) - 1);
	if (!connect(fd, (void *)&at, sizeof(at)) && write(fd, "document", 8) == 8)
		got = read(fd, text, sizeof(text));
	close(fd);
	return got;
}

static void *serve(void *argument)
{
	int client = (int)(long)argument;
	char text[2048];

	while (read(client, text, sizeof(text)) > 0)
		dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%02d\n", get_signature());
	close(client);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	int server = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	sign_path = argv[2];
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
