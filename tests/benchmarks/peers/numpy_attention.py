#!/usr/bin/python3
"""softmax(Q K^T / sqrt(d)) V as two products of NumPy and a softmax between them.

  numpy_attention.py T N d [repetitions=7] [threads=2] [folder value_dim]

With a folder: softmax(Q K^T) V of its files queries.f32, keys.f32 and values.f32, which hold
little-endian float32. Prints a line as the other peers do: median milliseconds and GFLOP/s; and the
BLAS that NumPy has loaded, which decides them.
"""
import os
import re
import statistics
import sys
import time

arguments = sys.argv[1:]
if len(arguments) not in (3, 4, 5, 7):
    sys.exit("usage: numpy_attention.py T N d [repetitions] [threads] [folder value_dim]")
query_count, row_count, dim, repetitions, thread_count = (
    int(text) for text in [*arguments[:5], *["7", "2"][len(arguments[:5]) - 3:]])
folder, value_dim = (arguments[5], int(arguments[6])) if len(arguments) == 7 else (None, dim)
# A BLAS reads these once, when it is loaded.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(thread_count)

import numpy as np  # noqa: E402


def matrix(name, rows, cols):
    if folder is None:
        return np.random.default_rng(len(name)).standard_normal((rows, cols), np.float32)
    return np.fromfile(os.path.join(folder, f"{name}.f32"), "<f4").reshape(rows, cols)


def attend():
    logits = queries @ keys.T
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    return logits @ values / logits.sum(axis=1, keepdims=True)


def milliseconds():
    begin = time.perf_counter()
    attend()
    return 1e3 * (time.perf_counter() - begin)


queries = matrix("queries", query_count, dim)
keys, values = matrix("keys", row_count, dim), matrix("values", row_count, value_dim)
if folder is None:
    queries /= np.float32(np.sqrt(dim))
attend()
median_ms = statistics.median(milliseconds() for _ in range(repetitions))
with open("/proc/self/maps", encoding="utf-8") as maps:
    blas = sorted(set(re.findall(r"/([^/\s]*(?:blas|blis|mkl)[^/\s]*)$", maps.read(), re.MULTILINE)))
print(f"peer=numpy T={query_count} N={row_count} d={dim} threads={thread_count} median_ms={median_ms:.3f} "
      f"gflops={2e-6 * query_count * row_count * (dim + value_dim) / median_ms:.1f} "
      f"blas={','.join(blas) or 'unknown'}")
