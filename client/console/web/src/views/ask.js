// A lookup: what is asked, with one setting or with two side by side.
import { call, NoSession } from '../api.js';
import { copyAs } from '../copy_as.js';
import { checkbox, field, fill, h, input, newId, notice, panel, select } from '../dom.js';
import { rowLabels } from '../labels.js';
import { splitLabels } from '../label_list.js';
import { latest, settled } from '../latest.js';
import { floats, shortest } from '../numbers.js';
import { parseQuery, parseVector, quote } from '../query_text.js';
import { lookupTexts } from '../request_text.js';
import { storePicker } from '../stores.js';
import { askSide } from './ask_side.js';
import { listOf, wholeOf } from './rows.js';

const kKinds = {
  sum: {
    title: 'Rows and arithmetic',
    hint: 'row 3, id 7, label "queen", word "apple", and sums: row 3 - row 5 + 0.5 * row 8',
    start: 'row 0',
    parse: parseQuery,
  },
  vector: {
    title: 'Vector',
    hint: 'as many numbers as the keys have, apart by commas or spaces',
    start: '',
    parse: parseVector,
  },
  word: {
    title: 'Word',
    hint: 'the random vector of a word, for stores made with --words',
    start: 'apple',
    parse: (text) => parseQuery(`word ${quote(text)}`),
  },
};
const kFilter = [
  ['begin', 'From position'],
  ['end', 'Below position'],
  ['last', 'Only the last'],
  ['label', 'With a label'],
  ['nolabel', 'Without labels'],
  ['id', 'With an id'],
];

function mount({ root, state, about, note, locked }) {
  const message = notice();
  const body = h('div');
  let end = () => {};
  const failed = (error) => {
    if (error instanceof NoSession) locked(error.message);
    else if (error.name !== 'AbortError') message.show(error.message);
  };
  const picker = storePicker((store) => {
    end();
    message.show(null);
    end = open(store, store.name === state.store || !state.store ? state : {});
  }, failed);
  const head = h('div', { class: 'toolbar' }, picker.element);
  root.append(head, message.element, body);
  picker.open(state.store);
  return () => {
    picker.end();
    end();
  };

  function open(store, start) {
    let kind = start.kind ?? 'sum';
    if (!Object.hasOwn(kKinds, kind)) kind = 'sum';
    let query = null; // The base64 of its numbers.
    let wanted = null; // The terms of the query as it is written; null if it is wrong.
    let sides = [];
    const labels = rowLabels(store.name, () => sides.forEach((side) => side.relabel()));
    const text = input(
      {
        type: 'text',
        id: newId('query'),
        class: 'query',
        value: start.query ?? (kind === 'sum' ? kKinds.sum.start : ''),
      },
      () => changedQuery(),
    );
    const hint = h('span', { class: 'hint', id: `${text.id}-hint` });
    text.setAttribute('aria-describedby', hint.id);
    const kinds = select(
      Object.entries(kKinds).map(([name, { title }]) => [name, title]),
      kind,
      () => {
        kind = kinds.value;
        text.value = kKinds[kind].start;
        if (kind === 'vector' && query !== null)
          text.value = Array.from(floats(query), shortest).join(', ');
        changedQuery();
      },
    );
    const filter = Object.fromEntries(
      kFilter.map(([name]) => [
        name,
        input({ type: 'text', value: start[name] ?? '' }, () => changed()),
      ]),
    );
    const sources = [
      ['rows', 'Rows'],
      ['rows-and-memory', 'Rows, and the average of older rows'],
      ...store.memories.map((memory) => [`memory ${memory.name}`, `Memory ${memory.name}`]),
    ];
    const source = select(sources, start.source || 'rows', () => changed());
    const compare = checkbox('Two settings side by side', start.compare === '1', () => {
      drawSides();
      changed();
    });
    const place = h('div', { class: 'sides' });

    const filterNow = () => ({
      begin: wholeOf(filter.begin.value),
      end: wholeOf(filter.end.value),
      last: wholeOf(filter.last.value),
      any_labels: splitLabels(filter.label.value),
      no_labels: splitLabels(filter.nolabel.value),
      ids: listOf(filter.id.value),
    });
    const sourceNow = () =>
      source.value.startsWith('memory ')
        ? { source: 'memory', memory: source.value.slice(7) }
        : { source: source.value };
    const question = () =>
      query === null ? null : { query, filter: filterNow(), source: sourceNow() };
    const runAll = settled(120, () => sides.forEach((side) => side.run()));

    const resolve = latest(
      (terms) => call('query', { store: store.name, dim: store.key_dim, terms }),
      (result, terms) => {
        if (terms !== wanted) return;
        message.show(null);
        query = result.query;
        sides.forEach((side) => side.run());
      },
      (error, terms) => {
        if (terms !== wanted) return;
        query = null;
        failed(error);
      },
    );
    const resolveSoon = settled(150, () => {
      try {
        wanted = kKinds[kind].parse(text.value);
        resolve(wanted);
      } catch (error) {
        wanted = null;
        query = null;
        message.show(error.message, 'warn');
      }
    });
    function changedQuery() {
      hint.textContent = kKinds[kind].hint;
      noteState();
      resolveSoon();
    }
    function changed() {
      noteState();
      runAll();
    }
    function noteState() {
      const link = {
        store: store.name,
        kind: kind === 'sum' ? '' : kind,
        query: text.value,
        source: source.value === 'rows' ? '' : source.value,
        compare: compare.box.checked ? '1' : '',
      };
      for (const [name] of kFilter) link[name] = filter[name].value.trim();
      sides.forEach((side, i) =>
        Object.entries(side.state()).forEach(([name, value]) => {
          link[i === 0 ? name : `${name}_2`] = value;
        }),
      );
      note(link);
    }
    const stateOfSide = (i) =>
      Object.fromEntries(
        Object.entries(start)
          .filter(([name]) => (i === 0) === !name.endsWith('_2'))
          .map(([name, value]) => [name.replace(/_2$/, ''), value]),
      );

    function drawSides() {
      const two = compare.box.checked;
      const make = (i) =>
        askSide({
          title: two ? `Setting ${'AB'[i]}` : 'Answer',
          store,
          state: stateOfSide(i),
          labels,
          question,
          failed,
          changed: noteState,
          // A late answer to an older query says nothing of this one.
          answered: () => query !== null && message.show(null),
        });
      const keep = sides.map((side) => side.state());
      sides.forEach((side) => side.end());
      if (keep.length > 0) start = { ...start, ...keep[0] };
      if (two && start.temperature_2 === undefined)
        start.temperature_2 = String(store.temperature * 4);
      sides = two ? [make(0), make(1)] : [make(0)];
      place.classList.toggle('two', two);
      fill(
        place,
        sides.map((side) => side.element),
      );
    }

    const details = h(
      'details',
      {},
      h('summary', {}, 'Which rows'),
      h(
        'div',
        { class: 'fields' },
        kFilter.map(([name, title]) => field(title, filter[name])),
        field('Attend to', source),
      ),
    );
    details.open = kFilter.some(([name]) => start[name]) || (start.source ?? '') !== '';
    drawSides();
    fill(
      body,
      panel(
        'Question',
        h(
          'div',
          { class: 'question' },
          field('Ask by', kinds),
          h('div', { class: 'field grow' }, h('label', { for: text.id }, 'Query'), text, hint),
        ),
        details,
        h(
          'div',
          { class: 'pager' },
          compare.element,
          copyAs(() =>
            lookupTexts({
              server: about.server,
              store: store.name,
              query: query === null ? [] : Array.from(floats(query), shortest),
              options: { ...sides[0].options(), ...sourceNow() },
              filter: filterNow(),
              top: 12,
            }),
          ),
        ),
      ),
      place,
    );
    changedQuery();
    return () => {
      [resolve, resolveSoon, runAll, labels].forEach((each) => each.end());
      sides.forEach((side) => side.end());
    };
  }
}

export const ask = { name: 'ask', title: 'Ask', mount };
