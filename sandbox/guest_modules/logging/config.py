"""`logging.config` as guest code: loggers as a dictionary describes them."""

import importlib
import logging
import sys

_STREAMS = {"ext://sys.stdout": "stdout", "ext://sys.stderr": "stderr"}


def dictConfig(config):
    """Make the loggers, handlers and formatters of a dictionary (Library Reference, logging.config).

    Raises ValueError for what it cannot make.
    """
    if config.get("version") != 1:
        raise ValueError(f"Unsupported version: {config.get('version')!r}")
    formatters = {name: _formatter(each) for name, each in config.get("formatters", {}).items()}
    filters = {name: _made(each, logging.Filter) for name, each in config.get("filters", {}).items()}
    handlers = {}
    waiting = dict(config.get("handlers", {}))
    while waiting:
        ready = [name for name, each in waiting.items() if each.get("target") not in waiting]
        if not ready:
            raise ValueError(f"Unable to configure handlers {', '.join(map(repr, waiting))}")
        for name in ready:
            handlers[name] = _handler(name, dict(waiting.pop(name)), formatters, filters, handlers)
    for name, each in config.get("loggers", {}).items():
        _set_up(logging.getLogger(name), each, filters, handlers)
    if "root" in config:
        _set_up(logging.getLogger(), config["root"], filters, handlers)


def _formatter(config):
    if "()" in config:
        return _made(config, None)
    options = {"style": config["style"]} if "style" in config else {}
    kind = _resolved(config["class"]) if "class" in config else logging.Formatter
    return kind(config.get("format"), config.get("datefmt"), **options)


def _handler(name, config, formatters, filters, handlers):
    formatter, level, wanted = config.pop("formatter", None), config.pop("level", None), config.pop("filters", ())
    if "target" in config:
        config["target"] = handlers[config["target"]]
    handler = _made(config, None)
    handler.name = name
    if formatter is not None:
        if formatter not in formatters:
            raise ValueError(f"Unable to configure handler {name!r}: there is no formatter {formatter!r}")
        handler.setFormatter(formatters[formatter])
    if level is not None:
        handler.setLevel(level)
    for each in wanted:
        handler.addFilter(filters[each])
    return handler


def _set_up(logger, config, filters, handlers):
    if config.get("level") is not None:
        logger.setLevel(config["level"])
    if "propagate" in config:
        logger.propagate = bool(config["propagate"])
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    for name in config.get("handlers", ()):
        if name not in handlers:
            raise ValueError(f"Unable to configure logger {logger.name!r}: there is no handler {name!r}")
        logger.addHandler(handlers[name])
    for name in config.get("filters", ()):
        logger.addFilter(filters[name])


def _made(config, default):
    config = {key: _value(value) for key, value in config.items()}
    kind = config.pop("()", None) or config.pop("class", None) or default
    return (_resolved(kind) if isinstance(kind, str) else kind)(**config)


def _value(value):
    return getattr(sys, _STREAMS[value]) if isinstance(value, str) and value in _STREAMS else value


def _resolved(name):
    """Return the class of a dotted name."""
    module, _, last = name.removeprefix("ext://").rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except (ImportError, AttributeError):
        raise ValueError(f"Cannot resolve {name!r}") from None


def fileConfig(*_arguments, **_keywords):
    """Raise NotImplementedError."""
    raise NotImplementedError("fileConfig is not available here; use dictConfig with a dictionary")
