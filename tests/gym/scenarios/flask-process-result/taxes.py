import http.client


def tax_of(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/tax")
    text = connection.getresponse().read().decode()
    connection.close()
    return text
