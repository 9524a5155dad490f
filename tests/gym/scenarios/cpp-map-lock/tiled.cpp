#include <sys/mman.h>
#include <cstring>
#include <thread>
#include <vector>

static const size_t SIZE = 4 << 20;

__attribute__((noinline)) char *map_buffer()
{
	return static_cast<char *>(mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

__attribute__((noinline)) long render_tile(int number)
{
	char *buffer = map_buffer();
	long sum = 0;

	for (size_t at = 0; at < SIZE; at += 4096)
		sum += buffer[at] = number;
	munmap(buffer, SIZE);
	return sum;
}

int main()
{
	std::vector<std::thread> threads;
	volatile long total = 0;

	for (int i = 0; i < 12; i++)
		threads.emplace_back([&total] {
			for (int number = 0;; number++)
				total = total + render_tile(number);
		});
	for (auto &thread : threads)
		thread.join();
}
