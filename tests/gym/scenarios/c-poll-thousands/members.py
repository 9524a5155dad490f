"""Members of the chat, who say nothing."""

import resource
import socket
import sys
import time

resource.setrlimit(resource.RLIMIT_NOFILE, (9000, 9000))
members = []
for _ in range(7000):
    members.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
while True:
    time.sleep(60)
