#!/usr/bin/python3
"""Which digit is it? A classifier that is not trained, as docs/python.md has it."""
import numpy as np
from sklearn.datasets import load_digits

import softlookup as sl

digits = load_digits()
images, classes = digits.data, np.eye(10)[digits.target]
with sl.connect() as client:
    store = client.create_store(
        "scans", key_dim=64, value_dim=10, score="cosine", temperature=0.01
    )
    try:
        store.append(images[:500], classes[:500])
        answer = store.lookup(images[500:])
    finally:
        store.delete()
right = (answer.values.argmax(axis=1) == digits.target[500:]).sum()
print(f"{right} of {len(answer)} right, {np.exp(answer.entropy).mean():.1f} rows share an answer")
