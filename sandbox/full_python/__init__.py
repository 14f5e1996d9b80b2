"""CPython without a dialect, for isolations whose walls are the kernel's alone."""
