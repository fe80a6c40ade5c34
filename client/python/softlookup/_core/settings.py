"""Where a client connects to, and how: addresses, credentials, options of gRPC."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import List, Mapping, Optional, Tuple, Union

from softlookup._core.arrays import invalid
from softlookup._core.call import check_seconds
from softlookup._core.retry import Retry

_FILE_BYTES_MAX = 1 << 20
_TOKEN_BYTES_MAX = 4096  # A server accepts 8 KiB of metadata in a call.
DEFAULT_ADDRESS = "127.0.0.1:7471"
Option = Tuple[str, Union[int, str]]


@dataclass(frozen=True)
class Settings:
    """All that softlookup.connect() is given, read and checked.

    address         Of one server, or of several, with commas between them.
    """

    address: str
    deadline: float = 10.0
    retry: Retry = Retry()
    message_bytes_max: int = 64 << 20
    tls_ca: Optional[bytes] = field(default=None, repr=False)
    tls_certificate: Optional[bytes] = field(default=None, repr=False)
    tls_key: Optional[bytes] = field(default=None, repr=False)
    token: Optional[str] = field(default=None, repr=False)

    @property
    def addresses(self) -> Tuple[str, ...]:
        """The address of each server, in the order in which they are named."""
        return split_servers(self.address)

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.tls_ca is not None or self.tls_certificate is not None

    @property
    def metadata(self) -> Tuple[Tuple[str, str], ...]:
        """What is sent with every call."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def channel_options(self) -> List[Option]:
        """The options of gRPC's channels, which are those of the C++ client."""
        return [
            ("grpc.max_send_message_length", self.message_bytes_max),
            ("grpc.max_receive_message_length", self.message_bytes_max),
            ("grpc.keepalive_time_ms", 300_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            # Retries begin after some 20 ms, and fail while the channel waits to reconnect.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
            # A proxy of the environment would intercept even calls to this machine.
            ("grpc.enable_http_proxy", 0),
            # Retries are this client's: it knows which calls may be repeated.
            ("grpc.enable_retries", 0),
        ]


def load_settings(
    address: Optional[str] = None,
    tls_ca: Optional[str] = None,
    tls_certificate: Optional[str] = None,
    tls_key: Optional[str] = None,
    token_file: Optional[str] = None,
    deadline: float = 10.0,
    retry: Optional[Retry] = None,
    message_bytes_max: int = 64 << 20,
    *,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Reads the files. What is None is taken from the environment, as the tool `softlookup` does.

    InvalidArgumentError for an argument, or a file, that cannot be used.
    """

    def given(value: Optional[str], variable: str) -> Optional[str]:
        return value if value is not None else environment.get(f"SOFTLOOKUP_{variable}") or None

    address = given(address, "SERVER") or DEFAULT_ADDRESS
    check_servers(address)
    check_seconds("deadline", deadline)
    if message_bytes_max < 1:
        raise invalid("message_bytes_max", "message_bytes_max must be at least 1")
    token = _read("token_file", given(token_file, "TOKEN_FILE"))
    certificate = _read("tls_certificate", given(tls_certificate, "TLS_CERTIFICATE"))
    key = _read("tls_key", given(tls_key, "TLS_KEY"))
    if (certificate is None) != (key is None):
        raise invalid("tls_key", "tls_certificate and tls_key go together")
    if key is not None and b"PRIVATE KEY-----" not in key:
        raise invalid("tls_key", "tls_key has no PEM private key")
    if key is not None and (b"ENCRYPTED PRIVATE KEY-----" in key or b"4,ENCRYPTED" in key):
        raise invalid("tls_key", "tls_key has an encrypted private key, which is not supported")
    ca = _read("tls_ca", given(tls_ca, "TLS_CA"))
    for name, pem in (("tls_ca", ca), ("tls_certificate", certificate)):
        if pem is not None and b"-----BEGIN CERTIFICATE-----" not in pem:
            raise invalid(name, f"{name} has no PEM certificate")
    return Settings(
        address,
        deadline,
        retry or Retry(),
        message_bytes_max,
        ca,
        certificate,
        key,
        None if token is None else _token(token),
    )


def split_servers(servers: str) -> Tuple[str, ...]:
    """The addresses in a text that has commas between them.

    What begins with unix:, ipv4: or ipv6: is one address: these names of gRPC can have commas.
    """
    if servers.startswith(("unix:", "ipv4:", "ipv6:")):
        return (servers,)
    return tuple(servers.split(","))


def check_servers(servers: str) -> None:
    """InvalidArgumentError unless each address in the text is one."""
    if not isinstance(servers, str):
        check_address(servers)
    for address in split_servers(servers):
        check_address(address, "" if address == servers else f" in {servers!r}")


def check_address(address: str, where: str = "") -> None:
    """InvalidArgumentError unless it is HOST:PORT, [IPV6]:PORT, or a target name of gRPC.

    `where` follows the address in the message.
    """
    text = address if isinstance(address, str) else ""
    if re.match(r"(dns|ipv4|ipv6|unix):.", text):
        return
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\s/:\[\]]+):(\d{1,5})", text)
    if found is None or not 1 <= int(found[2]) <= 65535:
        raise invalid(
            "address",
            f"the server address {address!r}{where} is not HOST:PORT or [IPV6]:PORT, nor a name of gRPC "
            "that begins with dns:, unix:, ipv4: or ipv6:",
        )


def _read(field_name: str, path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise invalid(field_name, f"{field_name}: {path}: {error.strerror}") from None
    if len(data) > _FILE_BYTES_MAX:
        raise invalid(field_name, f"{field_name}: {path} is larger than 1 MiB")
    if not data.strip():
        raise invalid(field_name, f"{field_name}: {path} is empty")
    return data.strip()


def _token(data: bytes) -> str:
    if len(data) > _TOKEN_BYTES_MAX:
        raise invalid("token_file", "the token is longer than 4096 characters")
    if not all(0x21 <= byte <= 0x7E for byte in data):
        raise invalid("token_file", "a token is printable ASCII without white space inside")
    return data.decode("ascii")
