// Opens, reads, writes, forks and connects, always the same: what scripts about it print is known.
// argv[1] is a program that ends at once.
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) long twice(long number)
{
	__asm__ volatile("");
	return 2 * number;
}

int main(int argc, char **argv)
{
	static const char *const paths[] = {"/etc/passwd", "/etc/group", "/nowhere"};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
	static char bytes[8192];
	int null = open("/dev/null", O_WRONLY), socket_fd = socket(AF_INET, SOCK_STREAM, 0);
	volatile long sum = 0;

	for (int i = 0; i < 1009; i++) {
		int file = open(paths[i % 3], O_RDONLY);

		if (file >= 0) {
			sum += read(file, bytes, i % 700);
			close(file);
		}
		sum += write(null, bytes, i * 7 % 5000);
		sum += syscall(SYS_getppid) + twice(i);
	}
	for (int i = 0; i < 7 && argc > 1; i++) {
		if (!fork()) {
			execl(argv[1], argv[1], NULL);
			_exit(1);
		}
		wait(NULL);
	}
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 5; i++)
		sum += connect(socket_fd, (struct sockaddr *)&address, sizeof(address));
	return sum == 42;
}
