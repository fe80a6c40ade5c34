// The parts of the console's pages that need no browser:  node modules_test.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { cpp, flagText, python, shell, whole } from '../../client/console/web/src/copy_as.js';
import { labelText, splitLabels } from '../../client/console/web/src/label_list.js';
import { latest } from '../../client/console/web/src/latest.js';
import { linkTo, readLink } from '../../client/console/web/src/link.js';
import {
  difference,
  meanOf,
  parseMetrics,
  quantile,
  sumOf,
} from '../../client/console/web/src/metrics_text.js';
import { lookupTexts } from '../../client/console/web/src/request_text.js';
import {
  parseQuery,
  parseVector,
  QueryError,
  quote,
} from '../../client/console/web/src/query_text.js';

test('a query is a sum of terms', () => {
  const term = (factor, kind, value) => ({ factor, kind, value });
  const cases = {
    'row 12': [term(1, 'position', 12)],
    ' - row 3': [term(-1, 'position', 3)],
    'row 3 - row 5+0.5 * row 8': [
      term(1, 'position', 3),
      term(-1, 'position', 5),
      term(0.5, 'position', 8),
    ],
    'row 3 -0.5*row 5': [term(1, 'position', 3), term(-0.5, 'position', 5)],
    '2e-1 * id 18446744073709551615': [term(0.2, 'id', '18446744073709551615')],
    'label "a \\"b\\" \\\\" + word "x"': [term(1, 'label', 'a "b" \\'), term(1, 'word', 'x')],
    'row 1 - [1, -2 .5]': [
      term(1, 'position', 1),
      { factor: -1, kind: 'vector', value: [1, -2, 0.5] },
    ],
    '1, 2, -3.5': [{ kind: 'vector', value: [1, 2, -3.5], factor: 1 }],
    0.25: [{ kind: 'vector', value: [0.25], factor: 1 }],
  };
  for (const [text, terms] of Object.entries(cases))
    assert.deepEqual(parseQuery(text), terms, text);
  assert.deepEqual(parseVector('[1 2\n3]'), [{ kind: 'vector', value: [1, 2, 3], factor: 1 }]);
  for (const text of [
    '',
    'row',
    'row x',
    'row 1 row 2',
    'row 1.5',
    'apple',
    'label x',
    '2 row 1',
    'row 1 +',
    '[1',
    'row -1',
  ]) {
    assert.throws(() => parseQuery(text), QueryError, text);
  }
  for (const label of ['a', 'a "b" \\', '<img>'])
    assert.deepEqual(parseQuery(`label ${quote(label)}`)[0].value, label);
});

test('labels are split as on the command line', () => {
  assert.deepEqual(splitLabels(' a, b ,"c, \\"d\\"",, e'), ['a', 'b', 'c, "d"', 'e']);
  assert.deepEqual(splitLabels(''), []);
  for (const label of ['a', 'a b', 'a,b', ' a', '"', '<img src=x>', '\x7f\x85'])
    assert.deepEqual(splitLabels(labelText(label)), [label]);
});

test('copied texts hold what a link or a label has as text alone', () => {
  const hostile = [
    "a'b",
    '$(rm -rf ~)',
    '`x` "y" \\',
    '=ls',
    'a\nb',
    '\x15rm -rf ~\r',
    '\x7f\x7f',
    '\x9b2Jé',
    '-x',
  ];
  for (const text of hostile) {
    const quoted = shell(text);
    assert.doesNotMatch(quoted, /[\x00-\x1f\x7f-\x9f]/);
    const echoed = spawnSync('bash', ['-c', `printf %s ${quoted}`], { encoding: 'utf8' });
    assert.equal(echoed.stdout, text);
    assert.equal(JSON.parse(python(text)), text);
    assert.doesNotMatch(cpp(text), /[\x00-\x1f\x7f]|[^\\]"./);
  }
  assert.equal(flagText('label', '-x'), '--label=-x');
  assert.equal(flagText('label', 'x'), '--label x');
  assert.deepEqual(['7', '7); f('].map(whole), ['7', '"7); f("']);
  const texts = lookupTexts({
    server: 'h:1',
    store: 's',
    query: ['1'],
    options: { temperature: 1 },
    filter: { ids: ['7; reboot', '8'], any_labels: ['-c'] },
    top: 12,
  });
  assert.match(texts.cli, /--label=-c --id '7; reboot' --id 8/);
  assert.match(texts.python, /ids=\["7; reboot", 8\]/);
  assert.match(texts.cpp, /add_ids\("7; reboot"\);/);
});

test('a link brings a state back', () => {
  const state = { store: 'a/b', query: 'row 1 + label "&=#é"' };
  assert.deepEqual(readLink(linkTo('ask', { ...state, top_k: '', source: null })), {
    view: 'ask',
    state,
  });
  assert.deepEqual(readLink('#enter=00'), { view: '', state: {} });
  assert.equal(linkTo('server'), '#/server');
});

test('only the latest request waits', async () => {
  const started = [];
  const finished = [];
  const gates = [];
  const ask = latest(
    (argument) => {
      started.push(argument);
      return new Promise((resolve, reject) => {
        gates.push({ resolve, reject });
      });
    },
    (_, argument) => finished.push(argument),
    (error, argument) => finished.push(`${error} ${argument}`),
  );
  const turn = () =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });
  for (const argument of [1, 2, 3, 4]) ask(argument);
  assert.deepEqual(started, [1]);
  gates[0].resolve();
  await turn();
  assert.deepEqual(started, [1, 4]);
  ask(5);
  gates[1].reject('no');
  await turn();
  assert.deepEqual(
    [started, finished],
    [
      [1, 4, 5],
      [1, 'no 4'],
    ],
  );
  ask.end();
  gates[2].resolve();
  await turn();
  assert.deepEqual(finished, [1, 'no 4']);
});

test('metrics tell rates, means and quantiles between two scrapes', () => {
  const scrape = (fast, slow) =>
    parseMetrics(
      [
        '# HELP t x',
        't_bucket{method="A",le="0.1"} ' + fast,
        `t_bucket{method="A",le="1"} ${fast + slow}`,
        `t_bucket{method="A",le="+Inf"} ${fast + slow}`,
        't_bucket{method="B",le="+Inf"} 7',
        `t_sum{method="A"} ${slow}`,
        `t_count{method="A"} ${fast + slow}`,
        'c{label="a\\"b,}"} 2.5',
        'plain 1e3',
        '',
      ].join('\n'),
    );
  const before = scrape(10, 0);
  const after = scrape(20, 30);
  assert.equal(sumOf(after, 'plain'), 1000);
  assert.equal(sumOf(after, 'c', { label: 'a\\"b,}' }), 2.5);
  assert.equal(sumOf(after, 'missing'), 0);
  assert.equal(difference(before, after, 't_count', { method: 'A' }), 40);
  assert.equal(meanOf(before, after, 't', { method: 'A' }), 30 / 40);
  assert.equal(meanOf(before, after, 't', { method: 'C' }), null);
  assert.equal(quantile(before, after, 't', 0.5, { method: 'A' }), 0.1 + 0.9 * (10 / 30));
  assert.equal(quantile(before, after, 't', 0.25, { method: 'A' }), 0.1);
  assert.equal(quantile(before, before, 't', 0.5, { method: 'A' }), null);
  const restarted = scrape(2, 0);
  assert.equal(difference(after, restarted, 't_count', { method: 'A' }), 2);
  assert.equal(quantile(after, restarted, 't', 0.5, { method: 'A' }), 0.05);
});
