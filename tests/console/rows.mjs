// Stores with known rows, and their answers in float64.
import { writeFileSync } from 'node:fs';
import { writeNpy } from './workspace.mjs';

export const kHostile = [
  '<img src=x onerror="window.pwned=1">',
  '"><script>window.pwned=1</script>',
  '\u202Egnirts',
  'a,b\'c"d',
];

/** Numbers from -1 to 1 that are the same everywhere. */
export function numbers(count, seed) {
  const data = new Float32Array(count);
  let state = seed >>> 0;
  for (let i = 0; i < count; i += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    data[i] = state / 2147483648 - 1;
  }
  return data;
}

/** A store of `count` rows, whose score is the dot product. */
export function makeStore(
  workspace,
  { name, count, keyDim, valueDim, temperature, labels = null, ids = null, flags = [] },
) {
  const keys = numbers(count * keyDim, 7);
  const values = numbers(count * valueDim, 8);
  workspace.tool(
    'store',
    'create',
    name,
    '--key-dim',
    String(keyDim),
    '--value-dim',
    String(valueDim),
    '--score',
    'dot',
    '--temperature',
    String(temperature),
    ...flags,
  );
  writeNpy(workspace.file('keys.npy'), count, keyDim, keys);
  writeNpy(workspace.file('values.npy'), count, valueDim, values);
  const more = [];
  if (labels !== null) {
    writeFileSync(
      workspace.file('labels.txt'),
      `${labels.map((label) => JSON.stringify(label)).join('\n')}\n`,
    );
    more.push('--labels', workspace.file('labels.txt'));
  }
  if (ids !== null) {
    writeFileSync(workspace.file('ids.txt'), `${ids.join('\n')}\n`);
    more.push('--ids', workspace.file('ids.txt'));
  }
  workspace.tool(
    'append',
    name,
    '--keys',
    workspace.file('keys.npy'),
    '--values',
    workspace.file('values.npy'),
    ...more,
  );
  return { name, count, keyDim, valueDim, keys, values, temperature };
}

export function keyOf(store, row) {
  return Array.from(store.keys.subarray(row * store.keyDim, (row + 1) * store.keyDim));
}

/** The answer to a query in float64, over the rows of [begin, end). */
export function answerOf(store, query, temperature, begin = 0, end = store.count) {
  const logits = [];
  for (let row = begin; row < end; row += 1) {
    let score = 0;
    for (let i = 0; i < store.keyDim; i += 1)
      score += query[i] * store.keys[row * store.keyDim + i];
    logits.push(score / temperature);
  }
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const terms = logits.map((logit) => Math.exp(logit - most));
  const sum = terms.reduce((a, b) => a + b, 0);
  const weights = terms.map((term) => term / sum);
  const values = new Array(store.valueDim).fill(0);
  weights.forEach((weight, i) =>
    values.forEach((_, c) => {
      values[c] += weight * store.values[(begin + i) * store.valueDim + c];
    }),
  );
  const entropy = weights.reduce(
    (total, weight) => (weight > 0 ? total - weight * Math.log(weight) : total),
    0,
  );
  return { logSumExp: most + Math.log(sum), weights, values, entropy };
}
