"""Takes a picture of a page of the built site by a headless Chromium: `python -m tests.docs.site_picture PAGE FILE`."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium on the PATH. Install it, on Debian by `apt-get install chromium`.")
    # Chromium's own sandbox refuses to start as root.
    options = ["--headless", "--disable-gpu", "--hide-scrollbars", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    taken = ["--window-size=1400,860", f"--screenshot={chosen.file.resolve()}", chosen.page.resolve().as_uri()]
    subprocess.run([chromium, *options, *taken], check=True)


if __name__ == "__main__":
    main()
