#include <sys/epoll.h>
#include <unistd.h>

static __attribute__((noinline)) int poll_helpers(int loop)
{
	struct epoll_event events[8];
	int many = epoll_wait(loop, events, 8, 1000), bytes = 0;
	char text[64];

	for (int at = 0; at < many; at++)
		if (events[at].events & EPOLLIN)
			bytes += read(events[at].data.fd, text, sizeof(text));
	return bytes;
}

int main(void)
{
	int loop = epoll_create1(0), ends[2];
	volatile long sum = 0;

	for (int helper = 0; helper < 3; helper++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (pipe(ends))
			return 1;
		event.data.fd = ends[0];
		epoll_ctl(loop, EPOLL_CTL_ADD, ends[0], &event);
		if (fork() == 0) {
			for (int line = 0; line < (helper ? 1000000 : 3); line++) {
				usleep(200000);
				if (write(ends[1], "load 0.5\n", 9) < 0)
					break;
			}
			_exit(0);
		}
		close(ends[1]);
	}
	for (;;)
		sum += poll_helpers(loop);
}
