#include <cstdlib>
#include <cstring>
#include <unistd.h>

struct field {
	char *text;
	field *next;
};

__attribute__((noinline)) int split_fields(int n)
{
	field *first = nullptr;
	for (int i = 0; i < n; i++) {
		auto *one = static_cast<field *>(malloc(sizeof(field)));
		one->text = static_cast<char *>(malloc(24 + i % 60));
		one->text[0] = static_cast<char>(i);
		one->next = first;
		first = one;
	}
	int sum = 0;
	while (first) {
		field *next = first->next;
		sum += first->text[0];
		free(first->text);
		free(first);
		first = next;
	}
	return sum;
}

int main()
{
	for (;;) {
		if (split_fields(100000) == 42)
			return 1;
		usleep(500);
	}
}
