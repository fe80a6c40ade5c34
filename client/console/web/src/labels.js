// The labels and ids of rows, which never change, kept by position.
import { call } from './api.js';
import { latest } from './latest.js';

const kKeptMax = 5000;

/** Reads the labels of the rows of a store that a view shows. `changed()` is called when more are known. */
export function rowLabels(store, changed) {
  const known = new Map();
  const ask = latest(
    (positions) => call('labels', { store, positions }),
    ({ rows }, positions) => {
      if (known.size > kKeptMax) known.clear();
      for (const position of positions) known.set(position, { id: null, labels: [] });
      for (const row of rows) known.set(row.position, row);
      changed();
    },
    () => {},
  );
  return {
    of: (position) => known.get(position) ?? null,
    need(positions) {
      const missing = positions.filter((position) => !known.has(position));
      if (missing.length > 0) ask(missing.slice(0, 64));
    },
    end: ask.end,
  };
}

/** A row in words: its labels, or else its id, or else its position. */
export function rowName(position, row) {
  if (row !== null && row.labels.length > 0) return row.labels.join(', ');
  if (row !== null && row.id !== null) return `id ${row.id}`;
  return `row ${position}`;
}
