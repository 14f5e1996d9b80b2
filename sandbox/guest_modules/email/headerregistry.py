"""`email.headerregistry` of the library, whose registry makes the class of a header by a class statement."""

from email._headerregistry import *
from email._headerregistry import HeaderRegistry, _default_header_map as _default_header_map


def _class_of(registry, name):
    cls = registry.registry.get(name.lower(), registry.default_class)

    class Header(cls, registry.base_class):
        pass

    Header.__name__ = Header.__qualname__ = "_" + cls.__name__
    return Header


HeaderRegistry.__getitem__ = _class_of
