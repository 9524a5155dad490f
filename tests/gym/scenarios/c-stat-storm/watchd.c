#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((noinline)) void watch_tree(const char *folder)
{
	char path[256];
	struct stat info;

	for (int n = 0; n < 500; n++) {
		snprintf(path, sizeof(path), "%s/f%d", folder, n);
		stat(path, &info);
	}
}

int main(int argc, char **argv)
{
	for (;;) {
		watch_tree(argc > 1 ? argv[1] : "/tmp");
		usleep(5000);
	}
}
