// The card of an answer: figures, values, heaviest rows, and how the weight is spread.
import { cumsum, max } from 'd3-array';
import { chart } from '../charts.js';
import { fill, h } from '../dom.js';
import { rowName } from '../labels.js';
import { linkTo } from '../link.js';
import { count, floats, number, precise, weight } from '../numbers.js';

const kRowsShown = 12;
const kValuesShown = 8;
const kBarsMax = 160;

const kFigures = [
  ['log_sum_exp', 'Log-sum-exp', (stats) => precise(stats.log_sum_exp, '−∞')],
  ['entropy', 'Entropy, nats', (stats) => number(stats.entropy)],
  ['perplexity', 'Like equal rows', (stats) => number(Math.exp(stats.entropy))],
  ['counted_rows', 'Counted rows', (stats) => count(stats.counted_rows)],
  ['summed_rows', 'Summed rows', (stats) => count(stats.summed_rows)],
  ['error_bound', 'Error bound', (stats) => number(stats.error_bound)],
];

/** `labels` is rowLabels() of the store. Returns {element, show, showMass, relabel, end}. */
export function answerCard(store, labels) {
  const figures = {};
  const tiles = h(
    'dl',
    { class: 'tiles' },
    kFigures.map(([name, title]) => {
      figures[name] = h('dd', { 'data-figure': name }, '–');
      return h('div', {}, h('dt', {}, title), figures[name]);
    }),
  );
  const meta = h('p', { class: 'hint meta' });
  const rows = h('tbody');
  const values = h('code', { class: 'values' });
  const bars = store.value_dim <= kBarsMax;
  const charts = {
    values: chart({
      title: 'Values of the answer',
      x: { label: 'component', bars, whole: true },
      series: [{ label: 'value', bars, width: 1.5 }],
    }),
    cumulative: chart({
      title: 'Cumulative weight',
      x: { label: 'heaviest rows', log: true },
      y: { range: [0, 1.02] },
      series: [{ label: 'weight so far', width: 2 }],
    }),
    mass: chart({
      title: 'Weight over position',
      x: { label: 'position', whole: true, text: count },
      series: [{ label: 'weight', steps: true, width: 1.5 }],
    }),
  };
  const massNote = h('p', { class: 'hint' });
  let listed = null;

  const heaviest = h(
    'table',
    { class: 'heaviest' },
    h('caption', { class: 'sr' }, 'The heaviest rows'),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        [
          ['Row'],
          ['Position', 'num'],
          ['Score', 'num wide-only'],
          ['Weight', 'num'],
          ['', 'bar-head'],
        ].map(([text, kind]) =>
          text === '' ? h('td', { class: kind }) : h('th', { scope: 'col', class: kind }, text),
        ),
      ),
    ),
    rows,
  );
  const element = h(
    'div',
    { class: 'answer', 'aria-live': 'off' },
    tiles,
    meta,
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'The heaviest rows' },
      heaviest,
    ),
    h(
      'div',
      { class: 'charts' },
      charts.cumulative.element,
      h('div', {}, charts.mass.element, massNote),
      charts.values.element,
    ),
    h('p', { class: 'hint' }, 'First values ', values),
  );

  function showRows() {
    if (listed === null) return;
    const most = max(listed.weights, Math.abs) || 1;
    fill(
      rows,
      listed.positions.slice(0, kRowsShown).map((position, i) => {
        const bar = h('div', { class: 'bar' });
        bar.style.width = `${(100 * Math.abs(listed.weights[i])) / most}%`;
        return h(
          'tr',
          { 'data-position': position },
          h('th', { scope: 'row' }, rowName(position, labels.of(position))),
          h(
            'td',
            { class: 'num' },
            h(
              'a',
              {
                href: linkTo('ask', { store: store.name, query: `row ${position}` }),
                'aria-label': `Ask with row ${position}`,
              },
              count(position),
            ),
          ),
          h('td', { class: 'num wide-only' }, number(listed.scores[i])),
          h('td', { class: 'num weight' }, weight(listed.weights[i])),
          h('td', { class: 'bar-cell', 'aria-hidden': 'true' }, bar),
        );
      }),
    );
  }

  return {
    element,
    show(answer, head, milliseconds) {
      const stats = answer.stats[head];
      listed = answer.weights[head];
      for (const [name, , text] of kFigures) figures[name].textContent = text(stats);
      const others =
        listed.remaining > 0 ? `; the rows below these have ${weight(listed.remaining)}` : '';
      meta.textContent = stats.empty
        ? 'No row counts, so the answer is 0.'
        : `Revision ${count(answer.revision)}, answered in ${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms${others}`;
      showRows();
      labels.need(listed.positions.slice(0, kRowsShown));
      const numbers = floats(answer.values);
      charts.values.set(
        [Array.from(numbers.keys()), Array.from(numbers)],
        `${count(numbers.length)} components, from ${number(Math.min(...numbers.subarray(0, 65536)))} to ${number(Math.max(...numbers.subarray(0, 65536)))}`,
      );
      values.textContent =
        Array.from(numbers.subarray(0, kValuesShown), (value) => number(value)).join('  ') +
        (numbers.length > kValuesShown ? '  …' : '');
      const sums = Array.from(cumsum(listed.weights));
      charts.cumulative.set(
        [sums.map((_, i) => i + 1), sums],
        sums.length === 0
          ? 'no rows'
          : `the heaviest ${count(sums.length)} have ${weight(sums.at(-1))} of the weight`,
      );
    },
    /** `mass` is the answer to the call `mass`, or null with the reason why there is none. */
    showMass(mass, logSumExp, why) {
      charts.mass.element.hidden = mass === null;
      massNote.hidden = mass !== null;
      massNote.textContent = why ?? '';
      if (mass === null) return;
      const weights = mass.log_sum_exp.map((sum) => (sum === null ? 0 : Math.exp(sum - logSumExp)));
      const most = weights.indexOf(Math.max(...weights));
      charts.mass.set(
        [mass.edges, [...weights, weights.at(-1)]],
        `${count(weights.length)} blocks; most, ${weight(weights[most])}, in positions ${count(mass.edges[most])} to ${count(mass.edges[most + 1] - 1)}`,
      );
      element.dataset.mass = JSON.stringify(weights);
    },
    relabel: showRows,
    end: () => Object.values(charts).forEach((each) => each.end()),
  };
}
