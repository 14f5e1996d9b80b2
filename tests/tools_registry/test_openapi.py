from __future__ import annotations

import base64
import copy
import json
import re
from contextlib import asynccontextmanager

import pytest
import yaml

from sealab.tools_registry.errors import (
    AnswerRefused,
    CallRefused,
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    Quarantined,
    ToolFailed,
    ToolUnknown,
)
from sealab.tools_registry.openapi import exchange
from sealab.tools_registry.openapi.document import DOCUMENT_BYTES_MAX
from sealab.tools_registry.upstream.upstreams import Upstreams

from ..data.upstreams.shelter import DOCUMENT, PIXEL, serving
from .upstream_servers import configured


@pytest.fixture
def shelter():
    with serving(copy.deepcopy(DOCUMENT)) as service:
        yield service


@asynccontextmanager
async def attached(service, folder, *, keeps_pins=False, **entry):
    entry = {"openapi": f"{service.url}/openapi.json", **entry}
    async with Upstreams(configured(folder, {"shelter": entry}), state=folder if keeps_pins else None) as upstreams:
        yield upstreams


def describing(*operations, version="3.1.0", **more):
    """A document with operations given as (method, path, operation)."""
    paths = {}
    for method, path, operation in operations:
        paths.setdefault(path, {})[method] = {"responses": {}, **operation}
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **more}


def query(name, schema, **more):
    return {"name": name, "in": "query", "schema": schema, **more}


async def tools_of(service, folder, document):
    service.document = document
    async with attached(service, folder) as upstreams:
        return {str(tool["name"]): tool for tool in (await upstreams.list_tools("shelter")).tools}


async def called(service, folder, document, tool, arguments, **entry):
    """Call a tool of a document and return the request that was sent."""
    service.document = document
    for method in ("GET", "POST", "PUT", "PATCH"):
        service.says(f"{method} /x", {})
    async with attached(service, folder, **entry) as upstreams:
        await upstreams.call("shelter", tool, arguments)
    return service.calls[-1]


async def test_operations_are_tools_with_schemas_of_what_they_take_and_return(shelter, tmp_path):
    tools = await tools_of(shelter, tmp_path, DOCUMENT)
    assert list(tools) == ["listAnimals", "take_in", "get_animals_animal_id", "giveAway", "picture"]
    assert tools["listAnimals"]["input_schema"] == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "description": "Only of this kind"},
            "limit": {"type": "integer", "default": 10},
        },
        "additionalProperties": False,
    }
    result = tools["listAnimals"]["output_schema"]
    assert result["properties"]["result"] == {"type": "array", "items": {"$ref": "#/$defs/Animal"}}
    assert result["$defs"]["Animal"]["properties"]["age"] == {"type": ["number", "null"], "exclusiveMinimum": 0}
    assert tools["take_in"]["input_schema"]["required"] == ["name", "kind"]
    assert "id" not in tools["take_in"]["input_schema"]["properties"], "what is read only is not sent"
    assert tools["get_animals_animal_id"]["input_schema"]["required"] == ["animal_id"]


async def test_what_reads_says_so_and_what_writes_does_not(shelter, tmp_path):
    tools = await tools_of(shelter, tmp_path, DOCUMENT)
    assert {name: tool["annotations"]["readOnlyHint"] for name, tool in tools.items()} == {
        "listAnimals": True, "take_in": False, "get_animals_animal_id": True, "giveAway": False, "picture": True,
    }  # fmt: skip
    assert tools["giveAway"]["annotations"]["destructiveHint"] is True


async def test_calls_go_to_the_service_with_its_headers_and_give_json_text_and_pictures(shelter, tmp_path):
    shelter.says("GET /v1/animals/7", "Mia sleeps. ünï".encode("latin-1"), content_type="text/plain; charset=latin-1")
    async with attached(shelter, tmp_path, headers={"X-Key": "secret"}) as upstreams:
        assert (await upstreams.call("shelter", "listAnimals", {"kind": "cat & dog", "limit": 3})).value[0][
            "name"
        ] == "Mia"
        assert (await upstreams.call("shelter", "take_in", {"name": "Bo", "kind": "dog", "age": None})).value["id"] == 2
        assert (await upstreams.call("shelter", "giveAway", {"animal_id": 1})).value is None
        assert (await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 7})).value == "Mia sleeps. ünï"
        picture = (await upstreams.call("shelter", "picture", {"animal_id": 1})).value
        info = await upstreams.server_info("shelter")
    assert (picture["type"], picture["mime_type"], base64.b64decode(picture["data"])) == ("image", "image/png", PIXEL)
    assert (info.name, info.version, info.protocol) == ("Shelter", "4.2", "OpenAPI")
    assert [f"{each.method} {each.target}" for each in shelter.calls] == [
        "GET /v1/animals?kind=cat%20%26%20dog&limit=3", "POST /v1/animals", "DELETE /v1/animals/1",
        "GET /v1/animals/7", "GET /v1/animals/1/picture",
    ]  # fmt: skip
    assert shelter.calls[1].json == {"name": "Bo", "kind": "dog", "age": None}
    assert {each.headers["x-key"] for each in shelter.requests} == {"secret"}


async def test_a_status_that_is_no_success_is_a_failure_in_the_words_of_the_service(shelter, tmp_path):
    shelter.says("GET /v1/animals/2", {"error": {"code": 3, "message": "Mia has moved out"}}, 410)
    shelter.says("GET /v1/animals/3", b"<h1>no</h1>", 403, content_type="text/html")
    shelter.says("GET /v1/animals/4", {"message": "who are you?"}, 401)
    shelter.says("DELETE /v1/animals/5", {"title": "Oops"}, 502)
    shelter.says("GET /v1/animals/6", {"message": "Not valid.", "errors": [{"field": "age"}]}, 422)
    async with attached(shelter, tmp_path) as upstreams:
        for number, message in {
            1000: "HTTP 404 Not Found: there is nothing at /v1/animals/1000.",
            2: "HTTP 410 Gone: Mia has moved out.",
            3: "HTTP 403 Forbidden: <h1>no</h1>.",
            6: 'HTTP 422 Unprocessable Entity: Not valid: [{"field": "age"}]',
            4: 'HTTP 401 Unauthorized: who are you? Have the user give its key in "headers" of mcp.json.',
        }.items():
            with pytest.raises(ToolFailed) as failed:
                await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": number})
            assert str(failed.value) == message
        with pytest.raises(ToolFailed, match=r"502 Bad Gateway: Oops\. It may have done its work"):
            await upstreams.call("shelter", "giveAway", {"animal_id": 5})


@pytest.mark.parametrize(
    ("parameter", "value", "sent"),
    [
        (query("q", {}), "ü/ &", "?q=%C3%BC%2F%20%26"),
        (query("q", {}), True, "?q=true"),
        (query("q", {}), 1.5, "?q=1.5"),
        (query("q", {}), None, ""),
        (query("q", {}), ["a", "b,c"], "?q=a&q=b%2Cc"),
        (query("q", {}, explode=False), ["a", "b"], "?q=a,b"),
        (query("q", {}, style="spaceDelimited", explode=False), ["a", "b"], "?q=a%20b"),
        (query("q", {}, style="pipeDelimited", explode=False), ["a", "b"], "?q=a%7Cb"),
        (query("q", {}), {"r": 1, "g": 2}, "?r=1&g=2"),
        (query("q", {}, explode=False), {"r": 1, "g": 2}, "?q=r,1,g,2"),
        (query("q", {}, style="deepObject"), {"r": 1, "in": {"b": [2, 3]}}, "?q[r]=1&q[in][b]=2&q[in][b]=3"),
        (query("q", {}, allowReserved=True), "a/b?c=d&e", "?q=a/b?c%3Dd%26e"),
        ({"name": "q", "in": "query", "content": {"application/json": {"schema": {}}}}, {"a": [1]},
         "?q=%7B%22a%22%3A%20%5B1%5D%7D"),
    ],
)  # fmt: skip
async def test_a_query_parameter_is_written_in_its_style(shelter, tmp_path, parameter, value, sent):
    document = describing(("get", "/x", {"operationId": "op", "parameters": [parameter]}))
    assert (await called(shelter, tmp_path, document, "op", {"q": value})).target == f"/x{sent}"


@pytest.mark.parametrize(
    ("style", "value", "sent"),
    [
        ("simple", "a/b c", "a%2Fb%20c"),
        ("simple", [1, 2], "1,2"),
        ("simple*", {"r": 1, "g": 2}, "r=1,g=2"),
        ("label", "a", ".a"),
        ("label*", [1, 2], ".1.2"),
        ("label", {"r": 1}, ".r,1"),
        ("matrix", "a", ";p=a"),
        ("matrix*", [1, 2], ";p=1;p=2"),
        ("matrix", [1, 2], ";p=1,2"),
        ("matrix*", {"r": 1, "g": 2}, ";r=1;g=2"),
    ],
)
async def test_a_path_parameter_is_written_in_its_style(shelter, tmp_path, style, value, sent):
    parameter = {"name": "p", "in": "path", "required": True, "schema": {}}
    parameter |= {"style": style.rstrip("*"), "explode": style.endswith("*")}
    shelter.document = describing(("get", "/of/{p}/end", {"operationId": "op", "parameters": [parameter]}))
    async with attached(shelter, tmp_path) as upstreams:
        with pytest.raises(ToolFailed):
            await upstreams.call("shelter", "op", {"p": value})
    assert shelter.calls[-1].target == f"/of/{sent}/end"


async def test_headers_and_cookies_are_parameters_too(shelter, tmp_path):
    parameters = [
        {"name": "X-Colour", "in": "header", "schema": {"type": "array"}},
        {"name": "seen", "in": "cookie", "schema": {}},
        {"name": "Host", "in": "header", "schema": {}},
        {"name": "X-Key", "in": "header", "schema": {}},
    ]
    document = describing(("get", "/x", {"operationId": "op", "parameters": parameters}))
    headers = {"x-key": "of the operator", "Accept": "text/csv"}
    sent = await called(shelter, tmp_path, document, "op", {"X_Colour": ["red", 2], "seen": "a;b"}, headers=headers)
    assert (sent.headers["x-colour"], sent.headers["cookie"]) == ("red,2", "seen=a%3Bb")
    assert (sent.headers["x-key"], sent.headers["accept"]) == ("of the operator", "text/csv")
    with pytest.raises(CallRefused, match="ASCII text on one line"):
        await called(shelter, tmp_path, document, "op", {"X_Colour": "red\r\nX-Key: mine"}, headers=headers)
    async with attached(shelter, tmp_path, headers=headers) as upstreams:
        (tool,) = (await upstreams.list_tools("shelter")).tools
    assert list(tool["input_schema"]["properties"]) == ["X_Colour", "seen"], "what the operator gives is no argument"


@pytest.mark.parametrize("value", ["..", ".", "", "../all", "a/..", "..\\all", "%2e%2E"])
async def test_no_value_leaves_its_part_of_the_path(shelter, tmp_path, value):
    parameter = {"name": "p", "in": "path", "required": True, "schema": {}}
    shelter.document = describing(("delete", "/of/{p}", {"operationId": "op", "parameters": [parameter]}))
    async with attached(shelter, tmp_path) as upstreams:
        if value.startswith("%"):
            with pytest.raises(ToolFailed):
                await upstreams.call("shelter", "op", {"p": value})
            assert shelter.calls[-1].target == "/of/%252e%252E", "escaped once more, so that it is a name"
        else:
            with pytest.raises(CallRefused, match="path"):
                await upstreams.call("shelter", "op", {"p": value})
            assert shelter.calls == []


FORM = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b-c": {"type": "array"}}}


def posting(content, **more):
    return describing(("post", "/x", {"operationId": "op", "requestBody": {"content": content}, **more}))


async def test_forms_files_texts_and_bytes_are_bodies_too(shelter, tmp_path):
    form = posting({"application/x-www-form-urlencoded": {"schema": FORM}})
    sent = await called(shelter, tmp_path, form, "op", {"a": "x y", "b_c": [1, 2]})
    assert (sent.headers["content-type"], sent.body) == ("application/x-www-form-urlencoded", b"a=x+y&b-c=1&b-c=2")

    with_file = {**FORM, "properties": {**FORM["properties"], "file": {"type": "string", "format": "binary"}}}
    files = posting({"multipart/form-data": {"schema": with_file}})
    sent = await called(shelter, tmp_path, files, "op", {"a": "é", "file": base64.b64encode(PIXEL).decode()})
    assert sent.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="a"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\xc3\xa9\r\n' in sent.body
    assert b'name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\n' + PIXEL in sent.body
    with pytest.raises(CallRefused, match="not valid base64"):
        await called(shelter, tmp_path, files, "op", {"a": "é", "file": "no!"})

    sent = await called(shelter, tmp_path, posting({"application/xml": {}}), "op", {"body": "<a>ü</a>"})
    assert (sent.headers["content-type"], sent.body) == ("application/xml", "<a>ü</a>".encode())
    sent = await called(shelter, tmp_path, posting({"image/png": {}}), "op", {"body": base64.b64encode(PIXEL).decode()})
    assert (sent.headers["content-type"], sent.body) == ("image/png", PIXEL)


FORM_TYPE = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("encoding", "value", "sent"),
    [
        ({}, {"k": [1]}, "v=%7B%22k%22%3A+%5B1%5D%7D"),
        ({"style": "deepObject", "explode": True}, {"k": "x y", "in": {"n": 1}}, "v[k]=x%20y&v[in][n]=1"),
        ({"style": "deepObject", "explode": True}, [{"price": "a", "n": 1}], "v[0][price]=a&v[0][n]=1"),
        ({"style": "deepObject"}, ["a", "b"], "v[0]=a&v[1]=b"),
        ({"explode": False}, [1, 2], "v=1,2"),
        ({"explode": True}, {"k": 1, "l": 2}, "k=1&l=2"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "v=a%20b"),
        ({"allowReserved": True}, "a/b", "v=a/b"),
        ({"contentType": "application/json"}, [1, "x"], "v=%5B1%2C+%22x%22%5D"),
    ],
)
async def test_fields_of_forms_are_written_as_their_encoding_says(shelter, tmp_path, encoding, value, sent):
    schema = {"type": "object", "properties": {"v": {}}}
    document = posting({FORM_TYPE: {"schema": schema, "encoding": {"v": encoding}}})
    assert (await called(shelter, tmp_path, document, "op", {"v": value})).body.decode() == sent


async def test_parts_have_the_types_and_files_the_names_that_document_and_argument_give(shelter, tmp_path):
    binary, data = {"type": "string", "format": "binary"}, base64.b64encode(PIXEL).decode()
    schema = {
        "type": "object",
        "properties": {"meta": {}, "note": {}, "opts": {}, "a": binary, "b": binary, "c": binary},
    }
    encoding = {
        "meta": {"contentType": "application/json"},
        "note": {"contentType": "text/markdown"},
        "opts": {"style": "deepObject"},
        "b": {"contentType": "image/png, image/jpeg"},
    }
    document = posting({"multipart/form-data": {"schema": schema, "encoding": encoding}})
    given = {
        "meta": [1, 2],
        "note": "# é",
        "opts": {"k": "x y"},
        "a": {"data": data, "filename": "ü.png"},
        "b": data,
        "c": {"data": data, "filename": "x", "content_type": "image/gif"},
    }
    body = (await called(shelter, tmp_path, document, "op", given)).body
    assert b'name="meta"\r\nContent-Type: application/json\r\n\r\n[1, 2]\r\n' in body
    assert b'name="note"\r\nContent-Type: text/markdown\r\n\r\n# \xc3\xa9\r\n' in body
    assert b'name="opts[k]"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nx y\r\n' in body
    assert 'name="a"; filename="ü.png"\r\nContent-Type: image/png\r\n\r\n'.encode() + PIXEL in body
    assert b'name="b"; filename="b"\r\nContent-Type: image/png\r\n\r\n' in body
    assert b'name="c"; filename="x"\r\nContent-Type: image/gif\r\n\r\n' in body
    bad = {"a": {"data": data, "filename": "x\r\nX-Evil: 1"}}
    with pytest.raises(CallRefused, match="must be text on one line"):
        await called(shelter, tmp_path, document, "op", bad)


async def test_texts_and_lines_are_bodies_as_their_media_types_say(shelter, tmp_path):
    latin = posting({"text/plain; charset=iso-8859-1": {}})
    assert (await called(shelter, tmp_path, latin, "op", {"body": "é"})).body == b"\xe9"
    with pytest.raises(CallRefused, match="has characters that iso8859-1 does not have"):
        await called(shelter, tmp_path, latin, "op", {"body": "日"})
    lines = posting({"application/x-ndjson": {"schema": {"type": "object"}}})
    sent = await called(shelter, tmp_path, lines, "op", {"body": [{"a": 1}, {"b": "é"}]})
    assert sent.body == '{"a": 1}\n{"b": "é"}\n'.encode()


async def test_what_a_path_names_and_nobody_describes_is_an_argument(shelter, tmp_path):
    shelter.document = describing(("get", "/a/{user-id}/b/{n}", {"operationId": "op", "parameters": [
        {"name": "n", "in": "path", "required": True, "schema": {"type": "integer"}}]}))  # fmt: skip
    shelter.says("GET /a/x%2Fy/b/3", {})
    async with attached(shelter, tmp_path) as upstreams:
        [tool] = (await upstreams.list_tools("shelter")).tools
        await upstreams.call("shelter", "op", {"user_id": "x/y", "n": 3})
    assert tool["input_schema"]["properties"] == {"user_id": {"type": "string"}, "n": {"type": "integer"}}
    assert tool["input_schema"]["required"] == ["user_id", "n"]
    assert shelter.calls[-1].target == "/a/x%2Fy/b/3"


async def test_what_a_document_writes_in_another_way_is_read_as_it_is_meant(shelter, tmp_path):
    parameters = [
        None,
        {"name": "q", "in": "Query", "style": None, "schema": {"type": "string"}},
        {"name": "gone", "in": "path", "required": True},
    ]
    document = describing(("get", "a/b", {"operationId": "op", "parameters": parameters}))
    document["paths"]["x-note"] = {"get": {}}
    shelter.document = document | {"openapi": 3.1}
    shelter.says("GET /a/b", [])
    async with attached(shelter, tmp_path) as upstreams:
        listed = await upstreams.list_tools("shelter")
        assert [tool["input_schema"]["properties"] for tool in listed.tools] == [{"q": {"type": "string"}}]
        assert not listed.left_out
        assert (await upstreams.call("shelter", "op", {"q": "x"})).value == []


async def test_values_that_yaml_made_numbers_are_of_the_type_that_the_schema_says(shelter, tmp_path):
    parameters = [
        query("version", {"type": "string", "enum": [1, 2.5, True, None, "x"], "default": 1}),
        query("on", {"type": ["string", "null"], "const": False}),
        query("n", {"type": "integer", "enum": ["1", "two", 3]}),
        query("free", {"enum": [1, "a"]}),
    ]
    tools = await tools_of(
        shelter, tmp_path, describing(("get", "/x", {"operationId": "op", "parameters": parameters}))
    )
    assert tools["op"]["input_schema"]["properties"] == {
        "version": {"type": ["string", "null"], "enum": ["1", "2.5", "true", None, "x"], "default": "1"},
        "on": {"type": ["string", "null"], "const": "false"},
        "n": {"type": "integer", "enum": [1, "two", 3]},
        "free": {"enum": [1, "a"]},
    }


@pytest.mark.parametrize(
    ("responses", "result"),
    [
        ({"200": {"description": "Fine"}}, {}),
        ({}, {}),
        ({"default": {"description": "Any"}}, {}),
        ({"204": {"description": "Done"}}, {"type": "null"}),
        ({"200": {"content": {"application/x-ndjson": {"schema": {"type": "object"}}}}},
         {"type": "array", "items": {"type": "object"}}),
    ],
)  # fmt: skip
async def test_an_answer_that_a_document_does_not_describe_is_unknown(shelter, tmp_path, responses, result):
    tools = await tools_of(shelter, tmp_path, describing(("get", "/x", {"operationId": "op", "responses": responses})))
    assert tools["op"]["output_schema"]["properties"]["result"] == result


@pytest.mark.parametrize(
    ("body", "content_type", "value"),
    [
        (b'{"a": "\xe9"}', "application/json", {"a": "é"}),
        (b'{"a": "\xe9"}', "application/json; charset=ISO-8859-1", {"a": "é"}),
        (b"caf\xe9", "text/plain", "café"),
        (b'{"a": 1}\n{"a": 2}\n', "application/x-ndjson", [{"a": 1}, {"a": 2}]),
        (b'{"a": 1}\r\n\r\n{"a": 2}', "application/json", [{"a": 1}, {"a": 2}]),
        (b'{"a": 1}\nnot', "application/jsonl", '{"a": 1}\nnot'),
        (b'{"a": 1}', "", {"a": 1}),
        ("just wörds".encode(), "", "just wörds"),
    ],
)
async def test_answers_are_read_in_the_types_that_services_give(shelter, tmp_path, body, content_type, value):
    shelter.document = describing(("get", "/x", {"operationId": "op"}))
    shelter.says("GET /x", body, content_type=content_type)
    async with attached(shelter, tmp_path) as upstreams:
        assert (await upstreams.call("shelter", "op", {})).value == value


async def test_bytes_of_no_type_are_a_file_and_a_refusal_in_latin_1_is_read(shelter, tmp_path):
    shelter.document = describing(("get", "/x", {"operationId": "op"}))
    shelter.says("GET /x", PIXEL, content_type="")
    async with attached(shelter, tmp_path) as upstreams:
        found = (await upstreams.call("shelter", "op", {})).value
        assert found["mime_type"] == "application/octet-stream"
        shelter.says("GET /x", b"d\xe9j\xe0", 409, content_type="text/plain")
        with pytest.raises(ToolFailed, match="déjà"):
            await upstreams.call("shelter", "op", {})


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        ({"type": "array", "items": {"type": "integer"}}, []),
        ({"oneOf": [FORM, {"type": "null"}]}, []),
        ({**FORM, "additionalProperties": {"type": "string"}}, []),
        (FORM, [query("a", {"type": "integer"})]),
    ],
)
async def test_a_body_whose_fields_cannot_be_arguments_is_one_argument(shelter, tmp_path, schema, parameters):
    document = posting({"application/json": {"schema": schema}}, parameters=parameters)
    tool = (await tools_of(shelter, tmp_path, document))["op"]
    assert tool["input_schema"]["properties"]["body"] == schema
    sent = await called(shelter, tmp_path, document, "op", {"body": [1, 2]})
    assert sent.json == [1, 2]


async def test_names_are_identifiers_and_stay_the_same_in_any_order(shelter, tmp_path):
    both = [
        {"name": "id", "in": "path", "required": True},
        {"name": "id", "in": "query"},
        {"name": "from", "in": "query"},
    ]
    operations = [
        ("get", "/b/{id}", {"operationId": "same", "parameters": both}),
        ("get", "/a", {"operationId": "same"}),
        ("post", "/a", {"operationId": "same"}),
        ("get", "/", {}),
        ("get", "/class", {"operationId": "class"}),
    ]
    tools = await tools_of(shelter, tmp_path, describing(*operations))
    again = await tools_of(shelter, tmp_path, describing(*reversed(operations)))
    titles = {name: tool["title"] for name, tool in tools.items()}
    assert titles == {
        "get_root": "GET /", "same": "GET /a", "same_2": "POST /a", "same_3": "GET /b/{id}", "class_": "GET /class",
    }  # fmt: skip
    assert titles == {name: tool["title"] for name, tool in again.items()}
    assert list(tools["same_3"]["input_schema"]["properties"]) == ["id", "id_query", "from_"]


async def test_documents_may_be_yaml_and_files_whose_service_is_elsewhere(shelter, tmp_path):
    shelter.document = yaml.safe_dump(DOCUMENT).encode()
    async with attached(shelter, tmp_path) as upstreams:
        assert (await upstreams.call("shelter", "listAnimals", {})).value[0]["name"] == "Mia"
    file = tmp_path / "shelter.yaml"
    file.write_text(yaml.safe_dump({**DOCUMENT, "servers": [{"url": f"{shelter.url}/v1"}]}))
    for entry in ({}, {"url": f"{shelter.url}/v1/?key=5"}):
        async with attached(shelter, tmp_path, openapi=str(file), **entry) as upstreams:
            assert (await upstreams.call("shelter", "listAnimals", {"limit": 1})).value[0]["name"] == "Mia"
    assert [each.target for each in shelter.calls[1:]] == ["/v1/animals?limit=1", "/v1/animals?key=5&limit=1"]
    file.write_text(json.dumps({**DOCUMENT, "servers": [{"url": "/v1"}]}))
    async with attached(shelter, tmp_path, openapi=str(file)) as upstreams:
        with pytest.raises(ConnectFailed, match=r"does not say at which address.*--url"):
            await upstreams.list_tools("shelter")


async def test_a_document_cannot_send_the_headers_to_another_origin(shelter, tmp_path):
    with serving() as other:
        shelter.document = {**DOCUMENT, "servers": [{"url": f"{other.url}/v1"}]}
        async with attached(shelter, tmp_path, headers={"X-Key": "secret"}) as upstreams:
            with pytest.raises(ConnectFailed) as raised:
                await upstreams.list_tools("shelter")
        assert re.search(r"another origin than its own.*--url", raised.value.for_operator)
        assert other.url not in str(raised.value)
        async with attached(shelter, tmp_path, headers={"X-Key": "secret"}, url=f"{other.url}/v1") as upstreams:
            await upstreams.call("shelter", "listAnimals", {})
        assert other.calls[0].headers["x-key"] == "secret", "where the operator says so, they go there"
        assert "x-key" not in shelter.requests[-1].headers, "and not with the document"
        shelter.document = describing(
            ("get", "/x", {"operationId": "away", "servers": [{"url": other.url}]}),
            ("get", "/y", {"operationId": "here"}),
        )
        async with attached(shelter, tmp_path) as upstreams:
            listed = await upstreams.list_tools("shelter")
            assert [tool["name"] for tool in listed.tools] == ["here"]
            assert [(each.tool, each.reason[:15]) for each in listed.left_out] == [("GET /x", "it is served at")]
        shelter.document |= {"servers": [{"url": other.url.removeprefix("http:")}]}
        async with attached(shelter, tmp_path, url=shelter.url) as upstreams:
            assert [tool["name"] for tool in (await upstreams.list_tools("shelter")).tools] == ["away", "here"]


async def test_redirects_are_followed_within_the_origin_by_reads_alone(shelter, tmp_path):
    with serving() as other:
        shelter.says("GET /v1/animals", b"", 302, location="/v1/animals/1")
        shelter.says("GET /v1/animals/2", b"", 302, location=f"{other.url}/v1/animals/1")
        shelter.says("GET /v1/animals/3", b"", 302, location="/v1/animals/3")
        shelter.says("DELETE /v1/animals/1", b"", 307, location="/v1/animals/9")
        async with attached(shelter, tmp_path, headers={"X-Key": "secret"}) as upstreams:
            assert (await upstreams.call("shelter", "listAnimals", {})).value["name"] == "Mia"
            with pytest.raises(ToolFailed, match=r"302 Found: it leads to .* not followed"):
                await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 2})
            with pytest.raises(AnswerRefused, match="redirects"):
                await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 3})
            with pytest.raises(ToolFailed, match="not followed"):
                await upstreams.call("shelter", "giveAway", {"animal_id": 1})
        assert other.requests == []
        shelter.says("GET /away.json", b"", 302, location=f"{other.url}/openapi.json")
        async with attached(shelter, tmp_path, openapi=f"{shelter.url}/away.json") as upstreams:
            with pytest.raises(ConnectFailed) as raised:
                await upstreams.list_tools("shelter")
        assert "HTTP status 302, which leads to" in raised.value.for_operator
        assert "http" not in str(raised.value)
        assert other.requests == []


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("file:///etc/hostname", "only references within the document are followed"),
        ("other.json#/x", "only references within the document are followed"),
        ("http://127.0.0.1:1/x", "only references within the document are followed"),
        ("#/not/there", "which is not there"),
    ],
)
async def test_references_out_of_the_document_are_not_followed(shelter, tmp_path, reference, why):
    document = posting({"application/json": {"schema": {"$ref": reference}}})
    document["paths"]["/y"] = {"get": {"operationId": "fine", "responses": {}}}
    document["paths"]["/z"] = {"$ref": reference}
    shelter.document = document
    async with attached(shelter, tmp_path) as upstreams:
        listed = await upstreams.list_tools("shelter")
    assert [tool["name"] for tool in listed.tools] == ["fine"]
    assert [each.tool for each in listed.left_out] == ["/z", "POST /x"]
    assert all(why in each.reason for each in listed.left_out)
    assert len(shelter.requests) == 1


async def test_a_schema_of_answers_that_is_not_there_leaves_the_operation_usable(shelter, tmp_path):
    answer = {"200": {"content": {"application/json": {"schema": {"$ref": "https://example.com/a.json"}}}}}
    tools = await tools_of(shelter, tmp_path, describing(("get", "/x", {"operationId": "op", "responses": answer})))
    assert tools["op"]["output_schema"]["properties"] == {"result": {}}


async def test_hostile_documents_are_bounded(shelter, tmp_path):
    circle = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
    deep: dict = {"type": "object"}
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    # Each of many operations reaches each of many schemas.
    names = [f"S{number}" for number in range(1000)]
    web = {name: {"anyOf": [{"$ref": f"#/components/schemas/{each}"} for each in names[:40]]} for name in names}
    everything = {"anyOf": [{"$ref": f"#/components/schemas/{each}"} for each in names]}
    many = [
        ("get", f"/many/{number}", {"operationId": f"m{number}", "parameters": [query("q", everything)]})
        for number in range(100)
    ]
    document = describing(
        ("get", "/circle", {"parameters": [{"$ref": "#/components/parameters/a"}]}),
        ("get", "/deep", {"parameters": [query("q", deep)]}),
        ("get", "/fine", {"operationId": "fine"}),
        *many,
        components={"parameters": circle, "schemas": web},
    )
    shelter.document = document
    async with attached(shelter, tmp_path) as upstreams:
        listed = await upstreams.list_tools("shelter")
    assert [tool["name"] for tool in listed.tools] == ["fine"]
    told = {each.tool: each.reason for each in listed.left_out}
    assert told["GET /circle"] == "its references lead in a circle"
    assert told["GET /deep"] == "a schema in it is nested deeper than 60 levels"
    assert told["GET /many/0"] == "its schemas are too large"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"[]", 'is not an OpenAPI document. Name another as "openapi"'),
        (b"", 'is not an OpenAPI document. Name another as "openapi"'),
        (b'{"openapi": ', r"not valid JSON: Expecting value in line 1, column 13\. Correct that\."),
        (b'{"openapi": "\xff"}', r"not UTF-8 text \(byte 13\)\. Save it as UTF-8\."),
        (b'{"openapi": ' + b"[" * 200_000, r"nested too deeply\. Make it flatter\."),
        (b"a: &a [*a, *a]\nb: [*a", "not valid YAML"),
        ({"swagger": "2.0", "paths": {}}, r"Swagger 2\.0, and OpenAPI 3\.0 to 3\.2 is needed"),
        ({"openapi": "3.1.0", "paths": {}, "servers": [{"url": "https://{where}/"}]}, "has no default"),
        (b" " * (DOCUMENT_BYTES_MAX + 1), "more than the"),
    ],
)
async def test_what_is_no_usable_document_is_an_error_that_says_why(shelter, tmp_path, document, why):
    shelter.document = document
    async with attached(shelter, tmp_path) as upstreams:
        with pytest.raises(ConnectFailed) as raised:
            await upstreams.list_tools("shelter")
    assert re.search(why, raised.value.for_operator)


async def test_answers_are_bounded_and_have_to_be_what_they_say(shelter, tmp_path, monkeypatch):
    shelter.says("GET /v1/animals", b'{"a": ')
    shelter.says("GET /v1/animals/1", b"[" * 200_000)
    shelter.says("GET /v1/animals/2", b"x" * (64 * 1024 * 1024 + 1), content_type="text/plain")
    shelter.says("GET /v1/animals/3", b"short", content_encoding="gzip")
    shelter.says("DELETE /v1/animals/1", b"zz\r\n", transfer_encoding="chunked")
    async with attached(shelter, tmp_path) as upstreams:
        with pytest.raises(AnswerRefused, match="JSON that cannot be read"):
            await upstreams.call("shelter", "listAnimals", {})
        with pytest.raises(AnswerRefused, match="JSON that cannot be read"):
            await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 1})
        with pytest.raises(AnswerRefused, match="more than the 67108864 bytes"):
            await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 2})
        with pytest.raises(AnswerRefused, match="cannot be used"):
            await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 3})
        with pytest.raises(ConnectionLost, match="outcome is unknown"):
            await upstreams.call("shelter", "giveAway", {"animal_id": 1})
        shelter.says("GET /v1/animals", [1])
        assert (await upstreams.call("shelter", "listAnimals", {})).value == [1], "not as the document says, and given"
        assert upstreams.status("shelter").starts == 1, "no answer ended the connection"


async def test_large_json_comes_whole(shelter, tmp_path):
    value = {"result": [{"number": number, "text": "é" * 20} for number in range(60_000)]}
    shelter.says("GET /v1/animals", value)
    async with attached(shelter, tmp_path) as upstreams:
        assert (await upstreams.call("shelter", "listAnimals", {})).value == value


async def test_a_service_that_is_gone_is_not_called_and_a_silent_one_times_out(shelter, tmp_path):
    with serving() as gone:
        pass
    async with attached(shelter, tmp_path, url=gone.url) as upstreams:
        with pytest.raises(ConnectFailed, match="cannot be reached"):
            await upstreams.call("shelter", "giveAway", {"animal_id": 1})
    # It says that more comes, and nothing does.
    shelter.says("GET /v1/animals", b"", content_length="5")
    async with attached(shelter, tmp_path, call_timeout_seconds=0.5) as upstreams:
        with pytest.raises(CallTimedOut):
            await upstreams.call("shelter", "listAnimals", {})
        assert (await upstreams.call("shelter", "get_animals_animal_id", {"animal_id": 1})).value["id"] == 1


async def test_cookies_of_one_call_are_not_sent_with_another(shelter, tmp_path):
    shelter.says("GET /v1/animals", [], set_cookie="session=1")
    async with attached(shelter, tmp_path) as upstreams:
        await upstreams.call("shelter", "listAnimals", {})
        await upstreams.call("shelter", "listAnimals", {})
    assert "cookie" not in shelter.calls[-1].headers


async def test_policy_pins_and_quarantine_hold_for_operations(shelter, tmp_path):
    async with attached(shelter, tmp_path, keeps_pins=True, deny=["give*"]) as upstreams:
        assert "giveAway" not in {tool["name"] for tool in (await upstreams.list_tools("shelter")).tools}
        with pytest.raises(ToolUnknown, match="not allowed"):
            await upstreams.call("shelter", "giveAway", {"animal_id": 1})
    shelter.document["paths"]["/animals"]["get"]["summary"] = "Something else"
    async with attached(shelter, tmp_path, keeps_pins=True) as upstreams:
        with pytest.raises(Quarantined):
            await upstreams.list_tools("shelter")


async def test_many_operations_come_in_pages(shelter, tmp_path):
    document = describing(*((("get", f"/x/{number}", {"operationId": f"op{number}"})) for number in range(1201)))
    assert len(await tools_of(shelter, tmp_path, document)) == 1201


def test_an_address_with_a_user_or_of_another_kind_has_no_origin():
    assert exchange.origin("https://a.example/x") == exchange.origin("https://a.example:443")
    for address in (
        "https://u@a.example",
        "file:///etc",
        "//a.example",
        "http://",
        "http://a:99999",
        "http://é.example",
    ):
        assert exchange.origin(address) is None
