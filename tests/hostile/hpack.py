"""Header compression of HTTP/2 (RFC 7541), as much as a hostile client needs.

Headers are sent as literals without indexing and without Huffman coding, so that a test says every
byte. What the server sends is decoded in full: static and dynamic table, Huffman strings.
"""

STATIC_TABLE = [("", "")] + [
    tuple(entry.split("|")) for entry in (
        ":authority| :method|GET :method|POST :path|/ :path|/index.html :scheme|http :scheme|https "
        ":status|200 :status|204 :status|206 :status|304 :status|400 :status|404 :status|500 "
        "accept-charset| accept-encoding| accept-language| accept-ranges| accept| "
        "access-control-allow-origin| age| allow| authorization| cache-control| "
        "content-disposition| content-encoding| content-language| content-length| "
        "content-location| content-range| content-type| cookie| date| etag| expect| expires| from| "
        "host| if-match| if-modified-since| if-none-match| if-range| if-unmodified-since| "
        "last-modified| link| location| max-forwards| proxy-authenticate| proxy-authorization| "
        "range| referer| refresh| retry-after| server| set-cookie| strict-transport-security| "
        "transfer-encoding| user-agent| vary| via| www-authenticate|"
    ).split(" ")]
STATIC_TABLE[16] = ("accept-encoding", "gzip, deflate")  # The one value with a space in it.

# Bits of the Huffman code of each byte, and of the end of a string. The code is canonical: these
# lengths are all of it.
HUFFMAN_LENGTHS = [int(bits) for bits in """
13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10
13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6
15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28
20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24
22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23
26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27
20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26
30""".split()]
END_OF_STRING = 256


def huffman_codes():
    """{(bits, code): byte}, as RFC 7541, appendix B."""
    codes, code, last_bits = {}, 0, 0
    for bits, symbol in sorted((bits, symbol) for symbol, bits in enumerate(HUFFMAN_LENGTHS)):
        code <<= bits - last_bits
        codes[bits, code] = symbol
        code, last_bits = code + 1, bits
    return codes


HUFFMAN_CODES = huffman_codes()


def decode_huffman(data):
    out, code, bits = bytearray(), 0, 0
    for byte in data:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | byte >> shift & 1, bits + 1
            symbol = HUFFMAN_CODES.get((bits, code)) if bits >= 5 else None
            if symbol is not None:
                if symbol == END_OF_STRING:
                    raise ValueError("a Huffman string has an end in it")
                out.append(symbol)
                code, bits = 0, 0
    return bytes(out)


def encode_integer(value, prefix_bits, first_byte=0):
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first_byte | value])
    out, value = bytearray([first_byte | limit]), value - limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return encode_integer(len(data), 7) + data


def encode_headers(headers):
    """Literals without indexing, never Huffman coded; names and values are str or bytes."""
    return b"".join(b"\0" + encode_string(name) + encode_string(value) for name, value in headers)


class Decoder:
    """The header blocks of one connection, in order."""

    def __init__(self):
        self.table, self.table_bytes_max = [], 4096

    def decode(self, block):
        """[(name, value)] in bytes decoded as Latin-1, which loses nothing."""
        headers, at = [], 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = self._integer(block, at, 7)
                headers.append(self._entry(index))
            elif first & 0xE0 == 0x20:
                self.table_bytes_max, at = self._integer(block, at, 5)
                self._evict()
            else:
                indexed = bool(first & 0x40)
                index, at = self._integer(block, at, 6 if indexed else 4)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = self._string(block, at)
                value, at = self._string(block, at)
                headers.append((name, value))
                if indexed:
                    self.table.insert(0, (name, value))
                    self._evict()
        return headers

    def _entry(self, index):
        if index < len(STATIC_TABLE):
            return STATIC_TABLE[index]
        return self.table[index - len(STATIC_TABLE)]

    def _evict(self):
        while sum(len(name) + len(value) + 32 for name, value in self.table) > self.table_bytes_max:
            self.table.pop()

    @staticmethod
    def _integer(block, at, prefix_bits):
        limit = (1 << prefix_bits) - 1
        value, at = block[at] & limit, at + 1
        if value < limit:
            return value, at
        shift = 0
        while True:
            value, byte, at = value + ((block[at] & 127) << shift), block[at], at + 1
            shift += 7
            if byte < 128:
                return value, at

    def _string(self, block, at):
        coded = block[at] & 0x80
        size, at = self._integer(block, at, 7)
        data = bytes(block[at:at + size])
        return (decode_huffman(data) if coded else data).decode("latin-1"), at + size
