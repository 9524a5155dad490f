#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *lock_path;

static __attribute__((noinline)) void rebuild_index(void)
{
	int fd = open(lock_path, O_RDWR);

	flock(fd, LOCK_EX); /* somebody else may be at it */
	usleep(1000);
	flock(fd, LOCK_UN);
	close(fd);
}

static int listener(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (void *)&at, sizeof(at)) || listen(fd, 64))
		exit(1);
	return fd;
}

static void serve(int port, int number)
{
	int fd = listener(port);

	for (int turn = 0;; turn++) {
		char text[2048];
		int client = accept(fd, NULL, NULL);

		if (number == 2 && turn == 3)
			rebuild_index();
		if (read(client, text, sizeof(text)) > 0)
			dprintf(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n");
		close(client);
	}
}

int main(int argc, char **argv)
{
	int port = atoi(argv[1]), fd;

	if (argc < 3)
		return 1;
	lock_path = argv[2];
	fd = open(lock_path, O_RDWR);
	flock(fd, LOCK_EX); /* the master forgot to give it back */
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(fd);
			serve(port, i);
		}
	for (;;)
		pause();
}
