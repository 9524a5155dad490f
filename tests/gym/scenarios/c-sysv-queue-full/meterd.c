#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <unistd.h>

struct reading {
	long type;
	char value[256];
};

static __attribute__((noinline)) int publish_reading(int queue, struct reading *reading)
{
	return msgsnd(queue, reading, sizeof(reading->value), 0) == 0;
}

static __attribute__((noinline)) int store_reading(int queue)
{
	struct reading reading;
	int is_taken = msgrcv(queue, &reading, sizeof(reading.value), 0, 0) >= 0;

	usleep(16000);
	return is_taken;
}

int main(void)
{
	int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

	if (fork() == 0) {
		prctl(PR_SET_NAME, "storer");
		prctl(PR_SET_PDEATHSIG, 15);
		for (;;)
			store_reading(queue);
	}
	for (int sensor = 0; sensor < 3; sensor++)
		if (fork() == 0) {
			struct reading reading = { .type = 1 };

			for (;;) {
				publish_reading(queue, &reading);
				usleep(1000);
			}
		}
	for (;;)
		pause();
}
