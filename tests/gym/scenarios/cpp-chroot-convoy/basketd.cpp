#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

struct Basket {
	std::mutex items;
	long sum = 0;

	__attribute__((noinline)) long total(int number)
	{
		std::lock_guard<std::mutex> held(items);
		std::this_thread::sleep_for(std::chrono::milliseconds(20));
		return sum += number;
	}
};

static Basket basket;

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 6; i++)
		threads.emplace_back([i] {
			for (int number = i;; number++) {
				basket.total(number);
				std::this_thread::sleep_for(std::chrono::milliseconds(5));
			}
		});
	for (auto &thread : threads)
		thread.join();
}
