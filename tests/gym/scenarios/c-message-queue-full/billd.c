#include <fcntl.h>
#include <mqueue.h>
#include <unistd.h>

static __attribute__((noinline)) void bill(void)
{
	usleep(50000);
}

int main(int argc, char **argv)
{
	struct mq_attr attributes = {.mq_maxmsg = 8, .mq_msgsize = 64};
	mqd_t queue = mq_open(argv[1], O_CREAT | O_RDONLY, 0600, &attributes);
	char reading[64];

	while (mq_receive(queue, reading, sizeof(reading), NULL) >= 0)
		bill();
}
