// Makes system calls of one kind for some seconds of its own CPU time: kernel_calls KIND SECONDS.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 64
#define ROUNDS 100

static double used_s(int who)
{
	struct rusage used;

	getrusage(who, &used);
	return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
	       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void call_stat(void)
{
	struct stat found;

	stat("/usr/share/doc/../../lib/os-release", &found);
}

static void call_open(void)
{
	int file = open("/etc/../etc/passwd", O_RDONLY | O_CLOEXEC);

	if (file >= 0)
		close(file);
}

static void call_mmap(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *place = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (place == MAP_FAILED)
		exit(1);
	for (int i = 0; i < PAGES; i += 4)
		place[i * page] = 1;
	mprotect(place, PAGES / 2 * page, PROT_READ);
	munmap(place, PAGES * page);
}

static void call_fork(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

// A thread of its own on the other side, as programs that talk to each other have.
static void answer(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
	_exit(0);
}

static int pipe_out, pipe_back;

static void begin_pipe(void)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		exit(1);
	if (!fork()) {
		close(there[1]);
		close(back[0]);
		answer(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	pipe_out = there[1];
	pipe_back = back[0];
}

static void call_pipe(void)
{
	char byte = 1;

	if (write(pipe_out, &byte, 1) != 1 || read(pipe_back, &byte, 1) != 1)
		exit(1);
}

static int udp;
static struct sockaddr_in own = {.sin_family = AF_INET};

static void begin_udp(void)
{
	socklen_t length = sizeof(own);

	udp = socket(AF_INET, SOCK_DGRAM, 0);
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (udp < 0 || bind(udp, (void *)&own, sizeof(own)) ||
	    getsockname(udp, (void *)&own, &length))
		exit(1);
}

static void call_udp(void)
{
	char data[64] = "";

	if (sendto(udp, data, sizeof(data), 0, (void *)&own, sizeof(own)) != sizeof(data) ||
	    recv(udp, data, sizeof(data), 0) != sizeof(data))
		exit(1);
}

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*begin)(void);
	void (*call)(void);
} kinds[] = {
	{"stat", nothing, call_stat}, {"open", nothing, call_open},	  {"mmap", nothing, call_mmap},
	{"fork", nothing, call_fork}, {"pipe", begin_pipe, call_pipe}, {"udp", begin_udp, call_udp},
};

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 1;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 2 || strcmp(argv[1], kinds[i].name))
			continue;
		kinds[i].begin();
		while (used_s(RUSAGE_SELF) + used_s(RUSAGE_CHILDREN) < seconds)
			for (int round = 0; round < ROUNDS; round++)
				kinds[i].call();
		return 0;
	}
	fprintf(stderr, "kernel_calls stat|open|mmap|fork|pipe|udp SECONDS\n");
	return 2;
}
