"""The version of the package, which is that of the server it comes with."""

__version__ = "0.2.0"
