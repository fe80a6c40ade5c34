// The server's life: calls, latencies, queue, sharing and memory from /metrics; health and backups.
import { call, NoSession } from '../api.js';
import { chart, kBinary } from '../charts.js';
import { fill, h, notice, panel, select, field } from '../dom.js';
import { repeat } from '../latest.js';
import { difference, meanOf, parseMetrics, quantile, sumOf } from '../metrics_text.js';
import { bytes, count, number, seconds, time } from '../numbers.js';

const kPollMilliseconds = 2000;
const kPoints = 150;
const kMethods = [
  'Lookup',
  'StreamLookup',
  'Append',
  'StreamAppend',
  'Attend',
  'ReadRows',
  'GetMemory',
  'ListStores',
];
const kSharing = { calls: 'softlookup_pass_lookups', queries: 'softlookup_pass_queries' };

const kTiles = [
  ['health', 'Health'],
  ['rate', 'Calls a second'],
  ['errors', 'Errors a second'],
  ['p50', 'Median latency'],
  ['p99', '99th percentile'],
  ['queue', 'Waiting lookups'],
  ['shared', 'Lookups a pass'],
  ['memory', 'Memory of stores'],
  ['resident', 'Resident memory'],
  ['stores', 'Stores'],
];

function mount({ root, state, about, note, locked }) {
  const message = notice();
  const figures = Object.fromEntries(
    kTiles.map(([name]) => [name, h('dd', { 'data-figure': name }, '–')]),
  );
  const tiles = h(
    'dl',
    { class: 'tiles' },
    kTiles.map(([name, title]) => h('div', {}, h('dt', {}, title), figures[name])),
  );
  const methods = select([['', 'All methods'], ...kMethods], state.method ?? '', () => {
    note({ method: methods.value });
    reset();
  });
  const x = { time: true };
  const charts = {
    calls: chart({
      title: 'Calls a second',
      x,
      y: { zero: true },
      series: [{ label: 'calls' }, { label: 'errors', tone: 'muted', dashed: true }],
    }),
    latency: chart({
      title: 'Latency',
      x,
      y: { zero: true, text: seconds },
      series: [
        { label: 'p99' },
        { label: 'p90', tone: 'muted' },
        { label: 'p50', tone: 'muted', dashed: true },
      ],
    }),
    queue: chart({
      title: 'Wait for a thread or a pass, p99',
      x,
      y: { zero: true, text: seconds },
      series: [{ label: 'wait' }],
    }),
    sharing: chart({
      title: 'Scan sharing',
      x,
      y: { zero: true },
      series: [
        { label: 'queries a pass' },
        { label: 'lookups a pass', tone: 'muted', dashed: true },
      ],
    }),
    memory: chart({
      title: 'Memory',
      x,
      y: { zero: true, text: bytes, incrs: kBinary },
      series: [{ label: 'stores' }, { label: 'resident', tone: 'muted', dashed: true }],
    }),
    rows: chart({
      title: 'Rows scanned a second',
      x,
      y: { zero: true },
      series: [{ label: 'scanned rows' }],
    }),
  };
  const backups = h('tbody');
  const backupNote = h('p', { class: 'hint' });
  let points = [];
  let before = null;
  let beforeTime = 0;
  function reset() {
    points = [];
    before = null;
  }

  function sample(text) {
    const after = parseMetrics(text);
    const now = performance.now() / 1000;
    const span = now - beforeTime;
    const wanted = methods.value === '' ? {} : { method: methods.value };
    const grown = (name, labels = wanted) =>
      before === null ? null : difference(before, after, name, labels) / span;
    const good = grown('softlookup_calls_total', { ...wanted, code: 'OK' });
    const calls = grown('softlookup_calls_total');
    const latency = (part) =>
      before === null
        ? null
        : quantile(before, after, 'softlookup_call_duration_seconds', part, wanted);
    const point = {
      time: Date.now() / 1000,
      calls,
      errors: calls === null ? null : calls - good,
      p50: latency(0.5),
      p90: latency(0.9),
      p99: latency(0.99),
      wait:
        before === null ? null : quantile(before, after, 'softlookup_lookup_queue_seconds', 0.99),
      lookups: before === null ? null : meanOf(before, after, kSharing.calls),
      queries: before === null ? null : meanOf(before, after, kSharing.queries),
      bytes: sumOf(after, 'softlookup_memory_used_bytes'),
      resident: sumOf(after, 'process_resident_memory_bytes'),
      scanned: grown('softlookup_scanned_rows_total', {}),
    };
    points.push(point);
    if (points.length > kPoints) points.shift();
    const limit = sumOf(after, 'softlookup_memory_limit_bytes');
    const texts = {
      rate: number(point.calls),
      errors: number(point.errors),
      p50: point.p50 === null ? '–' : seconds(point.p50),
      p99: point.p99 === null ? '–' : seconds(point.p99),
      queue: count(sumOf(after, 'softlookup_waiting_lookups')),
      shared: number(point.lookups),
      memory: `${bytes(point.bytes)}${limit > 0 ? ` of ${bytes(limit)}` : ''}`,
      resident: bytes(point.resident),
      stores: count(sumOf(after, 'softlookup_stores')),
    };
    for (const [name, value] of Object.entries(texts)) figures[name].textContent = value;
    const column = (name) => points.map((each) => each[name]);
    const times = column('time');
    charts.calls.set(
      [times, column('calls'), column('errors')],
      `${texts.rate} calls and ${texts.errors} errors a second now`,
    );
    charts.latency.set(
      [times, column('p99'), column('p90'), column('p50')],
      `half within ${texts.p50}, 99 % within ${texts.p99} now, as the buckets tell`,
    );
    charts.queue.set([times, column('wait')], `${texts.queue} wait now`);
    charts.sharing.set(
      [times, column('queries'), column('lookups')],
      point.queries === null
        ? 'no lookup of late'
        : `${number(point.queries)} queries go over the rows together now`,
    );
    charts.memory.set(
      [times, column('bytes'), column('resident')],
      `${texts.memory} by stores, ${texts.resident} by the process`,
    );
    charts.rows.set([times, column('scanned')], `${number(point.scanned)} rows a second now`);
    root.dataset.samples = String(points.length);
    before = after;
    beforeTime = now;
  }

  async function health() {
    try {
      const { status } = await call('health');
      figures.health.textContent = status;
      figures.health.classList.toggle('bad-text', status !== 'serving');
    } catch (error) {
      if (error instanceof NoSession) locked(error.message);
      figures.health.textContent = 'no answer';
      figures.health.classList.add('bad-text');
    }
  }
  const stop = repeat(kPollMilliseconds, async () => {
    const asked = health();
    try {
      sample((await call('metrics')).text);
      message.show(null);
    } catch (error) {
      if (error instanceof NoSession) locked(error.message);
      else message.show(error.message, 'warn');
    }
    await asked;
  });

  async function listBackups() {
    try {
      const { backups: list } = await call('backups');
      fill(
        backups,
        list
          .reverse()
          .map((backup) =>
            h(
              'tr',
              {},
              h('th', { scope: 'row' }, backup.name),
              h('td', {}, time(backup.create_seconds)),
              h('td', { class: 'num' }, bytes(backup.byte_size)),
            ),
          ),
      );
      backupNote.textContent =
        list.length === 0 ? 'There are none yet. softlookup backup create makes one.' : '';
    } catch (error) {
      if (error instanceof NoSession) locked(error.message);
      else backupNote.textContent = error.message;
    }
  }
  root.append(
    message.element,
    panel(
      'Now',
      h(
        'p',
        { class: 'hint' },
        `${about.server}, figures of http://${about.metrics}/metrics, softlookup ${about.version}`.replace(
          /softlookup softlookup/,
          'softlookup',
        ),
      ),
      tiles,
      h('div', { class: 'fields' }, field('Calls and latency of', methods)),
    ),
    panel(
      'While this view is open',
      h(
        'div',
        { class: 'charts' },
        Object.values(charts).map((each) => each.element),
      ),
    ),
    panel(
      'Backups',
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Backups' },
        h(
          'table',
          {},
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              [['Name'], ['Made'], ['Size', 'num']].map(([text, kind]) =>
                h('th', { scope: 'col', class: kind }, text),
              ),
            ),
          ),
          backups,
        ),
      ),
      backupNote,
    ),
  );
  listBackups();
  return () => {
    stop();
    Object.values(charts).forEach((each) => each.end());
  };
}

export const server = { name: 'server', title: 'Server', mount };
