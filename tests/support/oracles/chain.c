#include <alloca.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLED __attribute__((noinline, noipa))

static volatile unsigned long sink;

CALLED void leaf(void) {
  for (unsigned long i = 0; i < 20000; i++)
    sink += (i * i) ^ (sink >> 3);
}
CALLED void level3(void) { leaf(); sink++; }
CALLED void level2(void) { level3(); sink++; }
CALLED void level1(void) { level2(); sink++; }
CALLED void deep(int left) { if (left) deep(left - 1); else leaf(); sink++; }
CALLED void large(void) {
  char *room = alloca(100000);
  memset(room, 1, 100000);
  level1();
  sink += room[5];
}

/* chain CPU_SECONDS chain|deep|large */
int main(int count, char **arguments) {
  struct timespec begun, now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
  double wanted = count > 1 ? atof(arguments[1]) : 1, spent = 0;
  while (spent < wanted) {
    switch (count > 2 ? arguments[2][0] : 'c') {
    case 'd': deep(300); break;
    case 'l': large(); break;
    default: level1();
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    spent = (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
  }
  return 0;
}
