"""Which distribution brings a module: by the metadata of what is installed, else by a table taken from metadata.

Of a module that is in neither, nothing is said: a distribution that merely has the module's name may be another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import packages_distributions
from types import MappingProxyType

_OF_THE_SAME_NAME = """
    aiofiles aiohttp altair anndata anthropic appdirs arrow arviz astropy attrs babel blinker bokeh boto3 botocore
    cachetools cairosvg cattrs certifi chardet click cloudpickle cobra colorama colorlog contourpy croniter
    cssselect cvxpy cycler dash dask dateparser deepdiff dill diskcache docopt docx2pdf docxtpl duckdb ebooklib
    emoji et_xmlfile extract_msg faker fastapi feedparser filelock fiona flask formulaic fsspec ftfy furl gensim
    geopandas geopy gradio graphviz great_tables h5py html2text html5lib httpx humanize icalendar igraph imageio
    isodate itsdangerous jinja2 jmespath joblib jsonlines jsonpatch jsonpath_ng jsonpointer jsonschema keyring
    kiwisolver lark librosa lifelines lightgbm loguru lxml mako markdown markdown2 markdownify markitdown matchms
    matplotlib mcp mistune more_itertools mpmath msgpack msgspec multidict mutagen narwhals nbformat networkx
    nibabel nltk numba numexpr numpy numpy_financial oauthlib openai openpyxl opentimelineio orjson packaging pandas
    parso patsy pdf2docx pdf2image pdfplumber peewee pendulum pexpect pikepdf pint platformdirs playwright plotly
    polars pooch portalocker prettytable prophet psutil psycopg pulp pyarrow pycountry pydantic pydeseq2 pydicom
    pydub pyfiglet pygments pylatexenc pymatgen pymc pymongo pypandoc pyparsing pypdf pyperclip pyproj pysam
    pytesseract pytest pytz qiskit qrcode qutip rapidfuzz rasterio rdflib redis regex reportlab requests
    requests_toolbelt rich rtree scanpy scipy seaborn segno selenium shap shapely simplejson simpy slack_sdk
    sortedcontainers soundfile spacy sqlalchemy sqlglot sqlparse starlette statsmodels streamlit structlog svgwrite
    sympy tabulate tenacity termcolor textblob textdistance textstat tifffile tiktoken tinydb tokenizers toml
    tomlkit toolz torch torchvision tqdm trafilatura transformers typer tzlocal ujson unidecode uvicorn validators
    vobject watchdog wcwidth websockets werkzeug whoosh wordcloud xarray xgboost xlrd xlsxwriter xlwt xmltodict yarl
    yt_dlp zarr zstandard
    """
"""Modules whose distribution has their name, but for `-` and `_`."""

_OF_ANOTHER_NAME: Mapping[str, str] = MappingProxyType(
    {
        "Bio": "biopython",
        "Crypto": "pycryptodome",
        "Levenshtein": "levenshtein",
        "MySQLdb": "mysqlclient",
        "OpenGL": "PyOpenGL",
        "OpenSSL": "pyOpenSSL",
        "PIL": "pillow",
        "PyPDF2": "PyPDF2",
        "Stemmer": "PyStemmer",
        "attr": "attrs",
        "barcode": "python-barcode",
        "bs4": "beautifulsoup4",
        "cv2": "opencv-python",
        "dateutil": "python-dateutil",
        "dns": "dnspython",
        "docx": "python-docx",
        "dotenv": "python-dotenv",
        "ffmpeg": "ffmpeg-python",
        "fitz": "PyMuPDF",
        "fontTools": "fonttools",
        "fpdf": "fpdf2",
        "git": "GitPython",
        "googleapiclient": "google-api-python-client",
        "imblearn": "imbalanced-learn",
        "jose": "python-jose",
        "jwt": "PyJWT",
        "magic": "python-magic",
        "markdown_it": "markdown-it-py",
        "mpl_toolkits": "matplotlib",
        "nacl": "PyNaCl",
        "pdfminer": "pdfminer.six",
        "pkg_resources": "setuptools",
        "pptx": "python-pptx",
        "pylab": "matplotlib",
        "pymupdf": "PyMuPDF",
        "readability": "readability-lxml",
        "rpds": "rpds-py",
        "ruamel": "ruamel.yaml",
        "serial": "pyserial",
        "skbio": "scikit-bio",
        "skimage": "scikit-image",
        "sklearn": "scikit-learn",
        "sksurv": "scikit-survival",
        "slugify": "python-slugify",
        "socks": "PySocks",
        "telegram": "python-telegram-bot",
        "umap": "umap-learn",
        "usb": "pyusb",
        "win32com": "pywin32",
        "yaml": "PyYAML",
        "zmq": "pyzmq",
    }
)
"""Module → its distribution, as the distribution's own metadata (RECORD, top_level.txt) say."""


def distribution_of(module: str) -> str | None:
    """Return the name of the distribution that brings a module, or None where that is not known or not one alone."""
    top = module.partition(".")[0]
    if top in _OF_ANOTHER_NAME:
        return _OF_ANOTHER_NAME[top]
    if top in _OF_THE_SAME_NAME.split():
        return top.replace("_", "-")
    installed = sorted(set(installed_distributions().get(top, ())))
    return installed[0] if len(installed) == 1 else None


@lru_cache(maxsize=1)
def installed_distributions() -> Mapping[str, list[str]]:
    """Return the distributions of each top module that is installed here; the first call reads all their files."""
    return packages_distributions()


def module_of(distribution: str) -> str:
    """Return the module by which one sees whether a distribution is there; of one not known that of its name."""
    plain = distribution.lower().replace("-", "_").replace(".", "_")
    of_another = {name.lower().replace("-", "_").replace(".", "_"): module for module, name in _OF_ANOTHER_NAME.items()}
    return of_another.get(plain, plain)


def misnamed(distribution: str) -> str | None:
    """Return what was meant where the name of a module stands for that of its distribution, else None."""
    meant = _OF_ANOTHER_NAME.get(distribution)
    return None if meant is None or meant.lower() == distribution.lower() else meant
