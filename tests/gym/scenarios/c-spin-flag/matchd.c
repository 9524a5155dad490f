#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_flag table = ATOMIC_FLAG_INIT;
static long orders;

static __attribute__((noinline)) void lock_table(void)
{
	while (atomic_flag_test_and_set_explicit(&table, memory_order_acquire))
		__builtin_ia32_pause();
}

static __attribute__((noinline)) void settle_order(void)
{
	orders++;
	usleep(3000);
}

static void *match(void *unused)
{
	for (;;) {
		lock_table();
		settle_order();
		atomic_flag_clear_explicit(&table, memory_order_release);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, match, NULL);
	pthread_join(threads[0], NULL);
}
