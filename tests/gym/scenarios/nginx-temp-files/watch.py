import http.client
import sys
import threading
import time


def watch():
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        connection.request("GET", "/film")
        answer = connection.getresponse()
        for _ in range(10):
            answer.read(50_000)
            time.sleep(0.05)
        connection.close()


for _ in range(6):
    threading.Thread(target=watch).start()
