#include <malloc.h>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

__attribute__((noinline)) void add_item(std::vector<char *> &items, int number)
{
	size_t size = 1100 + number % 7000;
	char *item = static_cast<char *>(malloc(size));

	memset(item, number, 64);
	items.push_back(item);
}

__attribute__((noinline)) void build_page(int number)
{
	std::vector<char *> items;

	for (int i = 0; i < 400; i++)
		add_item(items, number * 31 + i * 97);
	for (char *item : items)
		free(item);
}

int main()
{
	mallopt(M_ARENA_MAX, 1);
	std::vector<std::thread> threads;

	for (int i = 0; i < 8; i++)
		threads.emplace_back([] {
			for (int number = 0;; number++)
				build_page(number);
		});
	for (auto &thread : threads)
		thread.join();
}
