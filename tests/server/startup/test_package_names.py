"""Which distribution brings a module, and what is said where that is not known."""

from __future__ import annotations

from importlib.metadata import packages_distributions
from types import SimpleNamespace

import pytest

from sealab.sandbox.job import Isolation, Job, Refusal
from sealab.server.runs.placement.escalation import _obstacle
from sealab.server.settings import Settings
from sealab.server.startup.package_names import _OF_ANOTHER_NAME, distribution_of, misnamed

from ..command_line import sealab


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("yaml", "PyYAML"),
        ("sklearn.linear_model", "scikit-learn"),
        ("cv2", "opencv-python"),
        ("PIL.Image", "pillow"),
        ("numpy", "numpy"),
        ("more_itertools", "more-itertools"),
        ("httpx2", "httpx2"),  # it is installed here
        ("no_such_module", None),
        ("requests_html", None),
    ],
)
def test_a_module_is_brought_by_its_own_distribution_or_by_none_that_is_known(
    module: str, distribution: str | None
) -> None:
    assert distribution_of(module) == distribution


def test_the_table_agrees_with_the_metadata_of_what_is_installed() -> None:
    installed = packages_distributions()
    compared = {module: installed[module] for module in _OF_ANOTHER_NAME if module in installed}
    assert "yaml" in compared
    for module, brought_by in compared.items():
        assert _OF_ANOTHER_NAME[module].lower() in [each.lower() for each in brought_by], module


@pytest.mark.parametrize("command", [("packages", "check"), ("container", "build", "--with")])
def test_the_name_of_a_module_is_not_taken_for_a_distribution(command: tuple[str, ...], tmp_path) -> None:
    ended = sealab(*command, "sklearn", SEALAB_HOME=str(tmp_path))
    assert ended.returncode == 2
    assert "sklearn is a module of scikit-learn. Write `" in ended.stderr
    assert misnamed("scikit-learn") is None


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("sklearn", "`sealab container build --with scikit-learn` makes one"),
        ("no_such_module", ""),
        ("requests", ""),
        ("boto3.session", ""),
    ],
)
def test_a_hint_names_no_package_that_is_unknown_or_that_wants_a_network(module: str, said: str) -> None:
    offer = SimpleNamespace(missing={Isolation.CONTAINER: "There is no image."}, image=None)
    executor = SimpleNamespace(settings=Settings(), offer=offer)
    obstacle = _obstacle(executor, Job("1", session="s"), Refusal(module))  # type: ignore[arg-type]
    assert obstacle is not None
    assert said in obstacle
    assert "--with" not in obstacle or said
