// Running memories as of any append, and the Posner experiment.
import { call, NoSession } from '../api.js';
import { chart } from '../charts.js';
import { copyAs, cpp, python, shell } from '../copy_as.js';
import { checkbox, field, fill, h, input, newId, notice, panel, select } from '../dom.js';
import { latest, repeat } from '../latest.js';
import { count, floats, number, precise } from '../numbers.js';
import { storePicker } from '../stores.js';
import { posnerPanel } from './posner.js';

const kPollMilliseconds = 1000;
const kBarsMax = 160;

function memoryTexts({ server, store, name, begin, end }) {
  const window = begin > 0 ? ` --begin ${begin}` : '';
  return {
    cli: `softlookup --server ${shell(server)} memory ${shell(store)} ${shell(name)}${window} --end ${end}`,
    python: `memory = client.store(${python(store)}).memory(${[name === 'average' ? '' : `name=${python(name)}`, begin > 0 ? `begin=${begin}` : '', `end=${end}`].filter((part) => part !== '').join(', ')})\nprint(memory.key, memory.value, memory.weight)`,
    cpp: [
      'softlookup::v1::GetMemoryRequest request;',
      `request.set_store(${cpp(store)});`,
      `request.set_name(${cpp(name)});`,
      ...(begin > 0 ? [`request.set_begin(${begin});`] : []),
      `request.set_end(${end});`,
      'auto memory = client->GetMemory(request);',
    ].join('\n'),
  };
}

function memoryPanel({ store, start, about, failed, answered, noteState }) {
  let rowCount = store.row_count;
  let following = start.end === undefined || start.end === '';
  const names = select(
    store.memories.map((memory) => [memory.name, `${memory.name} · ${memory.kind}`]),
    start.memory || 'average',
    () => {
      arrange();
      changed();
    },
  );
  const slider = (id, value) =>
    h('input', {
      type: 'range',
      id: newId(id),
      min: 0,
      max: rowCount,
      step: 1,
      value: String(value),
    });
  const end = slider('end', following ? rowCount : Number(start.end));
  const begin = slider('begin', Number(start.begin) || 0);
  const exact = (range, label) =>
    input({ type: 'number', min: 0, step: 1, class: 'exact', 'aria-label': label }, () => {
      range.value = field0(range);
      moved(range);
    });
  const endField = exact(end, 'As of append, exact');
  const beginField = exact(begin, 'Window from position, exact');
  const field0 = (range) => (range === end ? endField : beginField).value;
  const follow = checkbox('Follow new rows', following, () => {
    following = follow.box.checked;
    if (following) {
      end.value = String(rowCount);
      changed();
    }
  });
  const figures = Object.fromEntries(
    ['weight', 'begin', 'end', 'revision'].map((name) => [
      name,
      h('dd', { 'data-figure': name }, '–'),
    ]),
  );
  const tiles = h(
    'dl',
    { class: 'tiles' },
    [
      ['weight', 'Weight'],
      ['begin', 'From position'],
      ['end', 'As of append'],
      ['revision', 'Revision'],
    ].map(([name, title]) => h('div', {}, h('dt', {}, title), figures[name])),
  );
  const drawing = (title, dim) => {
    const bars = dim <= kBarsMax;
    return chart({
      title,
      x: { label: 'component', bars, whole: true },
      series: [
        { label: 'as of this append', bars, width: 1.5 },
        { label: 'now', tone: 'muted', marks: bars, width: 1.2, dashed: true },
      ],
    });
  };
  const charts = {
    value: drawing('Value of the memory', store.value_dim),
    key: drawing('Key of the memory', store.key_dim),
  };
  const beginRow = h(
    'div',
    { class: 'field slider' },
    h('label', { for: begin.id }, 'Window from position'),
    h('div', { class: 'slider-row' }, begin, beginField),
  );
  const element = panel(
    'Running memory',
    h(
      'div',
      { class: 'fields' },
      field('Memory', names),
      h('div', { class: 'field end' }, follow.element),
    ),
    h(
      'div',
      { class: 'field slider' },
      h('label', { for: end.id }, 'As of append'),
      h('div', { class: 'slider-row' }, end, endField),
    ),
    beginRow,
    tiles,
    h('div', { class: 'charts' }, charts.value.element, charts.key.element),
    h(
      'div',
      { class: 'pager' },
      copyAs(() =>
        memoryTexts({
          server: about.server,
          store: store.name,
          name: names.value,
          begin: beginNow(),
          end: Number(end.value),
        }),
      ),
    ),
  );
  let now = null;

  const isAverage = () =>
    store.memories.find((memory) => memory.name === names.value)?.kind === 'average';
  const beginNow = () => (isAverage() ? Math.min(Number(begin.value), Number(end.value)) : 0);
  function arrange() {
    beginRow.hidden = !isAverage();
  }
  const ask = latest(
    async (request) => {
      const memory = await call('memory', request);
      const whole = request.end === rowCount && !request.begin;
      return {
        memory,
        now: whole
          ? memory
          : now?.name === request.name && now.end === rowCount
            ? now
            : await call('memory', { store: store.name, name: request.name }),
      };
    },
    (result) => {
      answered();
      now = result.now;
      figures.weight.textContent = precise(result.memory.weight);
      for (const name of ['begin', 'end', 'revision'])
        figures[name].textContent = count(result.memory[name]);
      for (const name of ['value', 'key']) {
        const numbers = floats(result.memory[name]);
        charts[name].set(
          [Array.from(numbers.keys()), Array.from(numbers), Array.from(floats(now[name]))],
          `${count(numbers.length)} components; the first ${Array.from(numbers.subarray(0, 4), (value) => number(value)).join('  ')}`,
        );
      }
      element.dataset.answered = String(result.memory.end);
    },
    failed,
  );
  function changed() {
    endField.value = end.value;
    beginField.value = begin.value;
    for (const [range, text] of [
      [end, 'append'],
      [begin, 'position'],
    ])
      range.setAttribute(
        'aria-valuetext',
        `${text} ${count(Number(range.value))} of ${count(rowCount)}`,
      );
    noteState({
      memory: names.value === 'average' ? '' : names.value,
      end: following ? '' : end.value,
      begin: Number(begin.value) > 0 ? begin.value : '',
    });
    ask({ store: store.name, name: names.value, begin: beginNow(), end: Number(end.value) });
  }
  function moved(range) {
    if (range === end) {
      following = Number(end.value) === rowCount && follow.box.checked;
      follow.box.checked = following;
    }
    changed();
  }
  for (const range of [end, begin]) range.addEventListener('input', () => moved(range));
  let failing = false;
  const stop = repeat(kPollMilliseconds, async () => {
    try {
      const fresh = await call('store', { name: store.name });
      if (fresh.row_count === rowCount && !failing) return;
      failing = false;
      rowCount = fresh.row_count;
      end.max = String(rowCount);
      begin.max = String(rowCount);
      if (following) end.value = String(rowCount);
      changed();
    } catch (error) {
      failing = true;
      failed(error);
    }
  });
  arrange();
  changed();
  return {
    element,
    end: () => {
      stop();
      ask.end();
      charts.value.end();
      charts.key.end();
    },
  };
}

function mount({ root, state, about, note, locked }) {
  const message = notice();
  const place = h('div');
  let link = { ...state };
  let memory = null;
  const failed = (error) =>
    error instanceof NoSession ? locked(error.message) : message.show(error.message);
  const noteState = (part) => {
    link = { ...link, ...part };
    note(link);
  };
  const picker = storePicker((store) => {
    memory?.end();
    message.show(null);
    const start = store.name === state.store || !state.store ? state : {};
    link = { ...link, store: store.name };
    memory = memoryPanel({
      store,
      start,
      about,
      failed,
      answered: () => message.show(null),
      noteState,
    });
    fill(place, memory.element);
  }, failed);
  const posner = posnerPanel({
    start: state,
    failed,
    answered: () => message.show(null),
    noteState,
    server: about.server,
  });
  root.append(
    h('div', { class: 'toolbar' }, picker.element),
    message.element,
    place,
    posner.element,
  );
  picker.open(state.store);
  return () => {
    picker.end();
    memory?.end();
    posner.end();
  };
}

export const memories = { name: 'memories', title: 'Memories', mount };
