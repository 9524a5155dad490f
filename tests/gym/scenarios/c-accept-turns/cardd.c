#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static __attribute__((noinline)) int take_turn(int file, int type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(file, F_SETLKW, &lock) + 1;
}

static __attribute__((noinline)) int authorize_card(const char *text)
{
	usleep(35000);
	return text[0] != 0;
}

static __attribute__((noinline)) void serve_turn(int server, int file)
{
	char text[4096];
	int client;

	take_turn(file, F_WRLCK);
	client = accept(server, NULL, NULL);
	if (read(client, text, sizeof(text)) > 0 && authorize_card(text))
		dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
	close(client);
	take_turn(file, F_UNLCK);
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 3 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	for (int worker = 0; worker < 5; worker++)
		if (fork() == 0)
			break;
	int file = open(argv[2], O_CREAT | O_RDWR, 0600);

	for (;;)
		serve_turn(server, file);
}
