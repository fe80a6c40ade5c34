// The rows of a store, filtered and page by page.
import { call } from '../api.js';
import { copyAs, cpp, flagText, python, shell, whole } from '../copy_as.js';
import { fill, h, input, newId, panel } from '../dom.js';
import { labelText, splitLabels } from '../label_list.js';
import { latest, settled } from '../latest.js';
import { linkTo } from '../link.js';
import { count, number } from '../numbers.js';

const kPageRows = 50;
const kShownComponents = 5;
const kNumberWidth = 9;

function vectorText({ size, first }) {
  const numbers = first
    .slice(0, kShownComponents)
    .map((value) => number(value).padStart(kNumberWidth))
    .join(' ');
  return size > kShownComponents ? `${numbers}  … ${count(size)}` : numbers;
}

export const listOf = (text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
export const wholeOf = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : null);

function rowTexts(server, store, { begin, end, labels, ids }) {
  const flags = [
    begin !== null ? `--begin ${begin}` : '',
    end !== null ? `--end ${end}` : '',
    ...labels.map((label) => flagText('label', labelText(label))),
    ids.length > 0 ? flagText('id', ids.join(',')) : '',
  ].filter((flag) => flag !== '');
  const where = [
    begin !== null ? `begin=${begin}` : '',
    end !== null ? `end=${end}` : '',
    labels.length > 0 ? `labels=${python(labels)}` : '',
    ids.length > 0 ? `ids=[${ids.map(whole).join(', ')}]` : '',
  ].filter((part) => part !== '');
  return {
    cli: [`softlookup --server ${shell(server)} rows`, shell(store), ...flags].join(' '),
    python: `for page in client.store(${python(store)}).rows(${where.length > 0 ? `sl.rows(${where.join(', ')})` : ''}):\n    for row in page:\n        print(row.position, row.id, row.labels)`,
    cpp: [
      'softlookup::v1::RowFilter filter;',
      begin !== null ? `filter.set_begin(${begin});` : '',
      end !== null ? `filter.set_end(${end});` : '',
      ...labels.map((label) => `filter.add_any_labels(${cpp(label)});`),
      ...ids.map((id) => `filter.add_ids(${whole(id)});`),
      `client->ReadRows(${cpp(store)}, filter, [](const softlookup::v1::ReadRowsResponse& page) { return true; });`,
    ]
      .filter((line) => line !== '')
      .join('\n'),
  };
}

/** `state` has begin, end, label and id, as texts. Returns {element, end}. */
export function rowsPanel({ server, store, state, failed, answered, note }) {
  const body = h('tbody');
  const where = h('span', { class: 'hint', role: 'status' });
  let pages = [state.begin ?? '']; // The beginnings of the pages up to this one.
  let next = null;
  const fields = {};
  for (const [name, label, placeholder] of [
    ['begin', 'From position', '0'],
    ['end', 'Below position', count(store.row_count)],
    ['label', 'With one of the labels', 'a, b'],
    ['id', 'With one of the ids', '7, 8'],
  ]) {
    const control = input(
      {
        type: 'text',
        id: newId(name),
        value: state[name] ?? '',
        placeholder,
        inputmode: name === 'label' ? null : 'numeric',
      },
      () => {
        pages = [fields.begin.value];
        note(stateNow());
        reload();
      },
    );
    fields[name] = control;
    control.dataset.label = label;
  }
  const stateNow = () =>
    Object.fromEntries(
      Object.entries(fields).map(([name, control]) => [name, control.value.trim()]),
    );
  const filterNow = () => ({
    begin: wholeOf(fields.begin.value),
    end: wholeOf(fields.end.value),
    labels: splitLabels(fields.label.value),
    ids: listOf(fields.id.value),
  });

  const ask = latest(
    (begin) => {
      const { end, labels, ids } = filterNow();
      return call('rows', {
        store: store.name,
        count: kPageRows,
        begin: wholeOf(begin),
        end,
        any_labels: labels,
        ids,
      });
    },
    (answer) => {
      answered();
      next = answer.next;
      show(answer.rows);
    },
    failed,
  );
  const turn = (page) => {
    pages = page;
    forth.disabled = true; // What is next is not known yet.
    ask(pages.at(-1));
  };
  const reload = settled(200, () => ask(pages.at(-1)));
  const back = h('button', { type: 'button', onclick: () => turn(pages.slice(0, -1)) }, 'Previous');
  const forth = h(
    'button',
    { type: 'button', onclick: () => turn([...pages, String(next)]) },
    'Next',
  );

  function show(rows) {
    fill(
      body,
      rows.map((row) =>
        h(
          'tr',
          {},
          h(
            'td',
            { class: 'num' },
            h(
              'a',
              {
                href: linkTo('ask', { store: store.name, query: `row ${row.position}` }),
                'aria-label': `Ask with row ${row.position}`,
              },
              count(row.position),
            ),
          ),
          h('td', { class: 'num' }, row.id ?? '–'),
          h(
            'td',
            { class: 'labels' },
            row.labels.map((label) => h('span', { class: 'tag' }, label)),
          ),
          h('td', { class: 'vector wide-only' }, vectorText(row.key)),
          h('td', { class: 'vector wide-only' }, vectorText(row.value)),
        ),
      ),
    );
    if (rows.length === 0)
      fill(body, h('tr', {}, h('td', { colspan: 5, class: 'none' }, 'No row passes the filter.')));
    where.textContent =
      rows.length === 0
        ? ''
        : `positions ${count(rows[0].position)} to ${count(rows.at(-1).position)}`;
    back.disabled = pages.length < 2;
    forth.disabled = next === null;
  }

  const element = panel(
    'Rows',
    h(
      'div',
      { class: 'fields' },
      Object.values(fields).map((control) =>
        h(
          'div',
          { class: 'field' },
          h('label', { for: control.id }, control.dataset.label),
          control,
        ),
      ),
    ),
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Rows' },
      h(
        'table',
        { class: 'rows' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            [
              ['Position', 'num'],
              ['Id', 'num'],
              ['Labels'],
              ['Key', 'wide-only'],
              ['Value', 'wide-only'],
            ].map(([text, kind]) => h('th', { scope: 'col', class: kind }, text)),
          ),
        ),
        body,
      ),
    ),
    h(
      'div',
      { class: 'pager' },
      back,
      forth,
      where,
      copyAs(() => rowTexts(server, store.name, filterNow())),
    ),
  );
  ask(pages.at(-1));
  return {
    element,
    end: () => {
      reload.end();
      ask.end();
    },
  };
}
