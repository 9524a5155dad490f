import threading

seen = 0


def handle_message():
    global seen
    seen += 1


def on_batch():
    for _ in range(20):
        threading.Thread(target=handle_message).start()


while True:
    on_batch()
