#include <pthread.h>
#include <unistd.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static volatile int route;

__attribute__((noinline)) void reload_table(void)
{
	pthread_rwlock_wrlock(&table);
	usleep(180000);
	route++;
	pthread_rwlock_unlock(&table);
}

__attribute__((noinline)) int find_route(void)
{
	pthread_rwlock_rdlock(&table);
	int found = route;
	pthread_rwlock_unlock(&table);
	return found;
}

static void *reloader(void *unused)
{
	for (;;) {
		reload_table();
		usleep(20000);
	}
	return unused;
}

static void *reader(void *unused)
{
	for (;;) {
		find_route();
		usleep(1000);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, reloader, NULL);
	for (int i = 0; i < 5; i++)
		pthread_create(&thread, NULL, reader, NULL);
	for (;;)
		pause();
}
