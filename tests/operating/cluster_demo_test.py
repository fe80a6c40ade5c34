#!/usr/bin/python3
"""Does scripts/cluster-demo show what it says, and leave nothing behind?  cluster_demo_test.py SERVER ROOT TOOL

Runs it as it is; interrupts it in the middle; and gives it a tool that loses a row on the way back, which it
must find. Needs etcd-server.
"""
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import unittest

import page_terminal

SECONDS = 240  # For a whole run, which takes half a minute on an idle machine.
KILLED_SECONDS = 5  # For the end of a process that was killed. All that the demo starts would live longer.


class ClusterDemoTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.temporary = os.path.join(self.directory, "tmp")
        self.programs = os.path.join(self.directory, "bin")
        for path in (self.temporary, self.programs):
            os.mkdir(path)
        os.symlink(SERVER, os.path.join(self.programs, "softlookup-server"))
        self.tool = os.path.join(self.programs, "softlookup")
        self.addCleanup(page_terminal.end_children)
        self.before = page_terminal.children()

    def start(self):
        return subprocess.Popen([os.path.join(ROOT, "scripts/cluster-demo"), self.programs], text=True,
                                env={**os.environ, "TMPDIR": self.temporary}, start_new_session=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def expect_nothing_left(self):
        self.assertEqual(os.listdir(self.temporary), [])
        # What a writer has started is killed with it, and is a child of this process then.
        for pid in page_terminal.children() - self.before:
            end = os.pidfd_open(pid)
            self.addCleanup(os.close, end)
            if select.select([end], [], [], KILLED_SECONDS)[0]:
                os.waitpid(pid, 0)
        self.assertEqual(page_terminal.children(), self.before)

    def test_it_kills_the_primary_and_finds_every_row(self):
        os.symlink(TOOL, self.tool)
        demo = self.start()
        out, err = demo.communicate(timeout=SECONDS)
        self.assertEqual((demo.returncode, err), (0, ""), out)
        killed = re.search(r"has killed the primary, (n\d), with kill -9", out)[1]
        self.assertEqual(re.search(r"s  (n\d) is the primary", out)[1] == killed, False)
        rows = re.search(r"the writers have ended: (\d+) rows are acknowledged", out)[1]
        self.assertGreaterEqual(int(rows), 3 * 1500)
        sums = re.findall(rf"s  (sent|n1|n2|n3|router): +{rows} rows, SHA-256 (\w{{16}})$", out, re.MULTILINE)
        self.assertEqual([name for name, _ in sums], ["sent", "n1", "n2", "n3", "router"])
        self.assertEqual(len({one for _, one in sums}), 1)
        self.assertIn("every acknowledged row is there once, on every node", out)
        self.expect_nothing_left()

    def test_an_interrupt_ends_all_that_it_has_started(self):
        os.symlink(TOOL, self.tool)
        demo = self.start()
        out = ""
        while "append to a store" not in out:
            line = demo.stdout.readline()
            self.assertNotEqual(line, "", out)
            out += line
        self.assertTrue(os.listdir(self.temporary))
        os.killpg(demo.pid, signal.SIGINT)  # As Ctrl-C does.
        demo.communicate(timeout=SECONDS)
        self.assertEqual(demo.returncode, 130)
        self.expect_nothing_left()

    def test_a_row_that_is_lost_fails_it(self):
        with open(self.tool, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/bash\nif [[ " $* " == *" rows demo "* ]]; then {TOOL} "$@" | sed 5d; else exec {TOOL} "$@"; fi\n')
        os.chmod(self.tool, 0o755)
        demo = self.start()
        out, err = demo.communicate(timeout=SECONDS)
        self.assertEqual(demo.returncode, 1, out)
        self.assertIn("n1 has other rows than were sent", err)
        self.assertNotIn("every acknowledged row", out)
        self.expect_nothing_left()


if __name__ == "__main__":
    SERVER, ROOT, TOOL = sys.argv[1:4]
    page_terminal.adopt_orphans()
    unittest.main(argv=sys.argv[:1])
