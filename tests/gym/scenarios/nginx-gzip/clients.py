import ctypes, http.client, sys, time

ctypes.CDLL(None).prctl(15, b"loadgen", 0, 0, 0)
while True:
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
    for _ in range(50):
        connection.request("GET", "/catalog.json", headers={"Accept-Encoding": "gzip"})
        connection.getresponse().read()
        time.sleep(0.03)
