"""Messages that do not parse, or parse to what nobody meant, in every method."""
import random

import contract
import protobytes
from cases import ENDLESS_SECONDS, PATIENCE_SECONDS, PATIENT, add_case

NOT_FOUND_OR_INVALID = (contract.INVALID_ARGUMENT, contract.NOT_FOUND)
TOO_MANY = (contract.INVALID_ARGUMENT, contract.RESOURCE_EXHAUSTED)
SHORT_METHODS = ("Lookup", "StreamAppend", "CreateStore", "ListBackups")

# How an empty request ends, where it is not refused as having no store.
EMPTY_REQUESTS = {
    "ListStores": contract.OK,
    "Attend": (contract.OK, contract.INVALID_ARGUMENT),
    "CreateBackup": contract.FAILED_PRECONDITION,
    "ListBackups": contract.FAILED_PRECONDITION,
    "RestoreStore": contract.FAILED_PRECONDITION,
    "GetGroup": contract.FAILED_PRECONDITION,
    "AddReplica": contract.FAILED_PRECONDITION,
    "RemoveReplica": contract.FAILED_PRECONDITION,
    "MovePrimary": contract.FAILED_PRECONDITION,
    "SplitStore": contract.FAILED_PRECONDITION,
    "MoveRange": contract.FAILED_PRECONDITION,
    "GetRanges": contract.FAILED_PRECONDITION,
}


def expected_code(method):
    # A watch has no end but its deadline, of which its own side may hear first.
    return ((contract.DEADLINE_EXCEEDED, contract.CANCELLED) if method.endless else
            (contract.OK, contract.ALREADY_EXISTS) if method.name == "CreateStore" else method.code)


def finished(ctx, method, message):
    """The end of a call of which the message may be anything: it may be served, refused or wait."""
    return ctx.call(method.name, message,
                    deadline=ENDLESS_SECONDS if method.endless else PATIENCE_SECONDS)


def add_unparsable(method, name, junk):
    def run(ctx):
        ctx.expect(ctx.call(method.name, method.valid + junk), contract.INVALID_ARGUMENT,
                   "MALFORMED_MESSAGE")
    add_case(f"messages/{method.name}: {name}", run,
             short=method.name in SHORT_METHODS and name in ("a varint cut", "a negative length"))


def add_unknown_fields(method):
    def run(ctx):
        for name, unknown in protobytes.UNKNOWN_TO_ALL:
            codes = expected_code(method)
            codes = (codes,) if isinstance(codes, int) else codes
            if name.startswith("ten thousand"):
                codes += TOO_MANY  # A server may bound what it throws away.
            outcome = ctx.call(method.name, method.valid + unknown,
                               deadline=ENDLESS_SECONDS if method.endless else PATIENT)
            ctx.expect(outcome, codes, what=name)
    add_case(f"messages/{method.name}: unknown fields are left out", run,
             short=method.name in SHORT_METHODS)


def wrong_wire_types(descriptor):
    """Every field of a message in every wire type, right and wrong."""
    for field in descriptor.fields:
        number = field.number
        for encoded in (protobytes.integer(number, 1), protobytes.integer(number, -1),
                        protobytes.double(number, float("nan")),
                        protobytes.tag(number, protobytes.FIXED32) + b"\xff\xff\xff\x7f",
                        protobytes.block(number, b""), protobytes.block(number, b"\x08\x01"),
                        protobytes.groups(number, 1)):
            yield field.name, encoded


def add_wrong_wire_types(method):
    def run(ctx):
        for name, encoded in wrong_wire_types(method.request().DESCRIPTOR):
            ctx.expect_ended(finished(ctx, method, encoded), f"{name} alone")
            ctx.expect_ended(finished(ctx, method, method.valid + encoded), f"{name} behind")
    add_case(f"messages/{method.name}: every field in every wire type", run,
             short=method.name == "Lookup", seconds=60)


def add_repetition(method):
    def run(ctx):
        for count in (2, 100, 3000):
            ctx.expect_ended(finished(ctx, method, method.valid * count), f"{count} times")
    add_case(f"messages/{method.name}: the request repeated in one message 3,000 times", run,
             short=method.name == "CreateStore")


def mutated(valid, random_source):
    """The message with a few bytes changed, cut, doubled or put in."""
    data = bytearray(valid)
    for _ in range(random_source.randint(1, 4)):
        at = random_source.randint(0, len(data))
        kind = random_source.randint(0, 3)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << random_source.randint(0, 7)
        elif kind == 1:
            del data[at:at + random_source.randint(1, 8)]
        elif kind == 2:
            data[at:at] = data[at:at + random_source.randint(1, 16)]
        else:
            data[at:at] = random_source.randbytes(random_source.randint(1, 8))
    return bytes(data)


def add_mutations(method):
    def run(ctx):
        random_source = random.Random(method.name)
        for i in range(60):
            message = mutated(method.valid, random_source)
            ctx.expect_ended(finished(ctx, method, message), f"mutation {i}, {message[:80].hex()}")
    add_case(f"messages/{method.name}: sixty mutations", run, seconds=60)


def add_empty(method):
    def run(ctx):
        code = EMPTY_REQUESTS.get(method.name, NOT_FOUND_OR_INVALID)
        outcome = ctx.call(method.name, b"")
        if method.name == "StreamLookup":
            ctx.expect(outcome, contract.OK)
            answer = contract.MESSAGES["LookupResponse"].FromString(outcome.messages[0])
            ctx.check(answer.error.code in NOT_FOUND_OR_INVALID, f"its error is {answer.error}")
        else:
            ctx.expect(outcome, code)
    add_case(f"messages/{method.name}: an empty request", run, short=method.name == "StreamLookup")


def string_paths(descriptor, path=()):
    """Paths of field numbers to every string in a message."""
    for field in descriptor.fields:
        here = (*path, field)
        if field.type == field.TYPE_STRING:
            yield here
        elif field.message_type is not None and len(path) < 4:
            yield from string_paths(field.message_type, here)


def nested(path, data):
    """The string at the end of a path of fields, as bytes."""
    for field in reversed(path):
        data = protobytes.block(field.number, data)
    return data


# What is no UTF-8: a lone byte, an overlong slash, half of a surrogate pair, one past the last.
NOT_UTF8 = (b"\xff", b"a\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")


def add_invalid_utf8(method, path):
    name = ".".join(field.name for field in path)

    def run(ctx):
        for data in NOT_UTF8:
            outcome = ctx.call(method.name, method.valid + nested(path, data))
            ctx.expect(outcome, contract.INVALID_ARGUMENT, "MALFORMED_MESSAGE", what=repr(data))
    add_case(f"messages/{method.name}: {name} is not UTF-8", run, short=method.name == "GetStore")


def add_all():
    for method in contract.METHODS.values():
        for name, junk in protobytes.UNPARSABLE:
            add_unparsable(method, name, junk)
        add_unknown_fields(method)
        add_wrong_wire_types(method)
        add_repetition(method)
        add_mutations(method)
        if method.name != "ListBackups":
            add_empty(method)
        for path in string_paths(method.request().DESCRIPTOR):
            add_invalid_utf8(method, path)


add_all()
