// Passes its static probes once for each line of its input, and says after each whether anybody
// watches `guarded`. The notes are those of <sys/sdt.h>, written out so that each way to say where
// an argument is occurs, and is the same whatever the compiler does.
#include <stdio.h>

#define NOTE(name, semaphore, arguments)                              \
	"990: nop\n"                                                  \
	".pushsection .note.stapsdt, \"\", \"note\"\n"                \
	".balign 4\n"                                                 \
	".4byte 992f - 991f, 994f - 993f, 3\n"                        \
	"991: .asciz \"stapsdt\"\n"                                   \
	"992: .balign 4\n"                                            \
	"993: .8byte 990b, _.stapsdt.base, " semaphore "\n"           \
	".asciz \"purebpf\"\n"                                        \
	".asciz \"" name "\"\n"                                       \
	".asciz \"" arguments "\"\n"                                  \
	"994: .balign 4\n"                                            \
	".popsection\n"

asm(".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"
    "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n");

volatile unsigned short guarded_semaphore __attribute__((section(".probes")));
static unsigned int table[] = {10, 20, 30, 40, 50, 60, 70, 80};

static void pass(void)
{
	register unsigned int *from asm("r10") = table;

	asm volatile("mov $0x1122334455667788, %%r8\n"
		     "mov $-5000000000, %%r9\n"
		     "mov $0xfe, %%eax\nmov $0xfe, %%ebx\nmov $0xfffe, %%ecx\nmov $0xfffe, %%edx\n"
		     "mov $0xfffffffe, %%esi\nmov $0xfffffffe, %%edi\n"
		     NOTE("forms", "0",
			  "-1@%%al 1@%%bl -2@%%cx 2@%%dx -4@%%esi 4@%%edi 8@%%r8 -8@%%r9 "
			  "-4@$-9 8@$71 4@8(%%r10) 2@(%%r10)")
		     : : "r"(from)
		     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "memory");
	asm volatile("mov $3, %%ecx\n"
		     NOTE("indexed", "0", "4@4(%%r10,%%rcx,4) 4@(%%r10,%%rcx,8) 4@12(%%r10,%%rcx) ")
		     : : "r"(from) : "rcx", "memory");
	for (int place = 0; place < 2; place++)
		asm volatile("mov %0, %%eax\n" NOTE("guarded", "guarded_semaphore", "4@%%eax")
			     : : "r"(place) : "rax", "memory");
	asm volatile(NOTE("guarded", "guarded_semaphore", "4@$2") : : : "memory");
	asm volatile(NOTE("silent", "0", "") : : : "memory");
	asm volatile(NOTE("symbolic", "0", "8@table(%%rip) 4@table+8(%%rip) 4@12+table(%%rip)") : : : "memory");
	asm volatile(NOTE("vector", "0", "4@$5 8@%%xmm0 -8f@%%xmm1 4@$6") : : : "memory");
}

int main(void)
{
	for (int c = 0; (c = getchar()) != EOF;)
		if (c == '\n') {
			pass();
			printf("%d\n", guarded_semaphore);
			fflush(stdout);
		}
	return 0;
}
