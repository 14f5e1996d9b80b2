"""`ast` as guest code: trees of Python's grammar (Language Reference 10), in classes of the program's own.

The host parses a text, and writes one for a tree (`_sealab_ast`); here are the nodes; what walks over them is
CPython's own (`library_modules`). A class of nodes is made when it is first asked for: most programs want
`literal_eval` alone.
"""

import re
import sys
from inspect import cleandoc

import _sealab_ast

PyCF_ALLOW_TOP_LEVEL_AWAIT = 0x2000
PyCF_ONLY_AST = 0x400
PyCF_TYPE_COMMENTS = 0x1000
_kinds = _sealab_ast.kinds()
_MISSING = object()
_const_node_type_names = {}
"""Up to Python 3.13, `NodeVisitor` looks here for the names that constants had in older grammars."""


class AST:
    """A node: its fields by position or by name, its place in the source by name."""

    _fields = ()
    _attributes = ()
    _lists = ()
    __match_args__ = ()

    def __init__(self, *args, **kwargs):
        fields = self._fields
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} constructor takes at most {len(fields)} positional arguments")
        for name, value in zip(fields, args):
            if name in kwargs:
                raise TypeError(f"{type(self).__name__} got multiple values for argument {name!r}")
            setattr(self, name, value)
        for name, value in kwargs.items():
            setattr(self, name, value)
        for name in self._lists:
            if not hasattr(self, name):
                setattr(self, name, [])

    def __repr__(self):
        return f"<ast.{type(self).__name__} object>"


_classes = {"AST": AST}


def __getattr__(name):
    if name in _kinds:
        return _class(name)
    raise AttributeError(f"module 'ast' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_kinds})


def _class(name):
    made = _classes.get(name)
    if made is None:
        base, fields, attributes, doc = _kinds[name]
        body = {name: None for name in (*fields, *attributes) if f"? {name}" in doc or name.startswith("end_")}
        lists = [name for name in fields if f"* {name}" in doc] if sys.version_info >= (3, 13) else ()
        body |= {"_fields": fields, "_attributes": attributes, "_lists": lists, "__match_args__": fields, "__doc__": doc}
        made = _classes[name] = globals()[name] = type(name, (_class(base),), body)
        made.__module__ = "ast"
    return made


def _kind(cls):
    for each in cls.__mro__:
        if _classes.get(each.__name__) is each:
            return each.__name__
    raise TypeError(f"{cls.__name__} is no class of nodes")


def _data(value):
    if isinstance(value, AST):
        names = (*value._fields, *value._attributes)
        held = {name: getattr(value, name, _MISSING) for name in names}
        return _kind(type(value)), {name: _data(each) for name, each in held.items() if each is not _MISSING}
    return [_data(each) for each in value] if isinstance(value, list) else value


def _node(data):
    if isinstance(data, tuple):
        name, held = data
        return _class(name)(**{field: _node(value) for field, value in held.items()})
    return [_node(each) for each in data] if isinstance(data, list) else data


def parse(source, filename="<unknown>", mode="exec", *, type_comments=False, feature_version=None, optimize=-1):
    """Return the tree of a source. Raises SyntaxError."""
    if isinstance(source, AST):
        return source
    if isinstance(feature_version, tuple):
        major, feature_version = feature_version
        if major != 3:
            raise ValueError(f"Unsupported major version: {major}")
    if isinstance(source, (bytearray, memoryview)):
        source = bytes(source)
    version = -1 if feature_version is None else feature_version
    return _node(_sealab_ast.parse(source, str(filename), mode, bool(type_comments), version))


def literal_eval(node_or_string):
    """Return the value of a literal, given its text or its tree. Raises ValueError or SyntaxError for anything else."""
    return _sealab_ast.literal(node_or_string if isinstance(node_or_string, str) else _data(node_or_string))


def unparse(ast_obj):
    return _sealab_ast.unparse(_data(ast_obj))


def dump(node, annotate_fields=True, include_attributes=False, *, indent=None, show_empty=False):
    if not isinstance(node, AST):
        raise TypeError(f"expected AST, got {type(node).__name__!r}")
    return _sealab_ast.dump(_data(node), bool(annotate_fields), bool(include_attributes), indent)


def increment_lineno(node, n=1):
    for each in walk(node):
        if "lineno" in each._attributes:
            each.lineno = getattr(each, "lineno", 0) + n
        if getattr(each, "end_lineno", None) is not None:
            each.end_lineno += n
    return node


def get_docstring(node, clean=True):
    if not isinstance(node, (_class("AsyncFunctionDef"), _class("FunctionDef"), _class("ClassDef"), _class("Module"))):
        raise TypeError(f"{type(node).__name__!r} can't have docstrings")
    first = node.body[0] if node.body else None
    if not isinstance(first, _class("Expr")) or not isinstance(first.value, _class("Constant")):
        return None
    text = first.value.value
    if not isinstance(text, str):
        return None
    return cleandoc(text) if clean else text


def get_source_segment(source, node, *, padded=False):
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    start, end = getattr(node, "col_offset", None), getattr(node, "end_col_offset", None)
    if None in (first, last, start, end):
        return None
    lines = [line.encode() for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", source)[first - 1 : last]]
    lines[-1] = lines[-1][:end]
    before, lines[0] = lines[0][:start], lines[0][start:]
    if padded and first != last:
        lines[0] = "".join(each if each in "\f\t" else " " for each in before.decode()).encode() + lines[0]
    return b"".join(lines).decode()
