"""Tools as servers publish them: usual ones, and ones that are odd in every way that was met."""

from __future__ import annotations

from typing import Any

TEXT, WHOLE, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {}), **more}


def many(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def tool(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": schema, **more}


INVOICE = of({"number": TEXT, "total": {"type": "number"}, "note": TEXT}, "number", "total")
USUAL: list[dict[str, Any]] = [
    tool(
        "list_invoices",
        of(
            {
                "limit": {"type": "integer", "default": 20, "minimum": 1},
                "customer_id": {"type": "string", "description": "Who pays, e.g. 'C-1042'"},
                "status": {"enum": ["open", "paid", "void"], "default": "open"},
                "since": {"type": ["string", "null"], "format": "date", "default": None},
                "tags": many(TEXT),
            },
            "customer_id",
        ),
        title="List invoices",
        description="List the invoices of a customer. Newest come first, e.g. those of this month.",
        outputSchema=of({"invoices": many(INVOICE), "next": {"type": ["string", "null"]}}, "invoices"),
        annotations={"readOnlyHint": True},
    ),
    tool(
        "send-reminder",
        of({"invoice-number": TEXT, "from": {"type": "string", "format": "email"}}, "invoice-number", "from"),
        description="Send a reminder",
        annotations={"readOnlyHint": False, "destructiveHint": False},
    ),
]

NODE = of({"name": TEXT, "children": many({"$ref": "#/$defs/Node"})}, "name")
BOMB = {f"n{n}": of({each: {"$ref": f"#/$defs/n{n - 1}"} for each in "abcdefgh"}) for n in range(1, 21)}
VALUES = {
    "mixed": {"enum": ["a", 1, True, None, 2.5]},
    "const": {"const": "x\n\"'"},
    "wrong_default": {"enum": ["a", "b"], "default": "c"},
    "int_default": {"type": "integer", "default": "ten"},
    "list_default": {"type": "array", "items": WHOLE, "default": [1, 2]},
    "pair": {"type": "array", "prefixItems": [TEXT, WHOLE]},
    "nullable": {"type": "string", "nullable": True, "default": None},
    "no": False,
    "map": {"type": "object", "patternProperties": {"^x-": TRUTH}},
    "evil": {"type": "string", "pattern": "(a+)+$", "minLength": 3},
    "answer": TEXT,
    "call_tool": TEXT,
}
DOCSTRING = 'Ends a docstring """\n__import__("os")\n""" \\'
ALL_OF = [
    {"properties": {"a": {"type": "integer", "exclusiveMinimum": 4, "multipleOf": 5}}, "required": ["a"]},
    {"properties": {"b": {"type": "string", "pattern": "^[A-Z]{3}-\\d+$"}}, "required": ["b"]},
]
ODD: list[dict[str, Any]] = [
    {"name": "no.schema", "description": None},
    tool("boolean", True),
    tool("never", False),
    tool("empty", {}),
    tool("list", of({"list": {"type": "array"}, "type": TEXT})),
    tool("free", {"type": "object", "additionalProperties": WHOLE}),
    tool("not-an-object", many(TEXT)),
    tool("getUser", of({"a": TEXT})),
    tool("getuser", of({"a": TEXT})),
    tool("get-user", of({"a": TEXT})),
    tool("日本語", of({"都市": TEXT}), description="名前。説明です。"),
    tool("class", of({"class": TEXT, "2fa": TRUTH})),
    *(tool(name, {"type": "object"}) for name in ("con", "../../etc/passwd", "__init__", "_call")),
    tool("tree", of({"root": {"$ref": "#/$defs/Node"}}, "root", **{"$defs": {"Node": NODE}}), description=DOCSTRING),
    tool("itself", of({"again": {"$ref": "#"}})),
    tool("lost", of({"x": {"$ref": "https://example.com/schema.json"}, "y": {"$ref": "#/nowhere/0"}})),
    tool("either", {"anyOf": [of({"id": WHOLE}, "id"), of({"name": TEXT, "id": WHOLE}, "name", "id")]}),
    tool("all_of", {"allOf": ALL_OF}),
    tool(
        "values",
        of(VALUES, "mixed", "const", "pair", "evil"),
        description="A" * 3000,
        outputSchema=many(of({"a-b": WHOLE, "str": TEXT})),
    ),
    tool("bomb", of({"x": {"$ref": "#/$defs/n20"}}, **{"$defs": {"n0": TEXT} | BOMB})),
    tool("large", of({f"argument_{n}": {"type": "string", "description": "x" * 40} for n in range(1500)})),
]
