import sys
import time
from xmlrpc.server import SimpleXMLRPCServer


def reserve_seat(row):
    time.sleep(0.12)
    return row + 1


server = SimpleXMLRPCServer(("127.0.0.1", int(sys.argv[1])), logRequests=False)
server.register_function(reserve_seat)
server.serve_forever()
