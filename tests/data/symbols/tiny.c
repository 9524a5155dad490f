/* Built by build.sh; the ELF files next to this are its output, so that tests run without gcc. */
extern int imported(int);
__attribute__((noinline)) static int hidden(int x) { return x * 3; }
__attribute__((noinline)) int exported(int x) { return hidden(x) + 1; }
int alias(int) __attribute__((alias("exported")));
int __weak_alias(int) __attribute__((weak, alias("exported")));
#ifdef LIBRARY
int calls(int x) { return imported(x) + exported(x); }
#endif
__attribute__((noreturn, used)) void _start(void) {
  for (;;) exported(1);
}
__asm__(".text\n.globl label\nlabel: nop\nnop\nret\n.balign 16\n");
