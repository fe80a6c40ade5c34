// The stores, and the rows of one.
import { call, NoSession } from '../api.js';
import { chart } from '../charts.js';
import { fill, h, input, newId, notice, panel } from '../dom.js';
import { repeat, settled } from '../latest.js';
import { linkTo } from '../link.js';
import { bytes, count, number, shortest, time } from '../numbers.js';
import { rowsPanel } from './rows.js';

const kPollMilliseconds = 2000;
const kGrowthPoints = 300;

function facts(pairs) {
  return h(
    'dl',
    { class: 'facts' },
    pairs.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
}

function memoryText(memory) {
  return `${memory.name} (${memory.kind}${memory.decay === undefined ? '' : ` ${shortest(memory.decay)}`})`;
}

function storeFacts(store) {
  const labels = Object.entries(store.labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');
  return facts([
    ['Live rows', count(store.live_row_count)],
    ['Appended rows', count(store.row_count)],
    ['Revision', count(store.revision)],
    ['Memory', bytes(store.byte_size)],
    ['Key × value', `${count(store.key_dim)} × ${count(store.value_dim)}`],
    ['Heads', count(store.num_heads)],
    ['Score', store.score],
    ['Temperature', number(store.temperature)],
    ['Storage', store.storage],
    ['Inputs', store.input_dim > 0 ? count(store.input_dim) : 'none'],
    ['Created', time(store.create_seconds)],
    ['Memories', store.memories.map(memoryText).join(', ')],
    ['Labels', labels === '' ? 'none' : labels],
  ]);
}

/** How the rows of a store grow while the view is open. */
function growth(name, { failed, recovered, seen }) {
  const drawing = chart({
    title: 'Growth while this view is open',
    x: { time: true },
    series: [
      { label: 'appended rows', width: 2 },
      { label: 'live rows', tone: 'muted', dashed: true },
    ],
  });
  const points = [[], [], []];
  let failing = false;
  const stop = repeat(kPollMilliseconds, async () => {
    try {
      const store = await call('store', { name });
      points[0].push(Date.now() / 1000);
      points[1].push(store.row_count);
      points[2].push(store.live_row_count);
      if (points[0].length > kGrowthPoints) points.forEach((each) => each.shift());
      const grown = store.row_count - points[1][0];
      drawing.set(
        points,
        `${count(grown)} rows in ${Math.round(points[0].at(-1) - points[0][0])} s`,
      );
      seen(store);
      if (failing) recovered();
      failing = false;
    } catch (error) {
      failing = true;
      failed(error);
    }
  });
  return {
    element: drawing.element,
    end: () => {
      stop();
      drawing.end();
    },
  };
}

function mount({ root, state, about, note, locked }) {
  const message = notice();
  const listing = h('tbody');
  const more = h(
    'button',
    { type: 'button', class: 'quiet', onclick: () => load(nextToken) },
    'More stores',
  );
  const detail = h('div', { class: 'detail' });
  let nextToken = '';
  let ends = [];
  const failed = (error) =>
    error instanceof NoSession ? locked(error.message) : message.show(error.message);
  const prefix = input(
    { type: 'search', id: newId('prefix'), value: state.prefix ?? '', placeholder: 'all' },
    () => {
      note({ ...current, prefix: prefix.value });
      reload();
    },
  );
  const reload = settled(150, () => load(''));
  let current = { ...state };
  let loads = 0;
  let opens = 0;
  let left = false;

  async function load(token) {
    loads += 1;
    const mine = loads;
    try {
      const page = await call('stores', { prefix: prefix.value, page_token: token });
      if (mine !== loads || left) return;
      if (token === '') fill(listing);
      listing.append(...page.stores.map(storeRow));
      if (listing.children.length === 0)
        listing.append(
          h(
            'tr',
            {},
            h(
              'td',
              { colspan: 8, class: 'none' },
              prefix.value === ''
                ? 'No stores yet. softlookup store create makes one.'
                : 'No store has such a name.',
            ),
          ),
        );
      nextToken = page.next_page_token;
      more.hidden = nextToken === '';
      if (!current.store && page.stores.length > 0 && token === '') open(page.stores[0].name);
    } catch (error) {
      if (mine === loads && !left) failed(error);
    }
  }

  function storeRow(store) {
    const damaged = store.damage !== '';
    const choose = h(
      'button',
      { type: 'button', class: 'link', onclick: () => open(store.name) },
      store.name,
    );
    return h(
      'tr',
      {
        'data-store': store.name,
        'aria-selected': null,
        class: store.name === current.store ? 'chosen' : null,
      },
      h('th', { scope: 'row' }, choose),
      damaged
        ? h('td', { colspan: 7, class: 'bad-text' }, `damaged: ${store.damage}`)
        : [
            h('td', { class: 'num' }, count(store.live_row_count)),
            h('td', { class: 'num wide-only' }, `${store.key_dim} × ${store.value_dim}`),
            h('td', { class: 'wide-only' }, store.storage),
            h('td', { class: 'wide-only' }, store.score),
            h('td', { class: 'num wide-only' }, number(store.temperature)),
            h('td', { class: 'num wide-only' }, count(store.revision)),
            h('td', { class: 'num' }, bytes(store.byte_size)),
          ],
    );
  }

  async function open(name, rowState = {}) {
    opens += 1;
    const mine = opens;
    current = { ...rowState, prefix: prefix.value, store: name };
    note(current);
    message.show(null);
    for (const row of listing.querySelectorAll('tr'))
      row.classList.toggle('chosen', row.dataset.store === name);
    ends.forEach((end) => end());
    ends = [];
    try {
      const store = await call('store', { name });
      if (mine !== opens || left) return;
      if (store.damage !== '') {
        fill(detail, panel(name, h('p', { class: 'bad-text' }, store.damage)));
        return;
      }
      const sizes = h('div', {}, storeFacts(store));
      const grown = growth(name, {
        failed,
        recovered: () => message.show(null),
        seen: (fresh) => fill(sizes, storeFacts(fresh)),
      });
      const rows = rowsPanel({
        server: about.server,
        store,
        state: rowState,
        failed,
        answered: () => message.show(null),
        note: (rowsState) => {
          current = { ...rowsState, prefix: prefix.value, store: name };
          note(current);
        },
      });
      ends = [grown.end, rows.end];
      fill(
        detail,
        panel(
          name,
          h(
            'p',
            { class: 'links' },
            h('a', { href: linkTo('ask', { store: name }) }, 'Ask'),
            h('a', { href: linkTo('attention', { store: name }) }, 'Attention'),
            h('a', { href: linkTo('memories', { store: name }) }, 'Memories'),
          ),
          sizes,
          grown.element,
        ),
        rows.element,
      );
    } catch (error) {
      if (mine === opens && !left) failed(error);
    }
  }

  const heads = [
    ['Name'],
    ['Rows', 'num'],
    ['Key × value', 'num wide-only'],
    ['Storage', 'wide-only'],
    ['Score', 'wide-only'],
    ['Temperature', 'num wide-only'],
    ['Revision', 'num wide-only'],
    ['Memory', 'num'],
  ];
  root.append(
    message.element,
    panel(
      'Stores',
      h('div', { class: 'field' }, h('label', { for: prefix.id }, 'Names that begin with'), prefix),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'List of stores' },
        h(
          'table',
          { class: 'stores' },
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              heads.map(([text, kind]) => h('th', { scope: 'col', class: kind }, text)),
            ),
          ),
          listing,
        ),
      ),
      more,
    ),
    detail,
  );
  more.hidden = true;
  load('');
  if (state.store) open(state.store, state);
  return () => {
    left = true;
    reload.end();
    ends.forEach((end) => end());
  };
}

export const stores = { name: 'stores', title: 'Stores', mount };
