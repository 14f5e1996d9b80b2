"""What to use instead of a module, or of a module's function, that guest code does not get."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NEEDS_FULL_PYTHON = "it needs full Python"
"""What stands for modules outside the standard library; `report.hints_by_type` says how to get full Python."""

_INSTEAD_OF_MANY = {
    "use the helpers read_file, write_file, list_files and delete_file, which reach the workspace": """
        os posix shutil glob tempfile fileinput filecmp linecache mmap zipfile tarfile dbm io.open io.FileIO codecs.open
        os.listdir os.makedirs os.mkdir os.remove os.unlink os.rename os.walk os.scandir os.stat os.getcwd os.chdir
        os.rmdir os.replace os.open os.path.exists os.path.isfile os.path.isdir os.path.getsize os.path.getmtime
        gzip.open bz2.open lzma.open tomllib.load contextlib.chdir logging.FileHandler hashlib.file_digest
        """,
    'there is no network here: call an upstream tool that fetches it, which search_tools("fetch a page") may find, or'
    " have the caller pass it as context_vars or file": """
        requests httpx aiohttp urllib3 urllib.request urllib.error http.client http.server ftplib smtplib imaplib poplib
        telnetlib socket ssl socketserver webbrowser xmlrpc paramiko boto3 selenium playwright asyncio.open_connection
        """,
    'no other process can be started here: call an upstream tool that does it, which search_tools("run a command") may'
    " find, or write it in Python": """
        subprocess pty os.system os.popen asyncio.subprocess asyncio.create_subprocess_exec
        asyncio.create_subprocess_shell
        """,
    "use asyncio: await asyncio.gather(…) really runs tool calls in parallel": """
        threading concurrent concurrent.futures multiprocessing _thread sched signal trio anyio gevent
        """,
    "servers are reached by `await tools.<server>.<tool>(**arguments)`, and search_tools(query) finds tools": """
        fastmcp mcp.client mcp.types mcp.server mcp.ClientSession
        """,
    NEEDS_FULL_PYTHON: """
        numpy pandas scipy matplotlib sklearn polars pyarrow torch tensorflow sympy networkx PIL cv2 seaborn plotly bs4
        lxml yaml openpyxl nltk spacy pydantic tqdm dateutil attrs attr pytest requests_html jinja2 xlsxwriter
        """,
    "use json: json.dumps and json.loads": """
        pickle cPickle marshal shelve copyreg dill joblib cloudpickle simplejson ujson orjson
        """,
    "the code has no access to the interpreter's insides; write it with ordinary Python": """
        builtins importlib ctypes cffi code codeop dis pdb bdb trace tracemalloc cProfile profile pstats faulthandler
        site runpy pkgutil imp zipimport symtable sysconfig resource atexit gc.get_objects sys._getframe
        inspect.getsource inspect.currentframe inspect.stack tokenize pyclbr rlcompleter opcode types.FunctionType
        types.new_class
        """,
    "use uuid.uuid4(), which depends on nothing of the machine": "uuid.uuid1 uuid.getnode",
    "there is no command line here; set the values as variables, or pass them in context_vars": "argparse optparse",
    "nobody can be asked here; pass the value in context_vars": "getpass readline cmd",
    "nothing can be drawn here; print the result": "tkinter turtle curses",
}

_INSTEAD: Mapping[str, str] = MappingProxyType(
    {name: advice for advice, names in _INSTEAD_OF_MANY.items() for name in names.split()}
    | {
        "ast": "ast.literal_eval is there; the rest of ast is not",
        "locale.setlocale": 'format with f"{value:,.2f}", which depends on no locale',
        "sqlite3": "keep the rows in lists and dicts; sorted, itertools.groupby, collections.Counter and statistics do"
        " what a query would",
        "typing.ForwardRef": "write the annotation as a string",
    }
)


def instead_of(module: str) -> str | None:
    """Say what to use instead of a refused `module` (or `module.name`), as a clause without a full stop.

    A submodule is answered for as its nearest listed parent is; None where there is nothing to say.
    """
    while module:
        if module in _INSTEAD:
            return _INSTEAD[module]
        module = module.rpartition(".")[0]
    return None
