"""Protobuf by hand: what no library would encode."""
import struct

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = 0, 1, 2, 3, 4, 5


def varint(value):
    """Negative numbers take ten bytes, as in protobuf."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number, wire_type):
    return varint(number << 3 | wire_type)


def integer(number, value):
    return tag(number, VARINT) + varint(value)


def double(number, value):
    return tag(number, FIXED64) + struct.pack("<d", value)


def block(number, data):
    """A string, bytes, message or packed field."""
    data = data.encode() if isinstance(data, str) else data
    return tag(number, BYTES) + varint(len(data)) + data


def empty(number, count):
    """`count` empty strings or messages: two bytes each, for the sender."""
    return block(number, b"") * count


def groups(number, depth, closed=True):
    """Groups in groups."""
    return tag(number, GROUP) * depth + (tag(number, END_GROUP) * depth if closed else b"")


# What no parser takes, to stand behind a valid request. (name, bytes)
UNPARSABLE = [
    ("a field cut after its tag", tag(1, BYTES)),
    ("a field longer than the message", tag(1, BYTES) + varint(1000) + b"x"),
    ("a length of 2^31 - 1", tag(1, BYTES) + varint((1 << 31) - 1) + b"x"),
    ("a negative length", tag(1, BYTES) + varint(-1) + b"x"),
    ("a length of 2^63", tag(1, BYTES) + varint(1 << 63) + b"x"),
    ("an unknown field longer than the message", tag(1000, BYTES) + varint(1 << 30)),
    ("a varint cut", tag(1000, VARINT) + b"\xff"),
    ("a varint of eleven bytes", tag(1000, VARINT) + b"\x80" * 10 + b"\x01"),
    ("a tag of six bytes", b"\x88\x80\x80\x80\x80\x01" + b"\x01"),
    ("field number zero", b"\x00\x01"),
    ("wire type six", tag(1000, 6) + b"\x01"),
    ("wire type seven", tag(1000, 7) + b"\x01"),
    ("a fixed64 cut", tag(1000, FIXED64) + b"1234567"),
    ("a fixed32 cut", tag(1000, FIXED32) + b"123"),
    ("a group that does not end", tag(1000, GROUP) + integer(1, 1)),
    ("a group's end without its start", tag(1000, END_GROUP)),
    ("a group that another one's end ends", tag(1000, GROUP) + tag(1001, END_GROUP)),
    ("ten thousand groups in each other", groups(1000, 10_000)),
    ("ten thousand groups that do not end", groups(1000, 10_000, closed=False)),
]

# What a parser takes and nobody knows, to stand behind a valid request.
UNKNOWN_TO_ALL = [
    ("an unknown number", integer(1000, 7)),
    ("an unknown string", block(1000, "who knows")),
    ("an unknown field of the largest number", integer((1 << 29) - 1, 1)),
    ("an overlong varint of ten bytes", tag(1000, VARINT) + b"\x81" + b"\x80" * 8 + b"\x00"),
    ("fifty groups in each other", groups(1000, 50)),
    ("ten thousand unknown numbers", integer(1000, 7) * 10_000),
    ("ten thousand unknown fixed32", (tag(1001, FIXED32) + b"1234") * 10_000),
]
