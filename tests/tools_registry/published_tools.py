"""Tools as servers publish them: usual ones, and ones that are odd in every way that was met."""

from __future__ import annotations

from typing import Any

USUAL: list[dict[str, Any]] = [
    {
        "name": "list_invoices",
        "title": "List invoices",
        "description": "List the invoices of a customer. Newest come first, e.g. those of this month.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "default": 20, "minimum": 1},
                "customer_id": {"type": "string", "description": "Who pays, e.g. 'C-1042'"},
                "status": {"enum": ["open", "paid", "void"], "default": "open"},
                "since": {"type": ["string", "null"], "format": "date", "default": None},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["customer_id"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "invoices": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "number": {"type": "string"},
                            "total": {"type": "number"},
                            "note": {"type": "string"},
                        },
                        "required": ["number", "total"],
                    },
                },
                "next": {"type": ["string", "null"]},
            },
            "required": ["invoices"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "send-reminder",
        "description": "Send a reminder",
        "inputSchema": {
            "type": "object",
            "properties": {"invoice-number": {"type": "string"}, "from": {"type": "string", "format": "email"}},
            "required": ["invoice-number", "from"],
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False},
    },
]

NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    "required": ["name"],
}

ODD: list[dict[str, Any]] = [
    {"name": "no.schema", "description": None},
    {"name": "boolean", "inputSchema": True},
    {"name": "never", "inputSchema": False},
    {"name": "empty", "inputSchema": {}},
    {
        "name": "list",
        "inputSchema": {"type": "object", "properties": {"list": {"type": "array"}, "type": {"type": "string"}}},
    },
    {"name": "free", "inputSchema": {"type": "object", "additionalProperties": {"type": "integer"}}},
    {"name": "not-an-object", "inputSchema": {"type": "array", "items": {"type": "string"}}},
    {"name": "getUser", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"name": "getuser", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {"name": "get-user", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {
        "name": "日本語",
        "description": "名前。説明です。",
        "inputSchema": {"type": "object", "properties": {"都市": {"type": "string"}}},
    },
    {
        "name": "class",
        "inputSchema": {"type": "object", "properties": {"class": {"type": "string"}, "2fa": {"type": "boolean"}}},
    },
    {"name": "con", "inputSchema": {"type": "object"}},
    {"name": "../../etc/passwd", "inputSchema": {"type": "object"}},
    {"name": "__init__", "inputSchema": {"type": "object"}},
    {"name": "_call", "inputSchema": {"type": "object"}},
    {
        "name": "tree",
        "description": 'Ends a docstring """\n__import__("os")\n""" \\',
        "inputSchema": {
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/Node"}},
            "required": ["root"],
            "$defs": {"Node": NODE},
        },
    },
    {"name": "itself", "inputSchema": {"type": "object", "properties": {"again": {"$ref": "#"}}}},
    {
        "name": "lost",
        "inputSchema": {
            "type": "object",
            "properties": {"x": {"$ref": "https://example.com/schema.json"}, "y": {"$ref": "#/nowhere/0"}},
        },
    },
    {
        "name": "either",
        "inputSchema": {
            "anyOf": [
                {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
                {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
                    "required": ["name", "id"],
                },
            ]
        },
    },
    {
        "name": "all_of",
        "inputSchema": {
            "allOf": [
                {"properties": {"a": {"type": "integer", "exclusiveMinimum": 4, "multipleOf": 5}}, "required": ["a"]},
                {"properties": {"b": {"type": "string", "pattern": "^[A-Z]{3}-\\d+$"}}, "required": ["b"]},
            ]
        },
    },
    {
        "name": "values",
        "description": "A" * 3000,
        "inputSchema": {
            "type": "object",
            "properties": {
                "mixed": {"enum": ["a", 1, True, None, 2.5]},
                "const": {"const": "x\n\"'"},
                "wrong_default": {"enum": ["a", "b"], "default": "c"},
                "int_default": {"type": "integer", "default": "ten"},
                "list_default": {"type": "array", "items": {"type": "integer"}, "default": [1, 2]},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
                "nullable": {"type": "string", "nullable": True, "default": None},
                "no": False,
                "map": {"type": "object", "patternProperties": {"^x-": {"type": "boolean"}}},
                "evil": {"type": "string", "pattern": "(a+)+$", "minLength": 3},
                "answer": {"type": "string"},
                "call_tool": {"type": "string"},
            },
            "required": ["mixed", "const", "pair", "evil"],
        },
        "outputSchema": {
            "type": "array",
            "items": {"type": "object", "properties": {"a-b": {"type": "integer"}, "str": {"type": "string"}}},
        },
    },
    {
        "name": "bomb",
        "inputSchema": {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/n20"}},
            "$defs": {"n0": {"type": "string"}}
            | {
                f"n{level}": {
                    "type": "object",
                    "properties": {each: {"$ref": f"#/$defs/n{level - 1}"} for each in "abcdefgh"},
                }
                for level in range(1, 21)
            },
        },
    },
    {
        "name": "large",
        "inputSchema": {
            "type": "object",
            "properties": {f"argument_{n}": {"type": "string", "description": "x" * 40} for n in range(1500)},
        },
    },
]
