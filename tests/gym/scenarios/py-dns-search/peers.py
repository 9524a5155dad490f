import socket
import threading
import time


def find_peer(name):
    try:
        return socket.getaddrinfo(name, 80)
    except OSError:
        return []


def sync():
    while True:
        find_peer("cache.internal")
        time.sleep(0.02)


for _ in range(4):
    threading.Thread(target=sync).start()
