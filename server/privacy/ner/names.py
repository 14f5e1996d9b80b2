from ..findings import Finding


class NerMissing(Exception):
    pass


class NamesInProse:
    def __init__(self):
        raise NerMissing

    def find(self, text, covered):
        return []
