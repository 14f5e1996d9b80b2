"""`importlib.metadata` as guest code: no package tells of itself here."""

__all__ = ["PackageNotFoundError", "distributions", "entry_points", "requires", "version"]


class PackageNotFoundError(ModuleNotFoundError):
    """A package that is not installed, or that tells nothing of itself."""

    def __str__(self):
        return f"No package metadata was found for {self.name}"

    @property
    def name(self):
        return self.args[0]


def version(distribution_name):
    """Raise PackageNotFoundError."""
    raise PackageNotFoundError(distribution_name)


metadata = files = requires = distribution = version


def distributions(**kwargs):
    return []


def entry_points(**params):
    return []


def packages_distributions():
    return {}
