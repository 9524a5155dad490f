#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int slots[2];

static __attribute__((noinline)) char enter_slot(void)
{
	char token = 0;

	if (read(slots[0], &token, 1) != 1)
		exit(1);
	return token;
}

static __attribute__((noinline)) void render_pdf(void)
{
	usleep(120000); /* a page of the template engine */
}

static __attribute__((noinline)) void make_document(int client)
{
	char token = enter_slot();

	render_pdf();
	if (write(slots[1], &token, 1) != 1)
		exit(1);
	dprintf(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n");
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	int server = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || pipe(slots) || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	if (write(slots[1], "AB", 2) != 2)
		return 1;
	for (int i = 0; i < 10; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;) {
				char text[2048];
				int client = accept(server, NULL, NULL);

				if (read(client, text, sizeof(text)) > 0)
					make_document(client);
				close(client);
			}
		}
	for (;;)
		pause();
}
