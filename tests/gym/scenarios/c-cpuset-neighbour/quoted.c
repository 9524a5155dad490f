#include <unistd.h>

static volatile double sum;

static __attribute__((noinline)) void price_quote(void)
{
	for (int i = 1; i < 300000; i++)
		sum += 1.0 / i;
}

int main(void)
{
	for (;;) {
		price_quote();
		usleep(4000);
	}
}
