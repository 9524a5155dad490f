#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex ledger;
static long balance[64];
static std::mutex idle;
static std::condition_variable more;

static __attribute__((noinline)) void post_entry(int number)
{
	std::lock_guard<std::mutex> held(ledger);
	balance[number % 64] += number;
	std::this_thread::sleep_for(std::chrono::milliseconds(15));
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 7; i++)
		threads.emplace_back([i] {
			for (int number = i;; number++) {
				post_entry(number);
				std::this_thread::sleep_for(std::chrono::milliseconds(4));
			}
		});
	for (int i = 0; i < 3; i++)
		threads.emplace_back([] {
			std::unique_lock<std::mutex> held(idle);
			for (;;)
				more.wait(held);
		});
	for (auto &thread : threads)
		thread.join();
}
