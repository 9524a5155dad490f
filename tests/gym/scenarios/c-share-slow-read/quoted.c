#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener;
static const char *path;

__attribute__((noinline)) static int load_price_list(char *buffer, size_t size) {
  int file = open(path, O_RDONLY), got = read(file, buffer, size);
  close(file);
  return got;
}

__attribute__((noinline)) static void serve_quote(int fd) {
  char text[4096], page[4096], out[256];
  if (read(fd, text, sizeof(text)) > 0) {
    int sum = 0, got = load_price_list(page, sizeof(page));
    for (int i = 0; i < got; i++) sum += page[i];
    int n = snprintf(text, sizeof(text), "%d\n", sum);
    n = snprintf(out, sizeof(out), "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, text);
    if (write(fd, out, n) < 0) perror("write");
  }
  close(fd);
}

static void *work(void *arg) {
  for (;;) serve_quote(accept(listener, 0, 0));
}

int main(int argc, char **argv) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
  int one = 1;
  path = argv[2];
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(listener, (void *)&a, sizeof(a)) || listen(listener, 64)) return perror("bind"), 1;
  pthread_t t;
  for (int i = 0; i < 8; i++) pthread_create(&t, 0, work, 0);
  pause();
}
