/* Three phases; each spends its time at one member of a box. */
#include <stdio.h>
#include <time.h>

struct box {
  long first;
  char gap[120];
  long sum;
  int flags;
  double cells[32];
  long *behind;
};

static struct box boxes[8];

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
  return at.tv_sec + at.tv_nsec * 1e-9;
}

__attribute__((noinline)) void count(struct box *box, long times) {
  while (times--) {
    box->sum += times;
    __asm__ volatile("" ::: "memory");
  }
}

__attribute__((noinline)) double add(struct box *box, long times) {
  double sum = 0;
  while (times--)
    for (int i = 0; i < 32; i++) {
      sum += box->cells[i];
      __asm__ volatile("" : "+x"(sum));
    }
  return sum;
}

int main(void) {
  double start = now();
  count(boxes, 200000000);
  double middle = now();
  double sum = add(boxes, 8000000);
  double end = now();
  printf("%.4f %.4f\n", (middle - start) / (end - start),
         (end - middle) / (end - start));
  return sum > 1;
}
