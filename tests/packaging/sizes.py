"""Prints how large the packages beside the interpreter are that runs this, and what needs each of them."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.metadata import Distribution, distributions


def bytes_of(distribution: Distribution) -> int:
    """Return the size of a distribution's files that are there, without what Python compiled of them."""
    files = [each.locate() for each in distribution.files or () if each.suffix != ".pyc"]
    return sum(each.stat().st_size for each in files if each.is_file())


def main() -> None:
    found = {re.sub(r"[-_.]+", "-", each.name).lower(): each for each in distributions()}
    wanted_by: defaultdict[str, set[str]] = defaultdict(set)
    for name, each in found.items():
        for line in each.requires or ():
            if "extra ==" not in line:
                needed = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower()
                wanted_by[needed].add(name)
    sizes = sorted(((bytes_of(each), name) for name, each in found.items()), reverse=True)
    print("| package | MB | is needed by |\n| --- | --- | --- |")
    for size, name in sizes:
        if size >= 1_000_000:
            print(f"| {name} {found[name].version} | {size / 1e6:.1f} | {', '.join(sorted(wanted_by[name]))} |")
    small = [size for size, _ in sizes if size < 1_000_000]
    print(f"| {len(small)} others | {sum(small) / 1e6:.1f} | |")
    print(f"| **{len(sizes)} packages** | **{sum(size for size, _ in sizes) / 1e6:.1f}** | |")


if __name__ == "__main__":
    main()
