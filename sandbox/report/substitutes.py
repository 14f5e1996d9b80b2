"""What to use instead of a module, a module's function, or a builtin that guest code does not get.

Each is a clause for the model that wrote the code: what to write in the dialect, in a few words. The longest stays
under 40 tokens, with what `hints_by_type` adds of other isolations (a test counts).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NO_NETWORK = 'there is no network here: use a tool, if search_tools("fetch a page") finds one'
NO_PROCESS = "no process can be started here: write it in Python"
NO_INPUT = "pass the value in context_vars, or set it as a variable"

_INSIDES = "the interpreter's insides cannot be reached; write it with ordinary Python"

_ALWAYS: Mapping[str, str] = MappingProxyType(
    {
        NO_NETWORK: """
            requests httpx aiohttp urllib3 urllib.request urllib.error urllib.robotparser http.client http.cookiejar
            http.server ftplib smtplib smtpd imaplib poplib telnetlib nntplib socket select selectors ssl socketserver
            webbrowser xmlrpc wsgiref cgi cgitb asynchat asyncore websockets websocket grpc paramiko boto3 botocore
            selenium playwright scrapy requests_html asyncio.open_connection asyncio.start_server openai anthropic
            google redis pymongo psycopg psycopg2 pymysql mysql asyncpg kafka pika celery flask fastapi django uvicorn
            starlette tornado gradio streamlit slack_sdk
            """,
        NO_PROCESS: """
            subprocess pipes pty pexpect sh plumbum os.system os.popen os.fork os.kill os.execv os.spawnl
            asyncio.subprocess asyncio.create_subprocess_exec asyncio.create_subprocess_shell
            """,
        "servers are reached by `await tools.<server>.<tool>(**arguments)`; search_tools(query) finds tools": """
            fastmcp mcp.client mcp.types mcp.server mcp.ClientSession
            """,
        "use json: json.dumps and json.loads": "simplejson ujson orjson msgpack demjson json5",
        "use pickle or json": "cPickle marshal pickletools dill joblib cloudpickle",
        NO_INPUT: "getpass readline prompt_toolkit questionary inquirer",
        "there is no environment here; pass the values in context_vars": "dotenv decouple environs dynaconf",
        "use uuid.uuid4(), which depends on nothing of the machine": "uuid.uuid1 uuid.getnode",
        "use argparse, or set the values as variables": "click typer fire docopt absl",
        "nothing can be shown on a screen here; print the result": """
            tkinter turtle turtledemo curses pygame pyglet PyQt5 PyQt6 PySide6 kivy wx idlelib
            """,
        'use zoneinfo.ZoneInfo("Europe/Berlin")': "pytz tzlocal",
        "`from datetime import datetime, timedelta`: datetime.fromisoformat(text), datetime.strptime(text, format)": """
            dateutil arrow pendulum dateparser ciso8601 iso8601 isodate maya delorean
            """,
        "use json; TOML reads tomllib; of simple YAML, read the lines yourself": "yaml ruamel",
        "use tomllib.loads(text)": "toml tomli tomlkit pytoml",
        "use html.parser.HTMLParser, or xml.etree.ElementTree for XML": """
            bs4 lxml html5lib parsel pyquery selectolax xmltodict defusedxml
            """,
        "use re": "regex re2",
        "use dataclasses": "pydantic attrs attr marshmallow cattrs msgspec",
        "use unittest, or plain assert": "pytest nose hypothesis",
        "use string.Template or f-strings": "jinja2 mako chevron pystache",
        "print() plain text": "rich colorama termcolor alive_progress click_spinner blessed pyfiglet",
        'align columns with f-strings: f"{name:<20}{price:>10.2f}"': "tabulate prettytable texttable",
        "use logging": "loguru structlog",
        "use hashlib, hmac and secrets": "cryptography Crypto nacl bcrypt passlib",
        "use hmac, base64 and json": "jwt jose authlib",
        "use random": "faker",
        'use unicodedata.normalize("NFKD", text)': "unidecode text_unidecode",
        'decode with "utf-8", then with "latin-1"': "chardet charset_normalizer cchardet",
        "use functools.lru_cache": "cachetools diskcache",
        "write a loop with try and asyncio.sleep": "tenacity backoff retry retrying",
        "use bisect.insort or heapq": "sortedcontainers blist",
        "use itertools and functools": "more_itertools toolz cytoolz funcy",
        "write the HTML with html.escape and f-strings": "markdown markdown2 mistune commonmark",
        "use difflib": "rapidfuzz fuzzywuzzy Levenshtein thefuzz jellyfish textdistance",
        "the machine cannot be looked at here": """
            psutil resource sysconfig GPUtil distro fcntl grp msilib msvcrt nis nt pwd spwd syslog termios tty winreg
            _winapi
            """,
        "use re; its parser is not for code": "sre_compile",
        "use text.encode(name), bytes.decode(name) and codecs": "encodings",
        "use unicodedata": "stringprep",
        "use binascii.a2b_uu and binascii.b2a_uu": "uu",
        "use struct": "xdrlib chunk",
        "use wave, or struct on the bytes": "aifc audioop ossaudiodev sndhdr sunau winsound",
        "compare the first bytes of the file": "imghdr",
        "use mimetypes.guess_type(name)": "mailcap",
        "use email.message_from_string(text) for each message": "mailbox",
        "use hashlib.scrypt or hashlib.pbkdf2_hmac": "crypt",
        "use open(path) and read it": "mmap",
        "there is nothing to see in it": "antigravity this",
    }
)
"""What to use instead → the names that it stands for. No isolation has more of these."""

_IN_RESTRICTED: Mapping[str, str] = MappingProxyType(
    {
        "use math, statistics and lists": "numpy",
        "use progress(done / total, message)": "tqdm",
        "use statistics and math": "scipy statsmodels sklearn",
        "use csv.DictReader, lists of dicts, collections and statistics": "pandas polars pyarrow duckdb dask modin",
        "write an SVG with write_file, or print the figures": "matplotlib seaborn plotly bokeh altair",
        "use fractions and decimal": "sympy mpmath gmpy2",
        "use dicts of sets; graphlib sorts topologically": "networkx igraph",
        "use re and collections.Counter": "nltk spacy textblob gensim",
        "use csv and text files": "openpyxl xlrd xlwt xlsxwriter docx pptx pypdf PyPDF2 pdfplumber reportlab fitz",
        "images cannot be read here; a result of PNG or JPEG bytes is shown as one": "PIL cv2 imageio skimage",
        "write the formulas in plain Python": "torch tensorflow keras transformers jax xgboost lightgbm numba",
        "keep the rows in dicts": "sqlalchemy peewee sqlmodel",
        "use zlib, bz2 or lzma": "zstandard lz4 brotli snappy",
        "use asyncio: await asyncio.gather(…) runs tool calls in parallel": "trio anyio gevent",
        _INSIDES: """
            bdb compileall ctypes cffi dis distutils ensurepip faulthandler imp lib2to3 modulefinder opcode pdb
            py_compile pydoc_data runpy site symtable venv zipapp zipimport gc.get_objects
            inspect.getsource inspect.currentframe inspect.stack cython
            """,
        "use print() and time.perf_counter()": "cProfile profile pstats trace tracemalloc",
        "use exec(source, variables) or eval(expression)": "code codeop",
        "use ast or tokenize": "pyclbr tabnanny",
        "use dir(value) and value.__doc__": "pydoc rlcompleter",
        "write the annotation as a string": "typing.ForwardRef",
    }
)
"""The same for what full Python has or may have."""


def _by_name(table: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: advice for advice, names in table.items() for name in names.split()})


_NOWHERE = _by_name(_ALWAYS)
_ELSEWHERE = _by_name(_IN_RESTRICTED)
SUBSTITUTES: Mapping[str, str] = MappingProxyType({**_NOWHERE, **_ELSEWHERE})
"""The name of a module, or of a module's member → what to use instead, as a clause without a full stop."""

OF_BUILTINS: Mapping[str, str] = MappingProxyType(
    {
        "raw_input": NO_INPUT,
        "true": "in Python it is True",
        "false": "in Python it is False",
        "null": "in Python it is None",
        "undefined": "in Python it is None",
        "NaN": 'in Python it is float("nan")',
        "nan": 'write float("nan") or math.nan',
        "unicode": "in Python 3 it is str",
        "xrange": "in Python 3 it is range",
        "reload": "modules cannot be reloaded here",
        "get_ipython": "there is no notebook here: write plain Python",
    }
)
"""Names that are not builtins of Python 3 → what to write instead."""


def instead_of(module: str) -> str | None:
    """Return what to use instead of a refused `module` (or `module.name`), as a clause without a full stop.

    A submodule is answered for as its nearest listed parent is; None where there is nothing to say.
    """
    name = _listed(module)
    return None if name is None else SUBSTITUTES[name]


def is_elsewhere(module: str) -> bool:
    """Return whether full Python may have the module: all of which nothing else is known."""
    return _listed(module) not in _NOWHERE


def _listed(module: str) -> str | None:
    while module and module not in SUBSTITUTES:
        module = module.rpartition(".")[0]
    return module or None
