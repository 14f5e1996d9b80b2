"""A security boundary: the public names that guest code may reach, module by module.

A name belongs here only if calling it with hostile arguments does nothing but compute: it opens no file, reads no
name, path or source from its arguments, and neither it nor what it returns has a public attribute that does.
A name that this Python's version lacks is left out of its facade. Where a stand-in module (`STAND_INS`) has the
name in its `__all__`, that object is given instead of the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType

_STAND_INS = """\
_green_threads _modules _sealab_ast _sealab_io _sealab_os _sealab_paths _sealab_sqlite asyncio codecs collections
contextlib contextvars copy dataclasses decimal enum functools inspect itertools sys time traceback typing weakref
zoneinfo
"""
_FEW_NAMES = "_tokenize abc csv hashlib locale math operator platform string types urllib.parse"
STAND_INS: Mapping[str, str] = MappingProxyType(
    {name: f"{name.lstrip('_').replace('.', '_')}_" for name in _STAND_INS.split()}
    | dict.fromkeys(_FEW_NAMES.split(), "few_names")
)
"""Module name → the module of `stand_ins` that replaces some or all of its names."""

_TABLE = """\
_green_threads: current main park start wake
_modules: exists load new_copy run_copy
__future__: absolute_import all_feature_names annotations division generator_stop generators nested_scopes
    print_function unicode_literals with_statement
_bz2: BZ2Compressor BZ2Decompressor
_lzma: CHECK_CRC32 CHECK_CRC64 CHECK_ID_MAX CHECK_NONE CHECK_SHA256 CHECK_UNKNOWN FILTER_ARM FILTER_ARMTHUMB
    FILTER_DELTA FILTER_IA64 FILTER_LZMA1 FILTER_LZMA2 FILTER_POWERPC FILTER_SPARC FILTER_X86 FORMAT_ALONE FORMAT_AUTO
    FORMAT_RAW FORMAT_XZ LZMACompressor LZMADecompressor LZMAError MF_BT2 MF_BT3 MF_BT4 MF_HC3 MF_HC4 MODE_FAST
    MODE_NORMAL PRESET_DEFAULT PRESET_EXTREME _decode_filter_properties _encode_filter_properties
    is_check_supported
_sealab_ast: dump kinds literal parse unparse
_sealab_io: BufferedIOBase BytesIO IOBase SEEK_CUR SEEK_END SEEK_SET StringIO TextIOBase
    TextIOWrapper UnsupportedOperation
_sealab_os: PathLike altsep close_file curdir devnull disk_usage extsep fsdecode fsencode fspath linesep list_folder
    make_folder name open_file pardir path_status pathsep read_file_at remove_folder remove_path rename_path sep
    set_modified store_file strerror truncate_file urandom write_file_at
_sealab_paths: PurePath PurePosixPath PureWindowsPath
_sealab_sqlite: DataError Database DatabaseError Error IntegrityError InterfaceError InternalError NotSupportedError
    OperationalError ProgrammingError Results Warning complete_statement sqlite_version
_tokenize: TokenizerIter
abc: ABC ABCMeta abstractclassmethod abstractmethod abstractproperty abstractstaticmethod get_cache_token
    update_abstractmethods
array: ArrayType array typecodes
asyncio: ALL_COMPLETED Barrier BoundedSemaphore BrokenBarrierError CancelledError Condition Event FIRST_COMPLETED
    FIRST_EXCEPTION Future InvalidStateError LifoQueue Lock PriorityQueue Queue QueueEmpty QueueFull QueueShutDown
    Runner Semaphore Task TaskGroup Timeout TimeoutError all_tasks as_completed create_task current_task ensure_future
    gather get_event_loop get_running_loop iscoroutine iscoroutinefunction isfuture new_event_loop run set_event_loop
    shield sleep timeout timeout_at to_thread wait wait_for
base64: a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode b64encode
    b85decode b85encode decode decodebytes encode encodebytes standard_b64decode standard_b64encode urlsafe_b64decode
    urlsafe_b64encode z85decode z85encode
binascii: Error Incomplete a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 crc_hqx hexlify
    unhexlify
bisect: bisect bisect_left bisect_right insort insort_left insort_right
cmath: acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan nanj phase
    pi polar rect sin sinh sqrt tan tanh tau
codecs: BOM BOM_BE BOM_LE BOM_UTF16 BOM_UTF16_BE BOM_UTF16_LE BOM_UTF32 BOM_UTF32_BE BOM_UTF32_LE BOM_UTF8 decode
    encode lookup open
collections: ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque namedtuple
collections.abc: AsyncGenerator AsyncIterable AsyncIterator Awaitable Buffer ByteString Callable Collection Container
    Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping
    MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
colorsys: hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv rgb_to_yiq yiq_to_rgb
contextlib: AbstractAsyncContextManager AbstractContextManager AsyncContextDecorator AsyncExitStack ContextDecorator
    ExitStack aclosing asynccontextmanager chdir closing contextmanager nullcontext redirect_stderr redirect_stdout
    suppress
contextvars: Context ContextVar Token copy_context
copy: Error copy deepcopy replace
csv: Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_NOTNULL
    QUOTE_STRINGS Sniffer excel excel_tab field_size_limit get_dialect list_dialects reader register_dialect
    unix_dialect unregister_dialect writer
dataclasses: Field FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field fields is_dataclass
    make_dataclass replace
datetime: MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo
decimal: BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple DefaultContext
    DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext FloatOperation HAVE_CONTEXTVAR HAVE_THREADS
    Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING
    ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow
    getcontext localcontext setcontext
difflib: Differ HtmlDiff IS_CHARACTER_JUNK IS_LINE_JUNK Match SequenceMatcher context_diff diff_bytes
    get_close_matches ndiff restore unified_diff
enum: CONFORM CONTINUOUS EJECT Enum EnumCheck EnumMeta EnumType Flag FlagBoundary IntEnum IntFlag KEEP NAMED_FLAGS
    STRICT StrEnum UNIQUE auto member nonmember property unique verify
errno: E2BIG EACCES EADDRINUSE EAGAIN EALREADY EBADF EBUSY ECANCELED ECHILD ECONNABORTED ECONNREFUSED ECONNRESET
    EDEADLK EDOM EEXIST EFAULT EFBIG EHOSTUNREACH EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK
    EMSGSIZE ENAMETOOLONG ENETUNREACH ENFILE ENODATA ENODEV ENOENT ENOEXEC ENOMEM ENOSPC ENOSYS ENOTCONN ENOTDIR
    ENOTEMPTY ENOTSUP ENOTTY ENXIO EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO ERANGE EROFS ESPIPE ESRCH ESTALE ETIMEDOUT
    ETXTBSY EWOULDBLOCK EXDEV errorcode
fnmatch: filter fnmatch fnmatchcase translate
fractions: Fraction
functools: WRAPPER_ASSIGNMENTS WRAPPER_UPDATES cache cached_property cmp_to_key lru_cache partial partialmethod reduce
    singledispatch singledispatchmethod total_ordering update_wrapper wraps
gc: collect disable enable get_count get_threshold isenabled
graphlib: CycleError TopologicalSorter
hashlib: algorithms_available algorithms_guaranteed blake2b blake2s file_digest md5 new pbkdf2_hmac scrypt sha1 sha224
    sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
heapq: heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest
hmac: HMAC compare_digest digest digest_size new
http: HTTPMethod HTTPStatus
inspect: CO_ASYNC_GENERATOR CO_COROUTINE CO_GENERATOR CO_ITERABLE_COROUTINE CO_VARARGS CO_VARKEYWORDS
    BoundArguments Parameter Signature cleandoc formatannotation get_annotations getdoc getfullargspec getmembers
    getmro isabstract
    isasyncgen isasyncgenfunction isawaitable isbuiltin isclass iscoroutine iscoroutinefunction isfunction isgenerator
    isgeneratorfunction ismethod ismodule isroutine signature
ipaddress: AddressValueError IPV4LENGTH IPV6LENGTH IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface
    IPv6Network NetmaskValueError collapse_addresses get_mixed_type_key ip_address ip_interface ip_network
    summarize_address_range v4_int_to_packed v6_int_to_packed
itertools: accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
    filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
json: JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads
json.decoder: JSONDecodeError JSONDecoder
json.encoder: JSONEncoder
keyword: iskeyword issoftkeyword kwlist softkwlist
locale: CHAR_MAX Error LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME atof atoi currency
    delocalize format_string getencoding getlocale getpreferredencoding localeconv localize normalize setlocale str
    strcoll strxfrm
math: acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2 expm1
    fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma
    log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau
    trunc ulp
numbers: Complex Integral Number Rational Real
operator: abs add and_ attrgetter call concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat
    ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter itruediv
    ixor le length_hint lshift lt matmul methodcaller mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth
    xor
platform: machine node platform processor python_implementation python_version python_version_tuple release system
    version
posixpath: altsep basename commonpath commonprefix curdir dirname extsep isabs join normcase normpath pardir pathsep
    sep split splitdrive splitext
pyexpat: EXPAT_VERSION ErrorString ExpatError ParserCreate XMLParserType XML_PARAM_ENTITY_PARSING_ALWAYS
    XML_PARAM_ENTITY_PARSING_NEVER XML_PARAM_ENTITY_PARSING_UNLESS_STANDALONE error features native_encoding
    version_info
random: Random SystemRandom betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits
    getstate lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed setstate
    shuffle triangular uniform vonmisesvariate weibullvariate
re: A ASCII DOTALL I IGNORECASE L LOCALE M MULTILINE Match NOFLAG Pattern PatternError RegexFlag S U UNICODE VERBOSE X
    compile error escape findall finditer fullmatch match purge search split sub subn
secrets: SystemRandom choice compare_digest randbelow randbits token_bytes token_hex token_urlsafe
shlex: join quote split
statistics: NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean kde kde_random
    linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance quantiles
    stdev variance
string: Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable
    punctuation whitespace
string.templatelib: Interpolation Template convert
struct: Struct calcsize error iter_unpack pack pack_into unpack unpack_from
sys: __stderr__ __stdin__ __stdout__ _getframe api_version argv audit base_exec_prefix base_prefix byteorder exc_info
    excepthook exception exec_prefix executable exit flags float_info float_repr_style get_int_max_str_digits
    getdefaultencoding getfilesystemencodeerrors getfilesystemencoding getrecursionlimit getrefcount getsizeof hash_info
    hexversion implementation int_info intern maxsize maxunicode modules path platform prefix set_int_max_str_digits
    setrecursionlimit stderr stdin stdout version version_info warnoptions
textwrap: TextWrapper dedent fill indent shorten wrap
time: CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME altzone asctime clock_getres clock_gettime
    clock_gettime_ns ctime daylight get_clock_info gmtime localtime mktime monotonic monotonic_ns perf_counter
    perf_counter_ns process_time process_time_ns sleep strftime strptime struct_time thread_time thread_time_ns time
    time_ns timezone tzname
tomllib: TOMLDecodeError load loads
traceback: FrameSummary StackSummary extract_stack extract_tb format_exc format_exception format_exception_only
    format_list format_stack format_tb print_exc print_exception print_list print_stack print_tb
types: AsyncGeneratorType BuiltinFunctionType BuiltinMethodType CodeType CoroutineType DynamicClassAttribute
    EllipsisType FrameType FunctionType GeneratorType GenericAlias LambdaType MappingProxyType MethodType ModuleType
    NoneType NotImplementedType SimpleNamespace TracebackType UnionType new_class
typing: _GenericAlias AbstractSet Annotated Any AnyStr AsyncContextManager AsyncGenerator AsyncIterable AsyncIterator
    Awaitable BinaryIO ByteString Callable ChainMap ClassVar Collection Concatenate Container ContextManager Coroutine
    Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView
    List
    Literal LiteralString Mapping MappingView Match MutableMapping MutableSequence MutableSet NamedTuple Never NewType
    NoDefault NoReturn NotRequired Optional OrderedDict ParamSpec ParamSpecArgs ParamSpecKwargs Pattern Protocol
    ReadOnly Required Reversible Self Sequence Set Sized SupportsAbs SupportsBytes SupportsComplex SupportsFloat
    SupportsIndex SupportsInt SupportsRound TYPE_CHECKING Text TextIO Tuple Type TypeAlias TypeAliasType TypeGuard
    TypeIs TypeVar TypeVarTuple TypedDict Union Unpack ValuesView assert_never assert_type cast dataclass_transform
    final get_args get_origin get_type_hints is_typeddict no_type_check overload
    override reveal_type runtime_checkable
unicodedata: bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup
    mirrored name normalize numeric unidata_version
urllib.parse: DefragResult DefragResultBytes ParseResult ParseResultBytes SplitResult SplitResultBytes _splittype
    parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus unquote_to_bytes urldefrag urlencode
    urljoin urlparse urlsplit urlunparse urlunsplit
uuid: NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 RESERVED_FUTURE RESERVED_MICROSOFT RESERVED_NCS
    RFC_4122 SafeUUID UUID uuid3 uuid4 uuid5
weakref: CallableProxyType ProxyType ProxyTypes ReferenceType WeakKeyDictionary WeakMethod WeakSet WeakValueDictionary
    finalize getweakrefcount getweakrefs proxy ref
zlib: DEFLATED DEF_BUF_SIZE DEF_MEM_LEVEL MAX_WBITS ZLIB_RUNTIME_VERSION ZLIB_VERSION Z_BEST_COMPRESSION Z_BEST_SPEED
    Z_BLOCK Z_DEFAULT_COMPRESSION Z_DEFAULT_STRATEGY Z_FILTERED Z_FINISH Z_FIXED Z_FULL_FLUSH Z_HUFFMAN_ONLY
    Z_NO_COMPRESSION Z_NO_FLUSH Z_PARTIAL_FLUSH Z_RLE Z_SYNC_FLUSH Z_TREES _ZlibDecompressor adler32 compress
    compressobj crc32 decompress decompressobj error
zoneinfo: InvalidTZPathWarning TZPATH ZoneInfo ZoneInfoNotFoundError available_timezones reset_tzpath
"""


def _read(table: str) -> Mapping[str, tuple[str, ...]]:
    listing: dict[str, tuple[str, ...]] = {}
    module = ""
    for line in table.splitlines():
        if not line.startswith(" "):
            module, _, line = line.partition(":")  # noqa: PLW2901 - what remains of the line is read below
        listing[module] = listing.get(module, ()) + tuple(line.split())
    return MappingProxyType(listing)


REAL: Mapping[str, str] = MappingProxyType({"_sealab_io": "io", "_sealab_os": "os", "_sealab_sqlite": "sqlite3"})
"""Facades that only guest modules import → the module whose names they give; the others have the module's own name."""

ALIASES: Mapping[str, str] = MappingProxyType({"typing_extensions": "typing"})
"""Module name → the module that is given under it as well."""

SUBMODULES: Mapping[str, tuple[str, ...]] = MappingProxyType({"http": ("cookies",)})
"""Facade of a package → the modules below it that run as guest code, each there once it is imported."""

_SINCE = MappingProxyType({"_tokenize": (3, 12), "string.templatelib": (3, 14)})
"""Modules that not every version has."""

PUBLIC: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {module: names for module, names in _read(_TABLE).items() if sys.version_info >= _SINCE.get(module, (3,))}
)
"""Module name → its public names."""
