// Prometheus' text format, and what two scrapes of it tell.

const kLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const kLabel = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Returns a map from each name to its samples, {labels, value}. */
export function parseMetrics(text) {
  const families = new Map();
  for (const line of text.split('\n')) {
    const match = kLine.exec(line);
    if (match === null) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(kLabel)) labels[name] = value;
    const samples = families.get(match[1]) ?? [];
    samples.push({ labels, value: Number(match[3]) });
    families.set(match[1], samples);
  }
  return families;
}

const fits = (labels, wanted) =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

/** The sum of the samples of `name` that have the labels. */
export function sumOf(families, name, wanted = {}) {
  return (families.get(name) ?? []).reduce(
    (sum, { labels, value }) => (fits(labels, wanted) ? sum + value : sum),
    0,
  );
}

/** The buckets of a histogram, [upper bound, how many are not above it], ascending. */
function bucketsOf(families, name, wanted) {
  const byBound = new Map();
  for (const { labels, value } of families.get(`${name}_bucket`) ?? []) {
    if (!fits(labels, wanted)) continue;
    const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
    byBound.set(bound, (byBound.get(bound) ?? 0) + value);
  }
  return [...byBound].sort((a, b) => a[0] - b[0]);
}

/**
 * The quantile `part` of what a histogram counted between two scrapes, interpolated within its bucket;
 * null if it counted nothing.
 */
export function quantile(before, after, name, part, wanted = {}) {
  const old = new Map(before === null ? [] : bucketsOf(before, name, wanted));
  const now = bucketsOf(after, name, wanted);
  const restarted = now.some(([bound, value]) => value < (old.get(bound) ?? 0));
  const buckets = restarted ? now : now.map(([bound, value]) => [bound, value - (old.get(bound) ?? 0)]);
  const total = buckets.length === 0 ? 0 : buckets.at(-1)[1];
  if (!(total > 0)) return null;
  const rank = part * total;
  let [lower, below] = [0, 0];
  for (const [bound, value] of buckets) {
    if (value >= rank)
      return bound === Infinity
        ? lower
        : lower + ((bound - lower) * (rank - below)) / Math.max(value - below, 1);
    [lower, below] = [bound, value];
  }
  return lower;
}

/** The mean of what a histogram counted between two scrapes; null if it counted nothing. */
export function meanOf(before, after, name, wanted = {}) {
  const counted = difference(before, after, `${name}_count`, wanted);
  return counted > 0 ? difference(before, after, `${name}_sum`, wanted) / counted : null;
}

/** How much a counter grew between two scrapes. One that fell began at 0 again, with the server. */
export function difference(before, after, name, wanted = {}) {
  const now = sumOf(after, name, wanted);
  const then = before === null ? 0 : sumOf(before, name, wanted);
  return now < then ? now : now - then;
}
