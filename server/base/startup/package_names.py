"""Which distribution brings a module: by the metadata of what is installed, else by a table taken from metadata.

Of a module that is in neither, nothing is said: a distribution that merely has the module's name may be another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

_OF_THE_SAME_NAME = """
    altair arrow attrs babel bokeh cachetools cattrs chardet click cloudpickle cycler dask dill docopt duckdb faker
    formulaic geopandas geopy gensim humanize igraph imageio jinja2 joblib jsonpath_ng jsonschema kiwisolver
    lark librosa lightgbm loguru lxml mako markdown matplotlib mistune more_itertools mpmath msgpack msgspec
    multidict networkx nltk numba numexpr numpy numpy_financial openpyxl orjson pandas parso patsy pendulum pint plotly
    polars prettytable prophet pulp pyarrow pydantic pygments pyparsing pypdf pytz rapidfuzz regex reportlab rich scipy
    seaborn shapely simplejson sortedcontainers spacy sqlalchemy sqlglot sqlparse statsmodels sympy tabulate
    textblob tiktoken tokenizers tomlkit toolz torch torchvision tqdm transformers typer tzlocal ujson unidecode xarray
    xgboost xlrd xlsxwriter xlwt xmltodict zstandard
    """
"""Modules whose distribution has their name, but for `-` and `_`."""

_OF_ANOTHER_NAME: Mapping[str, str] = MappingProxyType(
    {
        "Bio": "biopython",
        "Crypto": "pycryptodome",
        "Levenshtein": "levenshtein",
        "OpenSSL": "pyOpenSSL",
        "PIL": "pillow",
        "PyPDF2": "PyPDF2",
        "Stemmer": "PyStemmer",
        "attr": "attrs",
        "bs4": "beautifulsoup4",
        "cv2": "opencv-python",
        "dateutil": "python-dateutil",
        "docx": "python-docx",
        "dotenv": "python-dotenv",
        "fitz": "PyMuPDF",
        "fontTools": "fonttools",
        "git": "GitPython",
        "jose": "python-jose",
        "jwt": "PyJWT",
        "magic": "python-magic",
        "markdown_it": "markdown-it-py",
        "mpl_toolkits": "matplotlib",
        "nacl": "PyNaCl",
        "pkg_resources": "setuptools",
        "pptx": "python-pptx",
        "pylab": "matplotlib",
        "pymupdf": "PyMuPDF",
        "rpds": "rpds-py",
        "ruamel": "ruamel.yaml",
        "serial": "pyserial",
        "skimage": "scikit-image",
        "sklearn": "scikit-learn",
        "slugify": "python-slugify",
        "usb": "pyusb",
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
    from importlib.metadata import packages_distributions

    return packages_distributions()


def misnamed(distribution: str) -> str | None:
    """Return what was meant where the name of a module stands for that of its distribution, else None."""
    meant = _OF_ANOTHER_NAME.get(distribution)
    return None if meant is None or meant.lower() == distribution.lower() else meant
