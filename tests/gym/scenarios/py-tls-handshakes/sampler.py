import http.client
import ssl
import sys


def push_sample(number):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), context=context)
    connection.request("GET", f"/samples?load={number}")
    connection.getresponse().read()
    connection.close()


number = 0
while True:
    push_sample(number)
    number += 1
