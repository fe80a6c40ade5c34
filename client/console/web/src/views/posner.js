// The Posner experiment, run anew as its handles move.
import { call } from '../api.js';
import { chart } from '../charts.js';
import { copyAs, shell } from '../copy_as.js';
import { h, newId, panel } from '../dom.js';
import { latest } from '../latest.js';
import { number, weight } from '../numbers.js';

const kTemperatures = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 2, 5, 10, 50];
// Name, title, least, most, step, default.
const kHandles = [
  ['cue_strength', 'Cue strength', 0, 2, 0.05, 0.5],
  ['noise', 'Noise', 0, 4, 0.1, 1.5],
  ['memories', 'Remembered items', 2, 64, 1, 20],
  ['dim', 'Dimensions', 4, 256, 4, 64],
  ['trials', 'Trials a cue', 10, 400, 10, 100],
];

export function posnerPanel({ start, failed, answered, noteState, server }) {
  const drawing = chart({
    title: 'Weight on the target by temperature',
    x: { label: 'temperature', log: true },
    y: { range: [0, 1.02] },
    height: 260,
    series: [
      { label: 'valid cue', points: true },
      { label: 'invalid cue', tone: 'muted', points: true },
      { label: 'chance', tone: 'faint', dashed: true, width: 1.2 },
    ],
  });
  const controls = kHandles.map(([name, title, least, most, step, absent]) => {
    const value = start[name] === undefined ? absent : Number(start[name]);
    const range = h('input', {
      type: 'range',
      id: newId(name),
      min: least,
      max: most,
      step,
      value: String(value),
    });
    const shown = h('output', { for: range.id }, String(value));
    range.addEventListener('input', () => {
      shown.textContent = range.value;
      noteState({ [name]: Number(range.value) === absent ? '' : range.value });
      ask(requestNow());
    });
    return {
      name,
      range,
      element: h(
        'div',
        { class: 'field slider' },
        h('label', { for: range.id }, title),
        h('div', { class: 'slider-row' }, range, shown),
      ),
    };
  });
  const requestNow = () => ({
    ...Object.fromEntries(controls.map(({ name, range }) => [name, Number(range.value)])),
    temperatures: kTemperatures,
  });
  const texts = () => {
    const { memories: items, dim, trials, noise, cue_strength: strength } = requestNow();
    return {
      cli: `softlookup --server ${shell(server)} recall --experiment posner --memories ${items} --dim ${dim} --trials ${trials} --noise ${noise} --cue-strength ${strength} --temperatures ${kTemperatures.join(',')}`,
    };
  };
  const run = h('button', { type: 'button', onclick: () => ask(requestNow()) }, 'Run');
  const element = panel(
    'Posner’s cueing experiment',
    h(
      'p',
      { class: 'hint' },
      'A target is recalled from a noisy probe, while a cue draws attention to it (valid) or to another item (invalid). Each run makes a store of its own on the server and deletes it.',
    ),
    h(
      'div',
      { class: 'fields' },
      controls.map((control) => control.element),
    ),
    h('div', { class: 'pager' }, run, copyAs(texts)),
    drawing.element,
  );
  const ask = latest(
    (request) => call('posner', request),
    (result, request) => {
      answered();
      const points = result.points;
      const gain = points.reduce((best, point) =>
        point.valid.accuracy - point.invalid.accuracy > best.valid.accuracy - best.invalid.accuracy
          ? point
          : best,
      );
      drawing.set(
        [
          points.map((point) => point.temperature),
          points.map((point) => point.valid.accuracy),
          points.map((point) => point.invalid.accuracy),
          points.map(() => result.chance),
        ],
        `the cue matters most at temperature ${number(gain.temperature)}: ${weight(gain.valid.accuracy)} if valid, ${weight(gain.invalid.accuracy)} if not, ${weight(result.chance)} by chance`,
      );
      element.dataset.answered = JSON.stringify({ ...request, points });
    },
    failed,
  );
  drawing.set(
    [kTemperatures, ...[0, 1, 2].map(() => kTemperatures.map(() => null))],
    'not run yet',
  );
  return {
    element,
    end: () => {
      ask.end();
      drawing.end();
    },
  };
}
