#include <unistd.h>

int main(void)
{
	for (int n = 0; n < 40; n++)
		if (!fork())
			_exit(0);
	for (;;)
		sleep(1);
}
