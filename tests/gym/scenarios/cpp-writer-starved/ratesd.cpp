#include <chrono>
#include <pthread.h>
#include <thread>
#include <vector>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static long rates[64];

__attribute__((noinline)) void update_rates(int number)
{
	pthread_rwlock_wrlock(&table);
	rates[number % 64]++;
	pthread_rwlock_unlock(&table);
}

__attribute__((noinline)) long quote_rate(int number)
{
	pthread_rwlock_rdlock(&table);
	std::this_thread::sleep_for(std::chrono::milliseconds(5));
	long rate = rates[number % 64];
	pthread_rwlock_unlock(&table);
	return rate;
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 8; i++)
		threads.emplace_back([i] {
			volatile long sum = 0;
			std::this_thread::sleep_for(std::chrono::microseconds(600 * i));
			for (int number = i;; number++)
				sum = sum + quote_rate(number);
		});
	threads.emplace_back([] {
		for (int number = 0;; number++) {
			update_rates(number);
			std::this_thread::sleep_for(std::chrono::milliseconds(20));
		}
	});
	for (auto &thread : threads)
		thread.join();
}
