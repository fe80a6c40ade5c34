"""Float64 oracle of the wire contract's arithmetic. Slow and plain on purpose.

lookup() and memory() are the definitions that cases.json was computed with; run this file to
print how a case is laid out:  python3 oracle.py
"""
import numpy as np


def scores(Q, K, kind):
    """[T, d], [N, d] -> [T, N]."""
    if kind == "DOT":
        return Q @ K.T
    if kind == "SCALED_DOT":
        return Q @ K.T / np.sqrt(Q.shape[1])
    if kind == "COSINE":
        qn, kn = np.linalg.norm(Q, axis=1)[:, None], np.linalg.norm(K, axis=1)[None, :]
        den = qn * kn
        return np.where(den > 0, (Q @ K.T) / np.where(den > 0, den, 1), 0.0)
    d2 = ((Q[:, None, :] - K[None, :, :]) ** 2).sum(-1)
    return -np.sqrt(d2) if kind == "EUCLIDEAN" else -d2  # SQUARED_EUCLIDEAN


def lookup(Q, K, V, score="SCALED_DOT", temperature=1.0, mode="SOFT", top_k=0, min_score=None,
           recency_decay=None, causal=False, causal_offset=0, allowed=None, end=None, num_heads=1):
    """Q [T, dk], K [N, dk], V [N, dv], allowed bool [N] (the filter) -> dict.

    values [T, dv]; log_sum_exp, max_logit, entropy, counted_rows [T * num_heads], query-major;
    weights, scores [T * num_heads, N] (0 where a row does not count).
    """
    Q, K, V = (np.asarray(a, np.float64) for a in (Q, K, V))
    T, N = len(Q), len(K)
    end = N if end is None else end
    allowed = np.ones(N, bool) if allowed is None else np.asarray(allowed, bool)
    dk, dv = Q.shape[1] // num_heads, V.shape[1] // num_heads
    out = dict(values=np.zeros((T, V.shape[1])), log_sum_exp=[], max_logit=[], entropy=[],
               counted_rows=[], weights=[], scores=[])
    for t in range(T):
        for h in range(num_heads):
            q, k, v = Q[t:t + 1, h * dk:(h + 1) * dk], K[:, h * dk:(h + 1) * dk], V[:, h * dv:(h + 1) * dv]
            s = scores(q, k, score)[0]
            ok = allowed.copy()
            if causal:
                ok &= np.arange(N) <= causal_offset + t
            if min_score is not None:
                ok &= s >= min_score
            z = s / temperature
            if recency_decay is not None:
                z = z + (end - 1 - np.arange(N)) * np.log(recency_decay)
            if top_k and ok.sum() > top_k:
                idx = np.flatnonzero(ok)
                keep = idx[np.lexsort((idx, -z[idx]))[:top_k]]
                ok = np.zeros(N, bool)
                ok[keep] = True
            w = np.zeros(N)
            lse, top, ent = -np.inf, -np.inf, 0.0
            if ok.any():
                top = z[ok].max()
                if mode == "SOFT":
                    e = np.exp(z[ok] - top)
                    lse = top + np.log(e.sum())
                    w[ok] = e / e.sum()
                    p = w[w > 0]
                    ent = float(-(p * np.log(p)).sum())
                elif mode == "HARD":
                    w[np.flatnonzero(ok & (z == top))[0]] = 1.0
                else:
                    w[ok] = z[ok]
            out["values"][t, h * dv:(h + 1) * dv] = w @ v
            out["log_sum_exp"].append(lse)
            out["max_logit"].append(top)
            out["entropy"].append(ent)
            out["counted_rows"].append(int(ok.sum()))
            out["weights"].append(w)
            out["scores"].append(np.where(ok, s, 0.0))
    return out


def memory(X, kind, decay=None, gate=None, keys=None, begin=0):
    """X [n, d] (keys or values) -> (memory [d], weight). gate [1 + key_dim], bias first, reads `keys`."""
    m, z = np.zeros(X.shape[1]), 0.0
    for i in range(begin, len(X)):
        if kind == "AVERAGE":
            n = i - begin
            m, z = (X[i] + n * m) / (n + 1), z + 1
            continue
        f = decay
        if kind.startswith("GATED"):
            f = 1.0 / (1.0 + np.exp(-(gate[0] + gate[1:] @ keys[i])))
        m, z = f * m + X[i], f * z + 1
    if kind in ("DECAYED_AVERAGE", "GATED_AVERAGE") and z > 0:
        m = m / z
    return m, z


if __name__ == "__main__":
    import json, os
    cases = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json")))
    print(len(cases["lookups"]), "lookup cases,", len(cases["memories"]), "memory cases; keys of one of each:")
    print({k: type(v).__name__ for k, v in cases["lookups"][0].items()})
    print({k: type(v).__name__ for k, v in cases["memories"][0].items()})
