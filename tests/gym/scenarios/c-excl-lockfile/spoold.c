#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static __attribute__((noinline)) int take_lock_file(const char *path)
{
	int file;

	while ((file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600)) < 0)
		usleep(200);
	return file;
}

static __attribute__((noinline)) void deliver_job(const char *path)
{
	int file = take_lock_file(path);

	usleep(30000);
	close(file);
	unlink(path);
	usleep(100);
}

int main(int argc, char **argv)
{
	for (int worker = 0; worker < 5; worker++)
		if (fork() == 0)
			break;
	for (;;)
		deliver_job(argc > 1 ? argv[1] : "/tmp/none");
}
