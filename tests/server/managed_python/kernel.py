"""Full Python is offered by itself only where the kernel can confine it: tests of that need such a machine."""

from __future__ import annotations

import pytest

from sealab.sandbox.confine import Level, probe

needs_kernel = pytest.mark.skipif(not probe().reaches(Level.KERNEL), reason="the level is below `kernel` here")
