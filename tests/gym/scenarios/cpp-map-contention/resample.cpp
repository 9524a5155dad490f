#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <vector>

struct Scratch {
	static constexpr size_t size = 8 << 20;
	char *data;

	Scratch() : data(static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
	~Scratch() { munmap(data, size); }
};

__attribute__((noinline)) static long resampleTrack(int track)
{
	Scratch scratch;
	for (size_t at = 0; at < Scratch::size; at += 4096)
		scratch.data[at] = static_cast<char>(track + at);
	long sum = 0;
	for (size_t at = 0; at < Scratch::size; at += 65536)
		sum += scratch.data[at];
	return sum;
}

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 6; i++)
		threads.emplace_back([i] {
			volatile long total = 0;
			for (int track = i;; track++)
				total = total + resampleTrack(track);
		});
	for (auto &thread : threads)
		thread.join();
}
