#!/usr/bin/python3
"""mutate.py finds the changes that matter, and no others."""
import sys
import unittest

sys.dont_write_bytecode = True

import mutate


def changes(line):
    return [(m.kind, m.after) for m in mutate.mutations_of("x.cc", line)]


class MutateTest(unittest.TestCase):
    def test_operators_and_constants(self):
        self.assertEqual(changes("  if (a < 3 && ok) {"), [
            ("comparison", "  if (a <= 3 && ok) {"), ("logic", "  if (a < 3 || ok) {"),
            ("constant", "  if (a < 4 && ok) {")])
        self.assertEqual(changes("  return a - b;"), [("sign", "  return a + b;")])
        self.assertEqual(changes("  bool is_large = false;"), [("constant", "  bool is_large = true;")])
        self.assertEqual(changes("  return std::min(a, b);"), [("min and max", "  return std::max(a, b);")])

    def test_dropped_lines(self):
        self.assertEqual(changes("  log_.Write(batch);"), [("dropped statement", "  ;")])
        self.assertEqual(changes("  file.Sync(path);"), [("dropped sync", "  ;")])
        self.assertEqual(changes("  count_ += rows;"), [("sign", "  count_ -= rows;"), ("dropped statement", "  ;")])
        self.assertEqual(changes("  if (done) return;"), [("dropped check", "  ;")])
        self.assertEqual(changes('  SOFTLOOKUP_RETURN_IF_ERROR(Check(a, "b"));'),
                         [("dropped check", '  (void)(Check(a, "b"));')])

    def test_what_is_left_alone(self):
        for line in ("// a < b", "#include <a>", '  return "a < 3";', "  SOFTLOOKUP_CHECK(a < b) << a;",
                     "  std::vector<int> a;", "class A;", "  HWY_UNROLL(16) for (;;) {}", "  int a() const;  // 3 < 4"):
            self.assertEqual(changes(line), [], line)

    def test_a_change_is_made_in_its_line_alone(self):
        text = "a = 1;\nb = 2;\n"
        mutation = mutate.mutations_of("x.cc", text)[1]
        self.assertEqual(mutate.apply(mutation, text), "a = 1;\nb = 3;\n")
        with self.assertRaises(ValueError):
            mutate.apply(mutation, "a = 1;\n")


if __name__ == "__main__":
    unittest.main()
