#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WORKERS 3

struct parcel {
	unsigned number;
	char address[508];
};

static int queue[2];

static void print_label(const struct parcel *parcel)
{
	(void)parcel;
	usleep(25000);
}

static void work(void)
{
	struct parcel parcel;

	prctl(PR_SET_NAME, "labeler");
	while (read(queue[0], &parcel, sizeof(parcel)) == sizeof(parcel))
		print_label(&parcel);
	exit(0);
}

static __attribute__((noinline)) int hand_out(const struct parcel *parcel)
{
	return write(queue[1], parcel, sizeof(*parcel)) == sizeof(*parcel) ? 0 : -1;
}

static __attribute__((noinline)) void read_orders(void)
{
	struct parcel parcel;

	memset(&parcel, 0, sizeof(parcel));
	for (;;) {
		parcel.number++;
		snprintf(parcel.address, sizeof(parcel.address), "street %u", parcel.number);
		if (hand_out(&parcel))
			return;
		usleep(1000);
	}
}

int main(void)
{
	if (pipe(queue))
		return 1;
	for (int i = 0; i < WORKERS; i++)
		if (fork() == 0)
			work();
	read_orders();
	return 0;
}
