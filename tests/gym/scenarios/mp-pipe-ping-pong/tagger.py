import multiprocessing


def tag_words(pipe):
    while True:
        pipe.send(pipe.recv().upper())


def tag_text(pipe, words):
    tagged = []
    for word in words:
        pipe.send(word)
        tagged.append(pipe.recv())
    return tagged


if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=tag_words, args=(there,), daemon=True).start()
    words = [f"word{n}" for n in range(2000)]
    while True:
        tag_text(here, words)
