"""`python -m sealab.server` is `sealab`."""

import sys

from .cli import main

sys.exit(main())
