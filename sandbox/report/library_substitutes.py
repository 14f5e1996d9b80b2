"""What to use instead of a module of the standard library that guest code cannot import.

Each is a clause without a full stop, for the model that wrote the code. `docs/standard-library.md` lists all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_INSTEAD_OF_MANY = {
    'there is no network here: use the tools, which search_tools("fetch a page") finds': """
        asynchat asyncore cgi cgitb ftplib http.client http.cookiejar http.server imaplib nntplib poplib select
        selectors smtpd smtplib socket socketserver ssl telnetlib urllib.error urllib.request urllib.robotparser
        webbrowser wsgiref xmlrpc
        """,
    'no process can be started here: write it in Python, or see search_tools("run a command")': """
        asyncio.subprocess pipes pty subprocess
        """,
    "the interpreter's insides cannot be reached; write it with ordinary Python": """
        bdb compileall ctypes dis distutils ensurepip faulthandler imp lib2to3 modulefinder opcode pdb pkgutil
        py_compile pydoc_data runpy site symtable sysconfig venv zipapp zipimport
        """,
    "use print() and time.perf_counter()": "cProfile profile pstats trace tracemalloc",
    "use exec(source, variables) or eval(expression)": "code codeop",
    "use tokenize, or ast.literal_eval for data": "pyclbr tabnanny",
    "use pickle or json": "marshal pickletools",
    "use dir(value) and value.__doc__": "pydoc rlcompleter",
    "use re; its parser is not for code": "sre_compile sre_constants sre_parse",
    "use text.encode(name), bytes.decode(name) and codecs": "encodings",
    "use unicodedata": "stringprep",
    "use binascii.a2b_uu and binascii.b2a_uu": "uu",
    "use struct": "xdrlib chunk",
    "use wave, or struct on the bytes": "aifc audioop ossaudiodev sndhdr sunau winsound",
    "compare the first bytes of the file": "imghdr",
    "use mimetypes.guess_type(name)": "mailcap",
    "use email.message_from_string(text) for each message": "mailbox",
    "use hashlib.scrypt or hashlib.pbkdf2_hmac": "crypt",
    "use open(path) and read it": "importlib.resources linecache mmap",
    "write a class or a function that records its calls, and pass it in": "unittest.mock",
    "nobody can be asked here; pass the value in context_vars, or set it as a variable": "getpass readline",
    "nothing can be drawn here; print the result": "curses idlelib tkinter turtle turtledemo",
    "nothing of the machine can be seen here": """
        fcntl grp msilib msvcrt nis nt posix pwd resource spwd syslog termios tty winreg _winapi
        """,
    "there is nothing to see in it": "antigravity",
}
OF_LIBRARY: Mapping[str, str] = MappingProxyType(
    {name: advice for advice, names in _INSTEAD_OF_MANY.items() for name in names.split()}
)
"""The name of a module → what to use instead."""
