"""Calls about stores: their settings, sizes and names; and backups."""

from __future__ import annotations

from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from softlookup._core import wire
from softlookup._core.attention import matrix_to, projection_to
from softlookup._core.arrays import invalid
from softlookup._core.call import ADMIN, SERVICE, Call, Calls, fill, hinted
from softlookup._core.errors import internal
from softlookup._core.results import Backup, Compacted, MemorySpec, Projection, Renamed, StoreInfo
from softlookup._core.words import MEMORY_KINDS, SCORES, STORAGES
from softlookup._proto.softlookup.admin.v1 import admin_pb2
from softlookup._proto.softlookup.v1 import store_pb2

_SERVING = 1  # grpc.health.v1.HealthCheckResponse.ServingStatus.
Page = Tuple[List[StoreInfo], str]


def create(
    name: str,
    key_dim: int,
    value_dim: int,
    num_heads: int,
    score: Optional[str],
    temperature: Optional[float],
    storage: Optional[str],
    memories: Sequence[MemorySpec],
    projection: Optional[Projection],
    labels: Optional[Mapping[str, str]],
    deadline: Optional[float],
) -> Calls[StoreInfo]:
    """CreateStore."""
    request = store_pb2.CreateStoreRequest()
    store = fill(
        request.store,
        name=name,
        key_dim=key_dim,
        value_dim=value_dim,
        num_heads=num_heads,
        score=SCORES.number("score", score),
        temperature=temperature,
        storage_type=STORAGES.number("storage", storage),
    )
    if isinstance(memories, (Mapping, MemorySpec)):
        text = f"memories is of type {type(memories).__name__}; it takes a list of MemorySpec"
        raise invalid("memories", text)
    for spec in memories:
        _memory_to(spec, store.memories.add())
    if projection is not None:
        projection_to(projection, store.projection)
    _labels_to(labels, store)
    call = _call("CreateStore", request, _store, deadline)
    hint = f"client.store({name!r}) is that one: info() shows it, update() changes settings"
    return hinted(call, "ALREADY_EXISTS", hint)


def get(name: str, deadline: Optional[float]) -> Call[StoreInfo]:
    """GetStore."""
    request = fill(store_pb2.GetStoreRequest(), name=name)
    return _call("GetStore", request, _store, deadline, safe=True)


def get_birth(name: str, deadline: Optional[float]) -> Call[Tuple[int, int]]:
    """When the store was made, in seconds and nanoseconds: another one of its name has another."""
    request = fill(store_pb2.GetStoreRequest(), name=name)

    def decode(data: bytes) -> Tuple[int, int]:
        time = wire.parse(store_pb2.Store, data).create_time
        return time.seconds, time.nanos

    return _call("GetStore", request, decode, deadline, safe=True)


def list_page(prefix: str, token: str, deadline: Optional[float]) -> Call[Page]:
    """One page of ListStores: its stores, and the token of the next page, empty on the last."""
    request = fill(store_pb2.ListStoresRequest(), prefix=prefix, page_token=token)

    def decode(data: bytes) -> Page:
        answer = wire.parse(store_pb2.ListStoresResponse, data)
        if token and answer.next_page_token == token:
            raise internal("the server sent the token of a page with that same page")
        return [store_info(each) for each in answer.stores], answer.next_page_token

    return _call("ListStores", request, decode, deadline, safe=True)


def update(
    name: str,
    score: Optional[str],
    temperature: Optional[float],
    labels: Optional[Mapping[str, str]],
    projection: Optional[Projection],
    deadline: Optional[float],
) -> Call[StoreInfo]:
    """UpdateStore, of the settings that are given."""
    request = store_pb2.UpdateStoreRequest()
    fill(
        request.store,
        name=name,
        score=SCORES.number("score", score),
        temperature=temperature,
    )
    _labels_to(labels, request.store)
    if projection is not None:
        projection_to(projection, request.store.projection)
    given = {
        "score": score,
        "temperature": temperature,
        "labels": labels,
        "projection": projection,
    }
    paths = [field for field, value in given.items() if value is not None]
    if not paths:
        raise invalid("update_mask", "update changes nothing: no setting is given")
    request.update_mask.paths.extend(paths)
    return _call("UpdateStore", request, _store, deadline)


def rename(store: str, name: str, replace: bool, deadline: Optional[float]) -> Calls[Renamed]:
    """RenameStore."""
    request = fill(store_pb2.RenameStoreRequest(), store=store, new_name=name, replace=replace)

    def decode(data: bytes) -> Renamed:
        answer = wire.parse(store_pb2.RenameStoreResponse, data)
        return Renamed(store_info(answer.store), answer.HasField("replaced"))

    call = _call("RenameStore", request, decode, deadline)
    return hinted(call, "ALREADY_EXISTS", "replace=True deletes it in the same step")


def compact(name: str, end_memories: bool, deadline: Optional[float]) -> Call[Compacted]:
    """CompactStore."""
    request = fill(store_pb2.CompactStoreRequest(), name=name, end_memories=end_memories)

    def decode(data: bytes) -> Compacted:
        answer = wire.parse(store_pb2.CompactStoreResponse, data)
        return Compacted(store_info(answer.store), answer.dropped_rows, answer.compacted_blocks)

    return _call("CompactStore", request, decode, deadline)


def delete(name: str, deadline: Optional[float]) -> Call[None]:
    """DeleteStore."""
    request = fill(store_pb2.DeleteStoreRequest(), name=name)
    return _call("DeleteStore", request, lambda data: None, deadline)


def create_backup(name: str, deadline: Optional[float]) -> Call[Backup]:
    """CreateBackup."""
    request = fill(admin_pb2.CreateBackupRequest(), name=name)
    encoded = request.SerializeToString()
    return Call(
        ADMIN + "CreateBackup",
        encoded,
        lambda data: _backup(wire.parse(admin_pb2.Backup, data)),
        deadline=deadline,
    )


def list_backups(deadline: Optional[float]) -> Call[List[Backup]]:
    """ListBackups."""

    def decode(data: bytes) -> List[Backup]:
        return [_backup(each) for each in wire.parse(admin_pb2.ListBackupsResponse, data).backups]

    return Call(ADMIN + "ListBackups", b"", decode, safe=True, deadline=deadline)


def restore(
    backup: str, store: str, name: str, keep_ranges: bool, deadline: Optional[float]
) -> Call[StoreInfo]:
    """RestoreStore."""
    request = fill(
        admin_pb2.RestoreStoreRequest(),
        backup=backup,
        store=store,
        name=name,
        keep_ranges=keep_ranges,
    )
    encoded = request.SerializeToString()

    def decode(data: bytes) -> StoreInfo:
        return store_info(wire.parse(admin_pb2.RestoreStoreResponse, data).store)

    return Call(ADMIN + "RestoreStore", encoded, decode, deadline=deadline)


def health(service: str, deadline: Optional[float]) -> Call[bool]:
    """Whether the server, or one service of it, takes calls."""

    def decode(data: bytes) -> bool:
        return (1, _SERVING) in list(wire.fields(memoryview(data)))

    request = wire.text_field(1, service)
    return Call("/grpc.health.v1.Health/Check", request, decode, safe=True, deadline=deadline)


def store_info(message: Any) -> StoreInfo:
    """Of a Store message."""
    projection = None
    if message.HasField("projection"):
        parts = [_matrix(getattr(message.projection, name)) for name in ("query", "key", "value")]
        projection = Projection(*parts)
    return StoreInfo(
        name=message.name,
        key_dim=message.key_dim,
        value_dim=message.value_dim,
        num_heads=message.num_heads or 1,
        score=SCORES.word(message.score) or "scaled_dot",
        temperature=message.temperature if message.HasField("temperature") else 1.0,
        storage=STORAGES.word(message.storage_type) or "float32",
        memories=tuple(_memory_spec(each) for each in message.memories),
        labels=MappingProxyType(dict(message.labels)),
        revision=message.revision,
        row_count=message.row_count,
        live_row_count=message.live_row_count,
        byte_size=message.byte_size,
        create_time=_time(message),
        projection=projection,
        damage=message.damage,
    )


def memory_hint(memories: Optional[Sequence[MemorySpec]]) -> str:
    """What helps who names a memory that the store does not keep; empty if `memories` is None."""
    if memories is None:
        return ""
    return "it keeps " + ", ".join(["average", *(spec.name for spec in memories)])


def _call(
    method: str, request: Any, decode: Any, deadline: Optional[float], safe: bool = False
) -> Call[Any]:
    return Call(SERVICE + method, request.SerializeToString(), decode, safe, deadline)


def _store(data: bytes) -> StoreInfo:
    return store_info(wire.parse(store_pb2.Store, data))


def _matrix(message: Any) -> Any:
    # Without elements where the answer leaves them out.
    if not message.data and not message.values:
        return None
    return wire.decode_matrix(memoryview(message.SerializeToString()))


def _memory_spec(message: Any) -> MemorySpec:
    gate = _matrix(message.gate) if message.HasField("gate") else None
    kind = MEMORY_KINDS.word(message.kind)
    return MemorySpec(message.name, kind, message.decay or None, None if gate is None else gate[0])


def _memory_to(spec: Any, message: Any) -> None:
    """Fills a MemorySpec message."""
    if not isinstance(spec, MemorySpec):
        text = f"memories has an element of type {type(spec).__name__}, not MemorySpec"
        raise invalid("memories", text)
    fill(
        message,
        name=spec.name,
        kind=MEMORY_KINDS.number("memories.kind", spec.kind),
        decay=spec.decay,
    )
    word = MEMORY_KINDS.word(message.kind)
    if word.startswith("decayed") and spec.decay is None:
        text = "is missing: give one in (0, 1), such as decay=0.9"
        raise invalid("memories.decay", f"the decay of {spec.name}, of the kind {word}, {text}")
    if word.startswith("gated") and spec.gate is None:
        text = "is missing: give key_dim + 1 numbers, the bias first"
        raise invalid("memories.gate", f"the gate of {spec.name}, of the kind {word}, {text}")
    if spec.gate is not None:
        matrix_to("memories.gate", spec.gate, message.gate, one_row=True)


def _labels_to(labels: Optional[Mapping[str, str]], store: Any) -> None:
    if not isinstance(labels or {}, Mapping):
        raise invalid("labels", f"a store's labels are a dict of texts, not {labels!r:.80}")
    for key, value in (labels or {}).items():
        try:
            store.labels[key] = value
        except (TypeError, ValueError) as error:
            raise invalid("labels", f"labels cannot have {key!r:.80}: {error}") from None


def _time(message: Any) -> Optional[datetime]:
    if not message.HasField("create_time"):
        return None
    try:
        seconds = message.create_time.seconds + message.create_time.nanos / 1e9
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise internal("the server's answer has a time that is none") from None


def _backup(message: Any) -> Backup:
    return Backup(message.name, _time(message), message.byte_size)
