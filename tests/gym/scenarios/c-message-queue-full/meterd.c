#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <unistd.h>

static __attribute__((noinline)) void send_reading(mqd_t queue, int meter)
{
	char reading[64] = {(char)meter};

	mq_send(queue, reading, sizeof(reading), 0);
}

int main(int argc, char **argv)
{
	struct mq_attr attributes = {.mq_maxmsg = 8, .mq_msgsize = 64};
	mqd_t queue = mq_open(argv[1], O_CREAT | O_WRONLY, 0600, &attributes);

	for (int meter = 0;; meter++) {
		send_reading(queue, meter);
		usleep(1000);
	}
}
