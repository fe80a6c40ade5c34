"""The modules that hold cases. To load one registers its cases, in the order of this list."""
import importlib

MODULES = ["wire", "messages", "fields", "names", "counts", "streams", "limits", "floods", "slow", "admin",
           "identity", "mix"]


def load():
    for module in MODULES:
        importlib.import_module(module)
