#include <fcntl.h>
#include <unistd.h>

__attribute__((noinline)) int open_job(void)
{
	return open("/etc/hostname", O_RDONLY); // nobody closes it
}

int main(void)
{
	for (;;) {
		open_job();
		usleep(2000);
	}
}
