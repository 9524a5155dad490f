#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *last;

__attribute__((noinline)) void parse_message(int size)
{
	last = malloc(size);
	memset(last, 'x', size);
}

int main(void)
{
	for (int n = 0;; n++) {
		parse_message(3000 + n % 500);
		usleep(1500);
	}
}
