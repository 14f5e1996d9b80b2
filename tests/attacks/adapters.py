"""Code put before a case's own, so that the names which a corpus uses reach ours."""

from __future__ import annotations

import json

_WORKSPACE = {
    "ws_read": "ws_read = read_file",
    "ws_write": "ws_write = write_file",
    "ws_append": "ws_append = lambda name, text: write_file(name, read_file(name) + text)",
    "ws_list": "ws_list = lambda path='.': list_files(path or '.')",
    "ws_delete": "ws_delete = delete_file",
    "ws_mkdir": "ws_mkdir = lambda path: write_file(path.rstrip('/') + '/made', '')",
    "ws_rename": "ws_rename = lambda old, new: (write_file(new, read_file(old)), delete_file(old))",
    "ws_stat": "ws_stat = lambda name: [file for file in list_files('.') if file['name'] == name][0]",
}
_EXISTS = """\
def ws_exists(name):
    try:
        read_file(name, 0, 1)
    except FileNotFoundError:
        return False
    return True
"""


def workspace(code: str) -> str:
    """Give our names for the workspace to code that uses the corpus's own."""
    before = "; ".join(line for name, line in _WORKSPACE.items() if name in code)
    return (_EXISTS if "ws_exists" in code else "") + (before + "\n" if before else "") + code


_CHANNEL = """
import json as _json, os as _os, select as _select, stat as _stat

def _is_socket(fd):
    try:
        return _stat.S_ISSOCK(_os.fstat(fd).st_mode)
    except OSError:
        return False

CTL_FD = next((fd for fd in range(1024) if _is_socket(fd)), -1)

def _ours(frame):
    if frame.get("op") == "call":
        rest = {key: value for key, value in frame.items() if key not in ("op", "id", "tool", "args")}
        return {"t": "call", "name": frame["tool"], "args": frame["args"], **rest}
    if frame.get("op") == "result":
        return {"t": "done", "status": "ok", "result": frame.get("value"), "error": None, "notes": {}}
    return {"t" if key == "op" else key: value for key, value in frame.items()}

def _in_our_words(data):
    if data[4:10] != b'{"op":' or int.from_bytes(data[:4], "big") != len(data) - 4:
        return data
    body = data[4:].replace(b'"op":"result","value":', b'"t":"done","status":"ok","error":null,"notes":{},"result":')
    body = body.replace(b'"op":"call"', b'"t":"call"').replace(b'"tool":', b'"name":')
    return ctl_header(len(body)) + body

def ctl_header(length):
    return (length & 0xFFFFFFFF).to_bytes(4, "big")

def ctl_raw(data):
    rest = memoryview(_in_our_words(bytes(data)))
    while rest:
        try:
            rest = rest[_os.write(CTL_FD, rest):]
        except BlockingIOError:
            poll = _select.poll()
            poll.register(CTL_FD, _select.POLLOUT)
            poll.poll()

def ctl_frame(frame):
    body = _json.dumps(_ours(frame)).encode()
    ctl_raw(ctl_header(len(body)) + body)

def _read(count):
    data = b""
    while len(data) < count:
        try:
            more = _os.read(CTL_FD, count - len(data))
        except BlockingIOError:
            poll = _select.poll()
            poll.register(CTL_FD, _select.POLLIN)
            poll.poll()
            continue
        if not more:
            raise EOFError("the host closed the channel")
        data += more
    return data

def ctl_recv():
    answer = _json.loads(_read(int.from_bytes(_read(4), "big")))
    return answer.get("value") if answer.get("error") is None else {"error": answer["error"]}

def ctl_call(id, tool, args):
    ctl_frame({"op": "call", "id": id, "tool": tool, "args": args})
    return ctl_recv()

def ctl_result(value):
    ctl_frame({"op": "result", "value": value})
"""


def channel(code: str) -> str:
    """Give raw code the control channel in our framing: it is the one socket that its process holds.

    Numbers of calls are left out, since in our protocol the host counts them; whatever else a frame claims stays.
    """
    return f"exec({_CHANNEL!r})\n{code}"


SESSION_NAMES = ("../x", "a/b", "", "A" * 5000, "a\0b", "~", "con ", "../../tmp/x", "é" * 80)
"""What a caller could try as a session's name so that it becomes a path."""


def each_system_call(code: str) -> list[str]:
    """Split an inventory of system calls into one program for each: a deadly call ends its process.

    Gives the code whole where it does not loop as the corpus does.
    """
    loop = "for nr in range(0, 470):"
    if loop not in code:
        return [code]
    return [code.replace(loop, f"for nr in {json.dumps(list(range(first, first + 1)))}:") for first in range(470)]
