"""What servers of a run need: a temporary directory, certificates, rules of access."""
import functools
import hashlib
import json
import os
import re
import secrets
import shutil
import ssl
import subprocess
import tempfile

from cases import Access

# Who may do what, where: {identity: (role, stores, limits)}. The suite's stores are in known/.
IDENTITIES = {
    "read": ("read", "known/*", {}),
    "write": ("write", "known/*", {}),
    "manage": ("manage", "known/*", {}),
    "admin": ("admin", "*", {}),
    "read elsewhere": ("read", "other/*", {}),
    "manage elsewhere": ("manage", "other/*", {}),
    "few requests": ("read", "few-requests/*", {"requests_per_second": 5}),
    "few rows": ("read", "few-rows/*", {"rows_per_second": 10}),
    "few stores": ("manage", "few-stores/*", {"stores": 2}),
    "few bytes": ("manage", "few-bytes/*", {"store_bytes": 1 << 20}),
}
# Who is known by a certificate's name, without a token.
CERTIFICATES = {"reader.acme": ("read", "known/*")}


class Workspace:
    def __init__(self, help_text, sanitized=False):
        self.folder = tempfile.mkdtemp(prefix="softlookup-hostile-")
        self.help = help_text
        # Short, but not so short that a sanitizer's server ends what a well-behaved client does.
        self.short_seconds = 5 if sanitized else 1
        self.tokens = {name: secrets.token_urlsafe(32) for name in IDENTITIES}

    def close(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        """Writes a whole file at once, as an operator should."""
        with open(self.path(name + ".new"), "w", encoding="ascii") as file:
            file.write(text)
        os.replace(self.path(name + ".new"), self.path(name))
        return self.path(name)

    def short_timeouts(self):
        """Every flag of the server that ends what takes too long, at `short_seconds`."""
        found = set(re.findall(r"^\s+(--[a-z-]+-timeout) FLOAT", self.help, re.MULTILINE))
        return tuple(f"{flag}={self.short_seconds}" for flag in sorted(found))

    # Rules of access.

    def rules(self):
        identities = []
        for name, (role, stores, limits) in IDENTITIES.items():
            identities.append({
                "name": name.replace(" ", "-"),
                "token_sha256": hashlib.sha256(self.tokens[name].encode()).hexdigest(),
                "grants": [{"role": role, "stores": stores}], "limits": limits})
        for name, (role, stores) in CERTIFICATES.items():
            identities.append({"name": name, "certificate_name": name,
                               "grants": [{"role": role, "stores": stores}]})
        return json.dumps({"identities": identities})

    @functools.cached_property
    def auth_file(self):
        return self.write("auth.json", self.rules())

    # Certificates.

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, timeout=60,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _authority(self, name):
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem",
                      "-out", f"{name}.pem")

    def _pair(self, name, common_name, authority, alternatives, days="2"):
        """NAME.pem and NAME-key.pem, signed by the authority."""
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", f"/CN={common_name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
        self.write(f"{name}.ext", f"subjectAltName={alternatives}\n")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
                      f"{authority}-key.pem", "-CAcreateserial", "-days", days, "-extfile",
                      f"{name}.ext", "-out", f"{name}.pem")

    @functools.cached_property
    def certificates(self):
        """Makes them all, once. Returns their folder."""
        self._authority("ca")
        self._authority("foreign-ca")
        self._pair("server", "localhost", "ca", "DNS:localhost,IP:127.0.0.1")
        self._pair("client", "nobody.acme", "ca", "DNS:nobody.acme")
        self._pair("reader", "reader.acme", "ca", "DNS:reader.acme")
        self._pair("expired", "reader.acme", "ca", "DNS:reader.acme", days="-1")
        self._pair("foreign", "reader.acme", "foreign-ca", "DNS:reader.acme")
        return self.folder

    def tls(self, certificate=None):
        """An ssl.SSLContext of a client that trusts the authority."""
        context = ssl.create_default_context(cafile=os.path.join(self.certificates, "ca.pem"))
        context.set_alpn_protocols(["h2"])
        if certificate:
            context.load_cert_chain(self.path(f"{certificate}.pem"), self.path(f"{certificate}-key.pem"))
        return context

    def access(self, transport, identity="admin", certificate="client"):
        """How an identity gets in over plaintext, tls or mutual."""
        if transport == "plaintext":
            return Access(token=self.tokens[identity])
        files = {"ca": os.path.join(self.certificates, "ca.pem")}
        if transport == "tls":
            return Access(tls=self.tls(), token=self.tokens[identity], **files)
        return Access(tls=self.tls(certificate), token=self.tokens[identity], **files,
                      certificate=self.path(f"{certificate}.pem"),
                      key=self.path(f"{certificate}-key.pem"))

    def flags(self, transport):
        """Those of a server that asks for an identity."""
        flags = (f"--auth={self.auth_file}",)
        if transport != "plaintext":
            folder = self.certificates
            flags += (f"--tls-certificate={folder}/server.pem", f"--tls-key={folder}/server-key.pem")
        if transport == "mutual":
            flags += (f"--tls-client-ca={folder}/ca.pem",)
        return flags
