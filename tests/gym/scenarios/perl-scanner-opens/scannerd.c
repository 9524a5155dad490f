#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <unistd.h>

static void scan_file(int fd) {
  char buffer[65536];
  while (read(fd, buffer, sizeof(buffer)) > 0)
    ;
  usleep(100 * 1000);
}

int main(int argc, char **argv) {
  static char buffer[4096];
  int group = fanotify_init(FAN_CLASS_CONTENT, O_RDONLY | O_LARGEFILE);
  if (fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_PERM, AT_FDCWD, argv[1]))
    return perror("fanotify_mark"), 1;
  for (;;) {
    ssize_t got = read(group, buffer, sizeof(buffer));
    struct fanotify_event_metadata *event = (void *)buffer;
    for (; FAN_EVENT_OK(event, got); event = FAN_EVENT_NEXT(event, got)) {
      scan_file(event->fd);
      struct fanotify_response answer = {.fd = event->fd, .response = FAN_ALLOW};
      if (write(group, &answer, sizeof(answer)) < 0) perror("write");
      close(event->fd);
    }
  }
}
