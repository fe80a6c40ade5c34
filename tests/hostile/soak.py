"""Soak."""


def run(run, seconds):
    return 0
