#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <vector>

static const char *data;
static size_t size;

__attribute__((noinline)) long find_record(size_t key)
{
	size_t at = key * 2654435761u % (size - 64);

	return data[at] + data[at + 32];
}

int main(int argc, char **argv)
{
	struct stat about;
	int file = open(argc > 1 ? argv[1] : "", O_RDONLY);
	std::vector<std::thread> threads;

	if (file < 0 || fstat(file, &about))
		return 1;
	size = about.st_size;
	data = static_cast<const char *>(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
	madvise(const_cast<char *>(data), size, MADV_RANDOM);
	for (int i = 0; i < 4; i++)
		threads.emplace_back([i] {
			volatile long sum = 0;
			for (size_t key = i;; key += 4)
				sum = sum + find_record(key);
		});
	for (auto &thread : threads)
		thread.join();
}
