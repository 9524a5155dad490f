#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int feed[2];
static volatile long quotes, checksum;

static __attribute__((noinline)) void on_quote(int number)
{
	char text[64];

	while (recv(feed[0], text, sizeof(text), MSG_DONTWAIT) > 0)
		quotes++;
	(void)number;
}

static __attribute__((noinline)) void update_book(void)
{
	for (int i = 0; i < 2000; i++)
		checksum += i * quotes % 97;
}

int main(void)
{
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, feed))
		return 1;
	if (!fork()) {
		char quote[32] = "EURUSD 1.0831";

		prctl(PR_SET_NAME, "quotefeed");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int n = 0;; n++) {
			send(feed[1], quote, sizeof(quote), 0);
			if (n % 4 == 0)
				usleep(100);
		}
	}
	signal(SIGIO, on_quote);
	fcntl(feed[0], F_SETOWN, getpid());
	fcntl(feed[0], F_SETFL, O_ASYNC | O_NONBLOCK);
	for (;;) {
		update_book();
		usleep(500);
	}
}
