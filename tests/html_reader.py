"""HTML as a strict reader sees it."""

import html.parser


class Reader(html.parser.HTMLParser):
    """Checks that elements are closed in turn, and keeps what there is."""

    VOID = ("meta", "img", "path", "use", "rect", "image", "stop")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())
