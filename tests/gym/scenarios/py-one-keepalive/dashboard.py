import http.client
import sys
import time

while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
        for _ in range(5):
            connection.request("GET", "/")
            connection.getresponse().read()
            time.sleep(1)
        connection.close()
    except OSError:
        time.sleep(0.1)
