#include <chrono>
#include <semaphore>
#include <thread>
#include <vector>

static std::counting_semaphore<3> permits(3);

__attribute__((noinline)) long render_page(long number)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(60));
	return number * 31;
}

__attribute__((noinline)) long with_permit(long number)
{
	permits.acquire();
	long page = render_page(number);
	permits.release();
	return page;
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 16; i++)
		threads.emplace_back([i] {
			volatile long sum = 0;
			for (long number = i;; number++) {
				sum = sum + with_permit(number);
				std::this_thread::sleep_for(std::chrono::milliseconds(5));
			}
		});
	for (auto &thread : threads)
		thread.join();
}
