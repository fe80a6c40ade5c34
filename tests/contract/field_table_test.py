#!/usr/bin/python3
"""Does tests/README.md name a test for every field of the wire contract?  field_table_test.py

Compares its tables with contract.json: every field of every message and every value of every enum
must have a row, whose tests must exist. What has none must say so: "not served yet". Needs the
standard library only.
"""
import json
import os
import re
import unittest

CONTRACT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contract.json")
TESTS = os.path.join(os.path.dirname(CONTRACT), "..")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows_of(readme):
    """(message, [field], cell with the tests), or the same of an enum and its values."""
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == 3 and re.fullmatch(r"[A-Z]\w*", cells[0]):
            yield cells[0], cells[1].split(", "), cells[2]


def wrong_with(readme, contract, source_of):
    """A line for everything wrong. source_of(file) is the text of an integration test, or None."""
    untested = {(owner, name)
                for part in ("messages", "enums")
                for owner, names in contract[part].items() for name in names}
    for owner, names, cell in rows_of(readme):
        untested -= {(owner, name) for name in names}
        tests = re.findall(r"`(\w+\.cc): (\w+)\.(\w+)`", cell)
        if not tests and "not served yet" not in cell:
            yield f"{owner}, {names[0]}: names no test"
        for file, suite, name in tests:
            source = source_of(file)
            if source is None:
                yield f"{owner}, {names[0]}: there is no {file}"
            elif not re.search(rf"\bTEST(_F|_P)?\({suite},\s*{name}\)", source):
                yield f"{owner}, {names[0]}: {file} has no {suite}.{name}"
    for owner, name in sorted(untested):
        yield f"{owner}.{name}: has no row"


def integration_test(file):
    path = os.path.join(TESTS, "integration", file)
    return read(path) if os.path.exists(path) else None


class FieldTableTest(unittest.TestCase):
    def test_every_field_has_a_test_that_exists(self):
        wrong = list(wrong_with(read(os.path.join(TESTS, "README.md")), json.loads(read(CONTRACT)),
                                integration_test))
        if wrong:
            self.fail("tests/README.md:\n" + "\n".join(wrong))

    def test_sees_what_is_wrong(self):
        contract = {"messages": {"M": {"a": "string", "b": "string"}}, "enums": {"E": ["E_X"]}}
        sources = {"m_test.cc": "TEST_F(S, Holds) {}\nTEST(S,\n     Breaks) {}"}
        good = ["| M | a | `m_test.cc: S.Holds` |", "| M | b | not served yet |",
                "| E | E_X | on a stream `m_test.cc: S.Breaks` |"]
        bad = {"M.b: has no row": [good[0], good[2]],
               "E.E_X: has no row": good[:2],
               "M, b: names no test": [good[0], "| M | b | S.Holds |", good[2]],
               "M, a: there is no n_test.cc": ["| M | a, b | `n_test.cc: S.Holds` |", good[2]],
               "M, a: m_test.cc has no S.Hold": ["| M | a, b | `m_test.cc: S.Hold` |", good[2]]}
        self.assertEqual(list(wrong_with("\n".join(good), contract, sources.get)), [])
        for message, rows in bad.items():
            self.assertEqual(list(wrong_with("\n".join(rows), contract, sources.get)), [message])


if __name__ == "__main__":
    unittest.main()
