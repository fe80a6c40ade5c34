#!/usr/bin/python3
"""Do the types of the package tell right programs from wrong ones?  typing_test.py SERVER ROOT TOOL"""
import os
import sys

from installed import SITE, InstalledTest, run
from subject import ROOT, main

TYPED_PROGRAM = """
import asyncio
from typing import List

import numpy as np

import softlookup as sl
import softlookup.aio
import softlookup.testing


def ask(client: sl.Client) -> float:
    store = client.create_store("s", key_dim=2, value_dim=1, memories=[sl.MemorySpec("m", "average")])
    receipt: sl.Receipt = store.append(np.zeros((1, 2)), [[1.0]], labels=["a"])
    with store.writer("w") as writer:
        writer.append([[1, 2]], [[3]])
    answer = store.lookup([1.0, 2.0], where=sl.rows(last=1), weights="all", min_revision=receipt.revision)
    ends: List[int] = [memory.end for memory in store.watch()]
    for page in store.rows():
        print([row.labels for row in page], ends)
    try:
        store.info()
    except sl.NotFoundError as error:
        print(error.metadata["store"])
    return float(answer.merge(sl.attend([1, 2], [[1, 2]], [[1]])).entropy[0])


async def ask_again() -> None:
    async with softlookup.aio.connect("localhost:7471") as client:
        answer: sl.Answer = await client.store("s").lookup([1.0, 2.0])
        async for page in client.store("s").rows():
            print(len(page), answer.values.shape)


with softlookup.testing.local_server() as server, server.connect() as connected:
    print(ask(connected))
    asyncio.run(ask_again())
"""
WRONG_PROGRAM = """
import softlookup as sl

sl.connect().store("s").lookup([1.0], wehre=sl.rows(last=1))
sl.connect().store("s").lookup([1.0], where="last")
"""


class TypingTest(InstalledTest):
    def test_a_typed_program_passes_mypy_and_a_wrong_one_does_not(self):
        mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.work / "cache"]
        code, output = run(*mypy, "--version")
        if code != 0:
            self.skipTest("mypy is not there; scripts/install-packages --test")
        config = ROOT / "client/python/pyproject.toml"
        self.expect(*mypy, "--config-file", config, SITE / "softlookup", cwd=self.work)
        (self.work / "right.py").write_text(TYPED_PROGRAM)
        (self.work / "wrong.py").write_text(WRONG_PROGRAM)
        user = [*mypy, "--python-executable", self.python, "--config-file", os.devnull]
        self.expect(*user, "right.py", cwd=self.work, env=self.clean)
        code, output = run(*user, "wrong.py", cwd=self.work, env=self.clean)
        self.assertIn('Unexpected keyword argument "wehre"', output)
        self.assertIn('has incompatible type "str"', output)


if __name__ == "__main__":
    main()
