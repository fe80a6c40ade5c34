"""Eight kinds of hostile cases at once. Each was judged alone; together, only the server is."""
import random

import cases

AT_ONCE = 8
ROUNDS = 4


def shareable():
    """Cases that need no server of their own and send little."""
    return [case for case in cases.CASES
            if not case.flags and not case.fresh and not case.needs and case.megabytes <= 20]


def run_beside_others(ctx, case):
    """Runs a case of which only what it does counts, not what it finds."""
    inner = cases.Context(ctx.server, ctx.access, ctx.scale, 10, ctx.workspace)
    inner.meter = ctx.meter
    try:
        case.run(inner)
    except Exception:
        pass  # The others may have taken what it needs; the judge says whether that is right.
    finally:
        inner.close()


def add_mix(number, candidates):
    def run(ctx):
        chosen = random.Random(number)

        def several():
            for _ in range(ROUNDS):
                if ctx.server.alive:
                    run_beside_others(ctx, chosen.choice(candidates))
        ctx.in_threads([several] * AT_ONCE)
    cases.add_case(f"mix/{AT_ONCE * ROUNDS} cases, {AT_ONCE} at a time, choice {number}", run,
                   short=number == 1, seconds=60, megabytes=150, memory_megabytes=128)


_candidates = shareable()
for _number in range(1, 7):
    add_mix(_number, _candidates)
