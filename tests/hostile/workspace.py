"""Files that servers of a run need: a temporary directory, certificates, rules of access."""
import shutil
import tempfile


class Workspace:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="softlookup-hostile-")

    def close(self):
        shutil.rmtree(self.folder)
