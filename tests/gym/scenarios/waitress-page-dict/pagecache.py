class PageCache:
    """Of pages by their address, which has the session in it: each is new."""

    def __init__(self):
        self._pages = {}

    def lookup(self, path):
        page = self._pages.get(path)
        if page is None:
            page = self._pages[path] = self.build_page(path)
        return "".join(page[:20])

    def build_page(self, path):
        return [f"<li id={n}>{path} {n * 7}</li>" for n in range(2500)]
