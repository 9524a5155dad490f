#include <atomic>
#include <thread>
#include <time.h>
#include <vector>

struct SmallLock {
	std::atomic<char> word{0};

	__attribute__((noinline)) void lock()
	{
		for (unsigned tries = 0; word.exchange(1, std::memory_order_acquire); tries++) {
			if (tries < 50)
				continue;
			timespec pause{0, 500000};
			nanosleep(&pause, nullptr);
		}
	}
	void unlock() { word.store(0, std::memory_order_release); }
};

static SmallLock book;
static long levels[64];

__attribute__((noinline)) void update_book(int number)
{
	book.lock();
	levels[number % 64]++;
	timespec match{0, 25000000};
	nanosleep(&match, nullptr);
	book.unlock();
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 6; i++)
		threads.emplace_back([i] {
			for (int number = i;; number++) {
				update_book(number);
				timespec pause{0, 3000000};
				nanosleep(&pause, nullptr);
			}
		});
	for (auto &thread : threads)
		thread.join();
}
