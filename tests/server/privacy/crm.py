"""The invented customers of the upstream server `tests/data/upstreams/crm.py`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

UPSTREAM = Path(__file__).parents[2] / "data" / "upstreams" / "crm.py"


def customers(count: int) -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("crm_upstream", UPSTREAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: list[dict[str, Any]] = module.customers(count)
    return made
