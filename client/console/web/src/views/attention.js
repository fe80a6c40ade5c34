// Attention as a heat map: queries by rows or blocks of rows.
import { call, NoSession } from '../api.js';
import { attentionTexts } from '../attention_text.js';
import { copyAs } from '../copy_as.js';
import { checkbox, field, fill, h, input, newId, notice, panel, select } from '../dom.js';
import { heatMap } from '../heat_map.js';
import { latest, settled } from '../latest.js';
import { base64, count, floats, number, precise, weight } from '../numbers.js';
import { parseQuery } from '../query_text.js';
import { rowName } from '../labels.js';
import { storePicker } from '../stores.js';
import { temperatureControl } from '../temperature.js';
import { wholeOf } from './rows.js';

const kFirstRows = 48;
const kQueriesMax = 128;
const kKinds = [
  ['rows', 'Keys of rows ask'],
  ['self', 'Self attention of rows'],
  ['lines', 'Written queries ask'],
];

function mount({ root, state, about, note, locked }) {
  const message = notice();
  const body = h('div');
  let end = () => {};
  const failed = (error) =>
    error instanceof NoSession ? locked(error.message) : message.show(error.message);
  const picker = storePicker((store) => {
    end();
    message.show(null);
    end = open(store, store.name === state.store || !state.store ? state : {});
  }, failed);
  root.append(h('div', { class: 'toolbar' }, picker.element), message.element, body);
  picker.open(state.store);
  return () => {
    picker.end();
    end();
  };

  function open(store, start) {
    const last = store.row_count;
    const first = Math.max(0, last - kFirstRows);
    const text = (name, fallback) =>
      input({ type: 'text', inputmode: 'numeric', value: start[name] ?? fallback }, () =>
        changed(),
      );
    const rowBegin = text('row_begin', String(first));
    const rowEnd = text('row_end', String(last));
    const queryBegin = text('query_begin', String(first));
    const queryEnd = text('query_end', String(last));
    const topK = text('top_k', '');
    const head = text('head', '0');
    const lines = h('textarea', {
      rows: 4,
      id: newId('lines'),
      spellcheck: 'false',
      oninput: () => changed(),
    });
    lines.value = start.lines ?? 'row 0';
    const kind = select(kKinds, start.kind || 'rows', () => {
      arrange();
      changed();
    });
    const scale = select(
      [
        ['linear', 'Linear'],
        ['root', 'Square root'],
      ],
      start.scale || 'linear',
      () => {
        changed();
      },
    );
    const causal = checkbox('Causal', start.causal === '1', () => changed());
    const temperature = temperatureControl(
      'Temperature',
      store.temperature,
      Number(start.temperature) || store.temperature,
      () => {
        noteState();
        run();
      },
    );
    const reading = h('p', { class: 'reading', role: 'status' });
    const caption = h('p', { class: 'hint' });
    const axis = h('div', { class: 'heat-axis', 'aria-hidden': 'true' }, h('span'), h('span'));
    const map = heatMap(read);
    const legend = h(
      'div',
      { class: 'legend' },
      h('span', { class: 'ramp', 'aria-hidden': 'true' }),
      h('span', { class: 'hint' }),
      h('span', { class: 'hatch', 'aria-hidden': 'true' }),
      h('span', { class: 'hint' }, 'not counted: masked, or left out'),
    );
    let shown = null;
    const vectorOf = new Map(); // By written query, so that a drag of the temperature is one call.

    const fieldOf = {
      rowBegin: field('Rows from position', rowBegin),
      rowEnd: field('Rows below position', rowEnd),
      queryBegin: field('Queries from position', queryBegin),
      queryEnd: field('Queries below position', queryEnd, `at most ${kQueriesMax}`),
      lines: h(
        'div',
        { class: 'field grow' },
        h('label', { for: lines.id }, 'Queries, one a line'),
        lines,
      ),
    };
    function arrange() {
      fieldOf.queryBegin.hidden = kind.value !== 'rows';
      fieldOf.queryEnd.hidden = kind.value !== 'rows';
      fieldOf.lines.hidden = kind.value !== 'lines';
    }
    function noteState() {
      note({
        store: store.name,
        kind: kind.value === 'rows' ? '' : kind.value,
        row_begin: rowBegin.value,
        row_end: rowEnd.value,
        query_begin: kind.value === 'rows' ? queryBegin.value : '',
        query_end: kind.value === 'rows' ? queryEnd.value : '',
        lines: kind.value === 'lines' ? lines.value : '',
        causal: causal.box.checked ? '1' : '',
        temperature: temperature.value() === store.temperature ? '' : temperature.value(),
        top_k: topK.value,
        head: head.value === '0' ? '' : head.value,
        scale: scale.value === 'linear' ? '' : scale.value,
      });
    }
    async function fetchMap(request) {
      if (request.lines === undefined)
        return { result: await call('attention', request), vectors: null };
      const vectors = [];
      for (const line of request.lines) {
        if (!vectorOf.has(line)) {
          const terms = parseQuery(line);
          const { query } = await call('query', { store: store.name, dim: store.key_dim, terms });
          vectorOf.set(line, floats(query));
        }
        vectors.push(vectorOf.get(line));
      }
      const { lines: _, ...rest } = request;
      const result = await call('attention', {
        ...rest,
        queries: base64(Float32Array.from(vectors.flatMap((vector) => Array.from(vector)))),
      });
      return { result, vectors };
    }
    const ask = latest(fetchMap, draw, failed);
    function run() {
      const begin = wholeOf(rowBegin.value) ?? 0;
      const request = {
        store: store.name,
        dim: store.key_dim,
        row_begin: begin,
        row_end: wholeOf(rowEnd.value) ?? last,
        temperature: temperature.value(),
        top_k: wholeOf(topK.value) ?? 0,
        head: wholeOf(head.value) ?? 0,
        causal: causal.box.checked,
        self: kind.value === 'self',
      };
      if (kind.value === 'rows') {
        request.query_begin = wholeOf(queryBegin.value) ?? 0;
        request.query_end = wholeOf(queryEnd.value) ?? request.query_begin;
        request.causal_offset = request.query_begin;
      } else if (kind.value === 'lines') {
        request.lines = lines.value.split('\n').filter((line) => line.trim() !== '');
        request.causal_offset = begin;
        if (request.lines.length === 0 || request.lines.length > kQueriesMax) {
          message.show(`Write 1 to ${kQueriesMax} queries.`, 'warn');
          return;
        }
      } else {
        request.causal_offset = 0;
      }
      ask(request);
    }
    const runSoon = settled(200, run);
    function changed() {
      vectorOf.clear();
      noteState();
      runSoon();
    }
    function draw({ result, vectors }, request) {
      message.show(null);
      const weights = floats(result.weights);
      const scores = result.scores === undefined ? null : floats(result.scores);
      const columns =
        result.kind === 'blocks' ? result.edges.length - 1 : result.rows.positions.length;
      const rows = columns === 0 ? 0 : weights.length / columns;
      shown = { result, request, vectors, weights, scores, columns };
      const most = weights.reduce(
        (sum, each) => (Number.isNaN(each) ? sum : Math.max(sum, Math.abs(each))),
        0,
      );
      map.show({
        weights,
        rows,
        columns,
        root: scale.value === 'root',
        masked: (cell) =>
          scores === null ? Number.isNaN(weights[cell]) : Number.isNaN(scores[cell]),
      });
      caption.textContent =
        result.kind === 'blocks'
          ? `${count(rows)} queries down, ${count(columns)} blocks of rows across; a cell is the weight of all rows of its block`
          : `${count(rows)} queries down, ${count(columns)} rows across`;
      const from = result.kind === 'blocks' ? result.edges[0] : result.rows.positions[0];
      const to = result.kind === 'blocks' ? result.edges.at(-1) - 1 : result.rows.positions.at(-1);
      axis.firstChild.textContent = `position ${count(from)}`;
      axis.lastChild.textContent = count(to);
      legend.children[1].textContent = `0 to ${weight(most)}`;
      map.element.dataset.drawn = JSON.stringify({
        rows,
        columns,
        most,
        temperature: request.temperature,
      });
    }
    const infoOf = (list, i) => ({
      position: list.positions[i],
      name: rowName(list.positions[i], { id: list.ids[i], labels: list.labels[i] }),
      id: list.ids[i],
    });
    function read(row, column) {
      if (shown === null) return;
      const { result, weights, scores, columns } = shown;
      const written = shown.request.lines;
      const cell = row * columns + column;
      const query =
        written === undefined
          ? result.queries
            ? infoOf(result.queries, row).name
            : `query ${row}`
          : written[row];
      const masked = scores === null ? Number.isNaN(weights[cell]) : Number.isNaN(scores[cell]);
      const facts = [['Query', query]];
      if (result.kind === 'blocks') {
        facts.push([
          'Positions',
          `${count(result.edges[column])} to ${count(result.edges[column + 1] - 1)}`,
        ]);
      } else {
        const info = infoOf(result.rows, column);
        facts.push(
          ['Row', info.name],
          ['Position', count(info.position)],
          ['Id', info.id ?? '–'],
          ['Score', masked ? '–' : precise(scores[cell])],
        );
      }
      facts.push(
        ['Weight', masked ? 'not counted' : weight(weights[cell])],
        ['Entropy of the query', number(result.entropy[row])],
      );
      fill(
        reading,
        facts.map(([name, value]) => h('span', {}, h('b', {}, `${name} `), value)),
      );
    }

    arrange();
    fill(
      body,
      panel(
        'Attention',
        h(
          'div',
          { class: 'fields' },
          field('Kind', kind),
          fieldOf.queryBegin,
          fieldOf.queryEnd,
          fieldOf.lines,
          fieldOf.rowBegin,
          fieldOf.rowEnd,
        ),
        h(
          'div',
          { class: 'fields' },
          temperature.element,
          field('Only the top', topK),
          store.num_heads > 1 ? field('Head', head) : null,
          field('Colours', scale),
          h('div', { class: 'field end' }, causal.element),
        ),
        h(
          'div',
          { class: 'pager' },
          copyAs(() =>
            shown === null
              ? {}
              : attentionTexts({
                  server: about.server,
                  store,
                  request: shown.request,
                  vectors: shown.vectors,
                }),
          ),
        ),
      ),
      panel('Weights', reading, axis, map.element, legend, caption),
    );
    run();
    return () => {
      ask.end();
      runSoon.end();
      map.end();
    };
  }
}

export const attention = { name: 'attention', title: 'Attention', mount };
