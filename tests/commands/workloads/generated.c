// Runs one instruction that it has written itself, a jump to itself.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __aarch64__
static const unsigned char loop[] = {0x00, 0x00, 0x00, 0x14};
#else
static const unsigned char loop[] = {0xeb, 0xfe};
#endif

int main(void)
{
	char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, loop, sizeof(loop));
	__builtin___clear_cache(code, code + sizeof(loop));
	write(1, "ready\n", 6);
	((void (*)(void))code)();
}
