import selectors
import socket

left, right = socket.socketpair()
selector = selectors.DefaultSelector()
selector.register(left, selectors.EVENT_READ | selectors.EVENT_WRITE)


def pump_once():
    for key, events in selector.select(1.0):
        if events & selectors.EVENT_READ:
            key.fileobj.recv(1000)


while True:
    pump_once()
