"""Prints merge.json:  python3 merge_cases.py >merge.json

A part of a random case is attention over some rows of a small store, and `merged` is attention over
all of its rows: both by the definitions, in float64, without the formula that a client merges by.
Only of error_bound there is no other definition.
"""
import json
import math

import numpy as np

LOG_SUM_EXP_ERROR = 1e-5


def attention(logits, values, positions, temperature, ids, listed):
    """Attention of T queries over rows, by definition: logits [T, heads, N], values [N, columns].

    ids         Of each row, None for a row without one.
    listed      Positions of the rows to list, a list a query and head; None: no weights.
    """
    queries, heads, rows = logits.shape
    width = values.shape[1] // heads
    answer = {"values": np.zeros((queries, values.shape[1])), "log_sum_exp": [], "max_logit": [],
              "entropy": [], "counted_rows": [], "empty": []}
    lists = []
    for t in range(queries):
        for h in range(heads):
            z = logits[t, h]
            counts = z > -np.inf
            p, top, lse = np.zeros(rows), -math.inf, -math.inf
            if counts.any():
                top = z.max()
                powers = np.exp(z - top)
                total = math.fsum(powers)
                p, lse = powers / total, top + math.log(total)
            part = slice(h * width, (h + 1) * width)
            answer["values"][t, part] = [math.fsum(p * column) for column in values[:, part].T]
            # ln p is z - lse, which keeps the digits of a p that is nearly 1.
            terms = [-math.exp(each - top) / total * (each - top - math.log(total))
                     for each in z[counts]]
            answer["entropy"].append(math.fsum(terms))
            answer["log_sum_exp"].append(lse)
            answer["max_logit"].append(top)
            answer["counted_rows"].append(int(counts.sum()))
            answer["empty"].append(not counts.any())
            if listed is not None:
                chosen = [i for i in range(rows) if positions[i] in listed[t * heads + h]]
                lists.append({
                    "positions": [int(positions[i]) for i in chosen],
                    "ids": [ids[i] for i in chosen],
                    "weights": [p[i] for i in chosen],
                    "scores": [z[i] * temperature for i in chosen],
                    "remaining": math.fsum(p[i] for i in range(rows) if i not in chosen),
                })
    answer["values"] = answer["values"].tolist()
    if listed is not None:
        answer["weights"] = lists
    return answer


def bounds(parts):
    """error_bound of parts that are merged one after another: the last line is the definition."""
    lse, bound, error = (np.array(parts[0][name]) for name in
                         ("log_sum_exp", "error_bound", "log_sum_exp_error"))
    for part in parts[1:]:
        both = np.array([lse, part["log_sum_exp"]])
        top = np.where(both.max(axis=0) > -np.inf, both.max(axis=0), 0)
        powers = np.exp(both - top)
        total = powers.sum(axis=0)
        shares = powers / np.where(total > 0, total, 1)
        moved = np.where(shares.min(axis=0) > 0, (error + part["log_sum_exp_error"]) / 2, 0)
        bound = shares[0] * bound + shares[1] * np.array(part["error_bound"]) + moved
        with np.errstate(divide="ignore"):
            lse = top + np.log(total)
        error = max(error, part["log_sum_exp_error"])
    return bound.tolist()


def random_case(name, seed, bounds_of_rows, *, temperature=1.0, heads=1, queries=2, columns=2,
                shift=0.0, least=-math.inf, errors=None, listed=None, some_ids=False, order=None,
                values_size=1.0):
    """A case over the rows between each two of `bounds_of_rows`, which are its parts.

    shift       Added to the logits.
    least       Rows of a lower score do not count, head by head.
    listed      How many rows each part lists.
    order       In which order the parts are merged.
    """
    random = np.random.default_rng(seed)
    rows = bounds_of_rows[-1]
    keys, query = random.normal(size=(rows, heads, 4)), random.normal(size=(queries, heads, 4))
    values = random.normal(size=(rows, heads * columns)) * values_size
    scores = np.einsum("thd,nhd->thn", query, keys)
    logits = np.where(scores >= least, scores / temperature + shift, -np.inf)
    ids = [int(i) for i in random.integers(0, 2**53, rows)]
    if some_ids:
        ids = [each if i % 3 else None for i, each in enumerate(ids)]
    positions = np.arange(rows) * 3 + 5
    ranges = list(zip(bounds_of_rows, bounds_of_rows[1:]))
    ranges = [ranges[i] for i in order or range(len(ranges))]
    parts, chosen = [], [[] for _ in range(queries * heads)]
    for number, (a, b) in enumerate(ranges):
        of_part = None
        if listed is not None:
            of_part = []
            for i, z in enumerate(logits[:, :, a:b].reshape(queries * heads, b - a)):
                best = [j for j in np.lexsort((np.arange(b - a), -z)) if z[j] > -np.inf]
                of_part.append([int(positions[a + j]) for j in best[:listed]])
                chosen[i] += of_part[-1]
        part = attention(logits[:, :, a:b], values[a:b], positions[a:b], temperature, ids[a:b],
                         of_part)
        counted = np.array(part["counted_rows"])
        part["summed_rows"] = [int(n) for n in np.ceil(counted * random.uniform(size=len(counted)))]
        part["error_bound"] = (random.uniform(0, 1e-5, len(counted)) * (counted > 0)).tolist()
        part["log_sum_exp_error"] = errors[number] if errors else LOG_SUM_EXP_ERROR
        part.update(revision=7 + number, row_count=rows + number)
        for each in part.get("weights", ()):
            in_order(each)
        parts.append(part)
    merged = attention(logits, values, positions, temperature, ids,
                       chosen if listed is not None else None)
    for each in merged.get("weights", ()):
        each["parts"] = [next(number for number, (a, b) in enumerate(ranges)
                              if positions[a] <= position <= positions[b - 1])
                         for position in each["positions"]]
        in_order(each)
    merged["summed_rows"] = np.sum([part["summed_rows"] for part in parts], axis=0).tolist()
    merged["error_bound"] = bounds(parts)
    merged["log_sum_exp_error"] = max(part["log_sum_exp_error"] for part in parts)
    return {"name": name, "num_heads": heads, "columns": heads * columns,
            "largest": largest_of(parts), "parts": parts, "merged": merged}


def largest_of(parts):
    """The largest component in size, of numbers alone."""
    sizes = [abs(each) for part in parts for row in part["values"] for each in row]
    return max((size for size in sizes if math.isfinite(size)), default=0.0)


def in_order(one):
    """Sorts the rows of a list: by weight, descending, then by part, then by position."""
    count = len(one["positions"])
    order = sorted(range(count), key=lambda i: (-one["weights"][i], one.get("parts", [0] * count)[i],
                                                one["positions"][i]))
    for name, column in one.items():
        if isinstance(column, list):
            one[name] = [column[i] for i in order]


def part_of(values, lse, **changes):
    """A part as one writes it down."""
    count = len(lse)
    part = {"values": values, "log_sum_exp": lse, "max_logit": lse, "entropy": [0.0] * count,
            "counted_rows": [int(each > -math.inf) for each in lse],
            "summed_rows": [int(each > -math.inf) for each in lse],
            "error_bound": [0.0] * count, "empty": [each == -math.inf for each in lse],
            "log_sum_exp_error": 0.0}
    part.update(changes)
    return part


def case_of(name, parts, merged, heads=1):
    return {"name": name, "num_heads": heads, "columns": max(
        (len(row) for row in parts[0]["values"]), default=2), "largest": largest_of(parts),
            "parts": parts, **merged}


def written_cases():
    inf, nan, ln2 = math.inf, math.nan, math.log(2)
    none = part_of([[0.0, 0.0]], [-inf])
    some = part_of([[1.0, -2.0]], [3.0], max_logit=[2.5], entropy=[0.5], counted_rows=[4],
                   summed_rows=[2], error_bound=[0.25], log_sum_exp_error=1e-5)
    # As a client's own attention may have it, which divides by the sum 0.
    undefined = part_of([[nan, inf]], [-inf], max_logit=[nan], entropy=[nan], error_bound=[inf])
    yield case_of("no row counts in either part", [none, none], {"merged": none})
    yield case_of("no row counts in the first part", [none, some], {"merged": some})
    yield case_of("no row counts in the second part", [some, none], {"merged": some})
    yield case_of("sums over no rows that are no numbers, first", [undefined, some], {"merged": some})
    yield case_of("sums over no rows that are no numbers, second", [some, undefined],
                  {"merged": some})
    yield case_of(
        "equal parts", [some, some],
        {"merged": part_of([[1.0, -2.0]], [3 + ln2], max_logit=[2.5], entropy=[0.5 + ln2],
                           counted_rows=[8], summed_rows=[4], error_bound=[0.25 + 1e-5],
                           log_sum_exp_error=1e-5)})
    yield case_of(
        "sums at both ends of float64",
        [part_of([[1.0]], [1e308], error_bound=[1e-6], log_sum_exp_error=1e-5),
         part_of([[2.0]], [-1e308], error_bound=[1e-6], log_sum_exp_error=1e-5)],
        {"merged": part_of([[1.0]], [1e308], counted_rows=[2], summed_rows=[2], error_bound=[1e-6],
                           log_sum_exp_error=1e-5)})
    yield case_of(
        "the same two the other way around, without errors",
        [part_of([[2.0]], [-1e308]), part_of([[1.0]], [1e308])],
        {"merged": part_of([[1.0]], [1e308], counted_rows=[2], summed_rows=[2])})
    yield case_of("no queries", [part_of([], []), part_of([], [], log_sum_exp_error=1e-5)],
                  {"merged": part_of([], [], log_sum_exp_error=1e-5)})
    yield case_of("no queries, with weights",
                  [part_of([], [], weights=[]), part_of([], [], weights=[])],
                  {"merged": part_of([], [], weights=[])})
    weights = [
        {"positions": [8, 9], "ids": [None, 3], "weights": [0.5, 0.25], "scores": [1.5, 0.5],
         "remaining": 0.25},
        {"positions": [1, 7, 8], "ids": [None, None, None], "weights": [0.5, 0.25, 0.25],
         "scores": [2.5, 2.0, 2.0], "remaining": 0.0}]
    tied = [part_of([[1.0]], [1.0], weights=[each]) for each in weights]
    yield case_of(
        "equal weights: by part, then by position; equal positions of two stores", tied,
        {"merged": part_of(
            [[1.0]], [1 + ln2], max_logit=[1.0], entropy=[ln2], counted_rows=[2], summed_rows=[2],
            weights=[{"positions": [8, 1, 9, 7, 8], "ids": [None, None, 3, None, None],
                      "weights": [0.25, 0.25, 0.125, 0.125, 0.125],
                      "scores": [1.5, 2.5, 0.5, 2.0, 2.0], "remaining": 0.125,
                      "parts": [0, 1, 0, 1, 1]}])})
    yield case_of(
        "weights in the first part alone",
        [tied[0], part_of([[1.0]], [1.0])],
        {"merged": part_of([[1.0]], [1 + ln2], max_logit=[1.0], entropy=[ln2], counted_rows=[2],
                           summed_rows=[2])})
    yield case_of(
        "weights in the second part alone",
        [part_of([[1.0]], [1.0]), tied[1]],
        {"merged": part_of([[1.0]], [1 + ln2], max_logit=[1.0], entropy=[ln2], counted_rows=[2],
                           summed_rows=[2])})
    # Rows of the weight 0 stay in the list.
    yield case_of(
        "weights of a part without a share",
        [part_of([[1.0]], [1e5], weights=[weights[0]]), part_of([[2.0]], [0.0], weights=[weights[1]])],
        {"merged": part_of(
            [[1.0]], [1e5], counted_rows=[2], summed_rows=[2],
            weights=[{"positions": [8, 9, 1, 7, 8], "ids": [None, 3, None, None, None],
                      "weights": [0.5, 0.25, 0.0, 0.0, 0.0], "scores": [1.5, 0.5, 2.5, 2.0, 2.0],
                      "remaining": 0.25, "parts": [0, 0, 1, 1, 1]}])})
    one, wide = part_of([[1.0, 2.0]], [0.0]), part_of([[1.0, 2.0, 3.0]], [0.0])
    hard = part_of([[1.0, 2.0]], [-inf], max_logit=[2.0], counted_rows=[3], summed_rows=[1],
                   empty=[False])
    refused = {"error": "INVALID_ARGUMENT"}
    for what, parts in (
            ("unlike numbers of queries", [one, part_of([[1.0, 2.0]] * 2, [0.0, 0.0])]),
            ("unlike numbers of columns", [one, wide]),
            ("unlike numbers of heads", [one, part_of([[1.0, 2.0]], [0.0, 0.0])]),
            ("a first part that is not soft", [hard, one]),
            ("a second part that is not soft", [one, hard]),
            ("two parts that are not soft", [hard, hard]),
            ("a third part that is not soft", [one, one, hard]),
            ("a log-sum-exp that is no number", [one, part_of([[1.0, 2.0]], [nan])]),
            ("an infinite log-sum-exp", [part_of([[1.0, 2.0]], [inf]), one])):
        case = case_of(what, parts, refused)
        for part in parts:
            part["num_heads"] = len(part["log_sum_exp"]) // len(part["values"])
        yield case


def cases():
    yield random_case("two parts", 1, [0, 5, 12])
    yield random_case("two parts, the other way around", 1, [0, 5, 12], order=[1, 0])
    yield random_case("a temperature at which one part has nearly all weight", 2, [0, 5, 12],
                      temperature=0.05)
    yield random_case("a temperature at which one part has no weight in float64", 3, [0, 5, 12],
                      temperature=1e-3)
    yield random_case("a temperature at which all rows weigh the same", 4, [0, 5, 12],
                      temperature=1e6)
    yield random_case("logits whose exp() overflows", 5, [0, 5, 12], shift=2000.0)
    yield random_case("logits whose exp() is 0", 6, [0, 5, 12], shift=-2000.0)
    yield random_case("a part of one row", 7, [0, 1, 12])
    yield random_case("large values", 8, [0, 5, 12], values_size=1e30)
    yield random_case("several heads", 9, [0, 5, 12], heads=2)
    yield random_case("several heads, parts over no rows in some", 10, [0, 3, 6], heads=3, least=0.8)
    yield random_case("unlike errors of log-sum-exp", 11, [0, 5, 12], errors=[1e-5, 0.01])
    yield random_case("a lookup and attention of one's own", 12, [0, 5, 12], errors=[1e-5, 0.0])
    yield random_case("three parts", 13, [0, 5, 6, 12], errors=[1e-5, 0.01, 1e-3])
    yield random_case("five parts", 14, [0, 3, 6, 8, 13, 16], temperature=0.3)
    yield random_case("the largest weights", 15, [0, 5, 12], listed=3)
    yield random_case("all weights", 16, [0, 3, 7], listed=9)
    yield random_case("weights of several heads, some rows with ids", 17, [0, 5, 12], heads=2,
                      listed=3, some_ids=True)
    yield random_case("weights of parts over no rows in some heads", 18, [0, 3, 6], heads=3,
                      least=0.8, listed=2)
    yield random_case("weights of three parts, the last one first", 19, [0, 5, 9, 12],
                      listed=2, order=[2, 0, 1])
    yield random_case("weights where one part has nearly all weight", 20, [0, 5, 12],
                      temperature=0.05, listed=3)
    yield from written_cases()


def as_json(item):
    """With words for what JSON has no numbers for."""
    if isinstance(item, dict):
        return {name: as_json(each) for name, each in item.items()}
    if isinstance(item, (list, tuple)):
        return [as_json(each) for each in item]
    if isinstance(item, float) and not math.isfinite(item):
        return str(float(item))
    return float(item) if isinstance(item, float) else item


WHAT = (
    "What answers over disjoint rows merge to, one after another in the order of parts: the answer"
    " over all rows, from float64 (merge_cases.py). Arrays have an element a query and head,"
    " query-major; values a row a query. Numbers that JSON has not are words: \\\"-inf\\\", \\\"nan\\\"."
    " log_sum_exp_error: how far each log_sum_exp of the part may be from the exact one. Weights:"
    " the id null is a row without one, and parts tells which part a row is from. A merged answer"
    " has weights only where this file has them, and its revision and row count are 0. Each number"
    " x of the merged answer may be off by tolerance * max(1, abs(x)); of values, by tolerance *"
    " largest, and in a client whose values are float32 by 2^-22 * largest. error: the code of a failure.")


def main():
    print("{")
    print(f'  "what": "{WHAT}",')
    print('  "tolerance": 1e-11,')
    print('  "cases": [')
    lines = ["    " + json.dumps(as_json(each), allow_nan=False) for each in cases()]
    print(",\n".join(lines))
    print("  ]")
    print("}")


if __name__ == "__main__":
    main()
