#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static __attribute__((noinline)) int stamp_lines(const char *text)
{
	char line[128];
	int length = 0;

	for (int number = 0; number < 400; number++) {
		time_t now = time(NULL) - number * 60;

		length += strftime(line, sizeof(line), "%Y-%m-%d %H:%M:%S", localtime(&now));
		length += text[number % 16];
	}
	return length;
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	char text[4096];

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	unsetenv("TZ");
	for (;;) {
		int client = accept(server, NULL, NULL);

		if (read(client, text, sizeof(text)) > 0 && stamp_lines(text))
			dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
		close(client);
	}
}
