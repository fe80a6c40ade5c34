// The console in a real browser:  node console_test.mjs SERVER TOOL WORK_DIRECTORY
//
// Opens each view, uses it and reads it back. With SOFTLOOKUP_SHOTS=DIRECTORY, leaves pictures of all
// views there. Prints figures, and no verdict depends on them.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { answerOf, keyOf, kHostile, makeStore } from './rows.mjs';
import { Workspace } from './workspace.mjs';

const [serverBinary, toolBinary, work] = process.argv.slice(2).map((file) => path.resolve(file));
const shots = process.env.SOFTLOOKUP_SHOTS;
const workspace = new Workspace({ serverBinary, toolBinary, work });
const views = ['stores', 'ask', 'attention', 'memories', 'server'];
const requests = [];
const troubles = [];
let people;
let many;
let context;
let page;
let usedLink;

/** A new page whose requests and errors are noted. */
async function openPage(from = context) {
  const opened = await from.newPage();
  opened.on('request', (request) => requests.push(request.url()));
  opened.on('console', (message) => {
    if (message.type() === 'error') troubles.push(message.text());
  });
  opened.on('pageerror', (error) => troubles.push(String(error)));
  return opened;
}

// In an address, a + would be a space.
const go = (hash) => page.goto(`${workspace.origin}/${hash.replace(/\+/g, '%2B')}`);
const figure = (name, within = page) =>
  within.locator(`[data-figure="${name}"]`).first().textContent();
const numberOf = (text) => Number(text.replace(/,/g, '').replace('\u2212', '-'));
const near = (actual, expected, tolerance, what) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${what}: ${actual}, not ${expected}`);
const answered = (temperature) =>
  page.locator(`[data-answered="${temperature}"]`).first().waitFor();

/** Moves a range as a hand would: to a part of its way. */
async function slide(locator, part) {
  await locator.evaluate((range, to) => {
    range.value = String(Number(range.min) + to * (Number(range.max) - Number(range.min)));
    range.dispatchEvent(new Event('input', { bubbles: true }));
  }, part);
}

before(async () => {
  await workspace.open();
  people = makeStore(workspace, {
    name: 'team/people',
    count: 60,
    keyDim: 4,
    valueDim: 3,
    temperature: 0.25,
    flags: ['--memory', 'recent=decayed-average:0.9', '--label', 'team=search'],
    labels: Array.from({ length: 60 }, (_, i) => (i < kHostile.length ? kHostile[i] : `row-${i}`)),
    ids: Array.from({ length: 60 }, (_, i) => `1844674407370955${1000 + i}`),
  });
  many = makeStore(workspace, {
    name: 'many',
    count: 100000,
    keyDim: 32,
    valueDim: 8,
    temperature: 1,
  });
  context = await workspace.browser.newContext({ viewport: { width: 1280, height: 900 } });
  page = await openPage();
});

after(() => workspace.close());

test('the link lets one browser in', async () => {
  usedLink = workspace.link;
  await page.goto(usedLink);
  await page.locator('tr[data-store="team/people"]').waitFor();
  assert.ok(!page.url().includes('enter='), 'the token has left the address');
  const other = await workspace.browser.newContext();
  const stranger = await other.newPage();
  for (const link of [usedLink, `${workspace.origin}/`]) {
    await stranger.goto('about:blank');
    await stranger.goto(link);
    await stranger.getByRole('heading', { name: 'This browser is not let in' }).waitFor();
  }
  await other.close();
});

test('stores and their rows are shown, filtered and paged', async () => {
  await go('#/stores?store=team/people');
  await page.locator('.rows tbody tr').first().waitFor();
  const facts = await page.locator('.facts').first().textContent();
  for (const text of [
    '60',
    '4 × 3',
    'dot',
    'float32',
    'recent (decayed-average 0.9)',
    'team=search',
  ])
    assert.ok(facts.includes(text), text);
  assert.equal(await page.locator('.rows tbody tr').count(), 50);
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByText('positions 50 to 59').waitFor();
  await page.getByLabel('With one of the labels').fill('row-7, row-9');
  await page.getByText('positions 7 to 9').waitFor();
  assert.equal(await page.locator('.rows tbody tr').count(), 2);
  assert.ok((await page.locator('.rows tbody').textContent()).includes('18446744073709551007'));
  workspace.tool('store', 'create', 'grows', '--key-dim', '1', '--value-dim', '1');
  await page.getByLabel('Names that begin with').fill('gro');
  await page.locator('tr[data-store="grows"]').waitFor();
  assert.equal(await page.locator('tr[data-store="many"]').count(), 0);
});

test('hostile labels are text', async () => {
  await go('#/stores?store=team/people');
  await page.locator('.rows tbody tr').first().waitFor();
  const shown = await page.locator('.rows .tag').allTextContents();
  assert.deepEqual(shown.slice(0, kHostile.length), kHostile);
  await go(
    `#/ask?store=team/people&query=${encodeURIComponent(`label "${kHostile[0].replace(/"/g, '\\"')}"`)}`,
  );
  await page.locator('.heaviest tbody tr').first().waitFor();
  await go(
    `#/stores?store=${encodeURIComponent(kHostile[0])}&prefix=${encodeURIComponent(kHostile[1])}`,
  );
  await page.locator('.notice').waitFor();
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('main img, main script').count(), 0);
});

test('every place of the temperature handle is a lookup, and right', async () => {
  await go('#/ask?store=team/people&query=row 3');
  await answered(0.25);
  const query = keyOf(people, 3);
  for (const part of [0, 0.3, 0.5, 0.6, 0.85]) {
    await slide(page.locator('.temperature'), part);
    const temperature = Number(await page.getByLabel('Temperature, exact').inputValue());
    await answered(temperature);
    const expected = answerOf(people, query, temperature);
    near(
      numberOf(await figure('log_sum_exp')),
      expected.logSumExp,
      1e-5 * Math.max(1, Math.abs(expected.logSumExp)) * 5,
      'log-sum-exp',
    );
    near(numberOf(await figure('entropy')), expected.entropy, 2e-3, 'entropy');
    const first = page.locator('.heaviest tbody tr').first();
    const position = Number(await first.getAttribute('data-position'));
    near(expected.weights[position], Math.max(...expected.weights), 1e-6, 'the heaviest row');
    near(
      Number(await first.locator('.weight').textContent()),
      expected.weights[position],
      1e-4,
      'its weight',
    );
    const values = (await page.locator('.values').textContent()).split('  ').map(numberOf);
    expected.values.forEach((value, i) => near(values[i], value, 1e-3, `value ${i}`));
  }
  const temperature = Number(await page.getByLabel('Temperature, exact').inputValue());
  const { weights } = answerOf(people, query, temperature);
  await page.waitForFunction(
    (sum) =>
      Math.abs(JSON.parse(document.querySelector('.answer').dataset.mass ?? '[0]')[0] - sum) < 1e-4,
    weights[0],
  );
  const mass = JSON.parse(await page.locator('.answer').getAttribute('data-mass'));
  mass.forEach((weight, i) => near(weight, weights[i], 1e-3, `the weight over position ${i}`));
});

test('a query may be numbers, a word or a sum; a wrong one says why', async () => {
  await go('#/ask?store=team/people&query=row 3 - 0.5 * row 5 + id 18446744073709551007');
  await answered(0.25);
  const sum = keyOf(people, 3).map(
    (value, i) => value - 0.5 * keyOf(people, 5)[i] + keyOf(people, 7)[i],
  );
  near(
    numberOf(await figure('log_sum_exp')),
    answerOf(people, sum, 0.25).logSumExp,
    1e-4,
    'of a sum',
  );
  await page.getByLabel('Ask by').selectOption('vector');
  await page.getByLabel('Query', { exact: true }).fill('1, 0, 0.5, -1');
  const expected = answerOf(people, [1, 0, 0.5, -1], 0.25).logSumExp;
  await page.waitForFunction(
    (value) =>
      Math.abs(Number(document.querySelector('[data-figure="log_sum_exp"]').textContent) - value) <
      1e-4,
    expected,
  );
  await page.getByLabel('Query', { exact: true }).fill('1, 0');
  await page.getByText('the query has 2 numbers, but the keys of the store have 4').waitFor();
  await page.getByLabel('Ask by').selectOption('word');
  await page.locator('.notice').waitFor({ state: 'hidden' });
  await page.getByLabel('Ask by').selectOption('sum');
  await page.getByLabel('Query', { exact: true }).fill('row 3 row 4');
  await page.getByText('a + or - between two terms is missing').waitFor();
});

test('two settings stand side by side, and the link brings all back', async () => {
  await go('#/ask?store=team/people&query=row 9&last=40');
  await answered(0.25);
  await page.getByLabel('Two settings side by side').check();
  await page.locator('.side').nth(1).locator('.heaviest tbody tr').first().waitFor();
  await page.locator('.side').nth(0).getByLabel('Temperature, exact').fill('0.7');
  await page.locator('.side').nth(1).getByLabel('Only the top').fill('3');
  await answered(0.7);
  await page
    .locator('.side')
    .nth(1)
    .locator('[data-figure="counted_rows"]')
    .filter({ hasText: /^3$/ })
    .waitFor();
  const link = page.url();
  const copy = await openPage();
  await copy.goto(link);
  await copy
    .locator('.side')
    .nth(1)
    .locator('[data-figure="counted_rows"]')
    .filter({ hasText: /^3$/ })
    .waitFor();
  for (const name of ['log_sum_exp', 'entropy', 'counted_rows']) {
    for (const side of [0, 1]) {
      const [one, other] = [page, copy].map((each) =>
        figure(name, each.locator('.side').nth(side)),
      );
      assert.equal(await other, await one, `${name} of ${side}`);
    }
  }
  assert.equal(
    await copy.locator('.side').nth(0).locator('[data-figure="counted_rows"]').textContent(),
    '40',
  );
  await copy.close();
});

test('the request as a command gives the same answer', async () => {
  await go('#/ask?store=team/people&query=row 9&temperature=0.5&last=40&label="a\'b\\"c", row-30');
  await answered(0.5);
  await page.getByRole('button', { name: 'Copy as' }).click();
  const text = (kind) => page.locator(`pre[data-kind="${kind}"]`).textContent();
  const command = (await text('cli')).replace(/^softlookup/, `"$TOOL" -o json`);
  const { execFileSync } = await import('node:child_process');
  const printed = execFileSync('/bin/sh', ['-c', command], {
    env: { ...process.env, TOOL: toolBinary },
    encoding: 'utf8',
  });
  assert.ok(printed.includes('"log_sum_exp"'), printed);
  const sum = Number(/"log_sum_exp":\s*([-\d.e]+)/.exec(printed)[1]);
  near(numberOf(await figure('log_sum_exp')), sum, 1e-4, 'log-sum-exp of the command');
  assert.match(
    await text('python'),
    /client\.store\("team\/people"\)[\s\S]*temperature=0\.5, where=sl\.rows\(last=40, labels=\["a'b\\"c", "row-30"\]\)/,
  );
  assert.match(
    await text('cpp'),
    /options\.attention\.set_temperature\(0\.5\);[\s\S]*set_last\(40\)/,
  );
  assert.equal(await text('link'), page.url());
  await page.getByRole('button', { name: 'Close' }).click();
});

/** The colours in the middle of the cells of the heat map, by row. */
async function cells() {
  return page.evaluate(() => {
    const { rows, columns } = JSON.parse(document.querySelector('.heat').dataset.drawn);
    const canvas = document.querySelector('.heat canvas');
    const context = canvas.getContext('2d');
    const style = getComputedStyle(document.documentElement);
    const color = (name) =>
      [1, 3, 5].map((at) =>
        parseInt(
          style
            .getPropertyValue(name)
            .trim()
            .slice(at, at + 2),
          16,
        ),
      );
    const pixels = [];
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const at = [
          Math.floor(((column + 0.5) * canvas.width) / columns),
          Math.floor(((row + 0.5) * canvas.height) / rows),
        ];
        pixels.push([...context.getImageData(...at, 1, 1).data].slice(0, 3));
      }
    }
    return { rows, columns, pixels, low: color('--heat-low'), high: color('--heat-high') };
  });
}

/** `weights` has null where a cell does not count. */
function checkCells({ pixels, low, high }, weights) {
  assert.equal(pixels.length, weights.length);
  const most = Math.max(...weights.filter((weight) => weight !== null));
  weights.forEach((weight, i) => {
    if (weight === null) return;
    low.forEach((from, channel) =>
      near(
        pixels[i][channel],
        from + (high[channel] - from) * (weight / most),
        1.6,
        `channel ${channel} of cell ${i}`,
      ),
    );
  });
}

async function heatMap(hash) {
  await go(hash);
  await page.locator('.heat[data-drawn]').waitFor();
  return cells();
}

test('the pixels of the heat map are the weights', async () => {
  const drawn = await heatMap(
    '#/attention?store=team/people&row_begin=20&row_end=44&query_begin=10&query_end=22',
  );
  assert.deepEqual([drawn.rows, drawn.columns], [12, 24]);
  const weights = [];
  for (let row = 10; row < 22; row += 1)
    weights.push(...answerOf(people, keyOf(people, row), 0.25, 20, 44).weights);
  checkCells(drawn, weights);
  await page.locator('.heat').focus();
  for (const key of ['Home', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
  const reading = await page.locator('.reading').textContent();
  for (const text of [
    'Query row-11',
    'Row row-21',
    'Position 21',
    'Id 18446744073709551021',
    `Weight ${weights[25].toFixed(4)}`.slice(0, 11),
  ])
    assert.ok(reading.includes(text), `${text} in ${reading}`);
  const box = await page.locator('.heat canvas').boundingBox();
  await page.mouse.move(box.x + box.width * (3.5 / 24), box.y + box.height * (5.5 / 12));
  await page
    .locator('.reading')
    .filter({ hasText: 'Query row-15' })
    .filter({ hasText: 'Row row-23' })
    .waitFor();
});

test('self attention shows its causal mask', async () => {
  const drawn = await heatMap(
    '#/attention?store=team/people&kind=self&causal=1&row_begin=30&row_end=46',
  );
  const weights = [];
  for (let row = 0; row < 16; row += 1) {
    const seen = answerOf(people, keyOf(people, 30 + row), 0.25, 30, 31 + row).weights;
    weights.push(...seen, ...new Array(15 - row).fill(null));
  }
  checkCells(drawn, weights);
  await page.locator('.heat').focus();
  await page.keyboard.press('End');
  await page.locator('.reading').filter({ hasText: 'Weight not counted' }).waitFor();
});

test('many rows are blocks of the heat map', async () => {
  const drawn = await heatMap(
    '#/attention?store=many&kind=lines&lines=row 5%0Arow 77&row_begin=0&row_end=6400&temperature=2',
  );
  assert.deepEqual([drawn.rows, drawn.columns], [2, 64]);
  const weights = [];
  for (const row of [5, 77]) {
    const each = answerOf(many, keyOf(many, row), 2, 0, 6400).weights;
    for (let block = 0; block < 64; block += 1)
      weights.push(each.slice(block * 100, block * 100 + 100).reduce((a, b) => a + b, 0));
  }
  checkCells(drawn, weights);
});

test('a memory follows its handle', async () => {
  await go('#/memories?store=team/people');
  await page.locator('[data-answered="60"]').waitFor();
  for (const part of [0.25, 0.5, 1]) {
    await slide(page.getByLabel('As of append', { exact: true }), part);
    await page.locator(`[data-answered="${60 * part}"]`).waitFor();
    assert.equal(await figure('weight'), String(60 * part));
    let sum = 0;
    for (let row = 0; row < 60 * part; row += 1) sum += people.values[row * 3];
    const caption = await page
      .locator('.chart', { hasText: 'Value of the memory' })
      .locator('.caption')
      .textContent();
    near(numberOf(/the first (\S+)/.exec(caption)[1]), sum / (60 * part), 1e-3, 'the mean');
  }
  await page.getByLabel('Memory', { exact: true }).selectOption('recent');
  await page.waitForFunction(
    () =>
      Math.abs(
        Number(document.querySelector('[data-figure="weight"]').textContent) -
          (1 - 0.9 ** 60) / 0.1,
      ) < 1e-4,
  );
});

test('the Posner experiment runs as its handles move', async () => {
  await page.getByRole('button', { name: 'Run' }).click();
  const panel = page.locator('.panel', { hasText: 'cueing experiment' });
  await panel.locator('.caption', { hasText: 'the cue matters most' }).waitFor();
  await slide(page.getByLabel('Cue strength'), 1);
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.panel')].some((each) =>
      each.dataset.answered?.includes('"cue_strength":2,'),
    ),
  );
  const shown = JSON.parse(await panel.getAttribute('data-answered'));
  const command = JSON.parse(
    workspace.tool(
      '-o',
      'json',
      'recall',
      '--experiment',
      'posner',
      '--trials',
      '100',
      '--cue-strength',
      '2',
      '--temperatures',
      shown.temperatures.join(','),
    ),
  );
  assert.deepEqual(shown.points, command.points);
  assert.equal(workspace.tool('store', 'list').includes('recall/'), false);
});

test("the server's life is told", async () => {
  await go('#/server');
  await page.waitForFunction(
    () => Number(document.querySelector('[data-samples]')?.dataset.samples) >= 2,
  );
  assert.equal(await figure('health'), 'serving');
  assert.equal(await figure('stores'), '3');
  assert.notEqual(await figure('rate'), '–');
  assert.match(await figure('p50'), /^[\d.]+ (µs|ms|s)$/);
  await page.getByText('--backup-dir').waitFor();
});

test('every view is for everybody: contrast, names, keys, and 380 pixels', async () => {
  const hashes = {
    stores: '#/stores?store=team/people',
    ask: '#/ask?store=team/people&query=row 6&compare=1',
    attention: '#/attention?store=team/people&kind=self&causal=1',
    memories: '#/memories?store=team/people&end=40',
    server: '#/server',
  };
  const ready = {
    stores: '.rows tbody tr',
    ask: '.heaviest tbody tr',
    attention: '.heat[data-drawn]',
    memories: '[data-answered]',
    server: '[data-samples]',
  };
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [width, shape] of [
      [1280, 'wide'],
      [380, 'narrow'],
    ]) {
      await page.setViewportSize({ width, height: 900 });
      for (const view of views) {
        await go('#/none');
        await go(hashes[view]);
        await page.locator(ready[view]).first().waitFor();
        if (view === 'memories') {
          await page.getByRole('button', { name: 'Run' }).click();
          await page.locator('.caption', { hasText: 'the cue matters most' }).waitFor();
        }
        if (view === 'server')
          await page.waitForFunction(
            () => Number(document.querySelector('[data-samples]').dataset.samples) >= 2,
          );
        if (view === 'ask') await page.locator('.side .answer[data-mass]').nth(1).waitFor();
        const over = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.ok(over <= 0, `${view} is ${over} pixels too wide at ${width}`);
        if (shots) {
          mkdirSync(shots, { recursive: true });
          await page.screenshot({
            path: path.join(shots, `${view}-${scheme}-${shape}.png`),
            fullPage: true,
          });
        }
        // The pages allow no script but their own, so axe comes by the debugger.
        await page.evaluate(workspace.axe);
        const { violations } = await page.evaluate(() =>
          window.axe.run(document, { resultTypes: ['violations'] }),
        );
        const serious = violations.filter(
          ({ impact }) => impact === 'serious' || impact === 'critical',
        );
        assert.deepEqual(
          serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' | ')}`),
          [],
          `${view}, ${scheme}, ${width}`,
        );
      }
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole('button', { name: 'Use dark colours' }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.getByRole('button', { name: 'Use light colours' }).click();
});

test("a stranger's page in the same browser cannot use the console", async () => {
  const server = createServer((request, response) =>
    response.setHeader('Content-Type', 'text/html').end('<!DOCTYPE html><title>stranger</title>'),
  );
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const stranger = await context.newPage(); // Its refusals are errors in its own log.
  await stranger.goto(`http://127.0.0.1:${server.address().port}/`);
  const tried = await stranger.evaluate(async (origin) => {
    const attempts = {
      read: {
        method: 'POST',
        body: '{}',
        headers: { 'Content-Type': 'application/json', 'X-Softlookup-Key': 'x' },
        credentials: 'include',
      },
      simple: {
        method: 'POST',
        body: '{}',
        headers: { 'Content-Type': 'text/plain' },
        credentials: 'include',
      },
      page: { method: 'GET' },
    };
    const results = {};
    for (const [name, options] of Object.entries(attempts)) {
      results[name] = await fetch(
        `${origin}${name === 'page' ? '/' : '/api/stores'}`,
        options,
      ).then(
        (response) => `status ${response.status}`,
        () => 'refused',
      );
    }
    const frame = document.createElement('iframe');
    frame.src = `${origin}/`;
    const loaded = new Promise((resolve) => {
      frame.onload = resolve;
    });
    document.body.append(frame);
    await loaded;
    let framed = 'refused';
    try {
      framed = frame.contentDocument.title;
    } catch {
      /* Another origin. */
    }
    return { ...results, framed, storage: localStorage.length };
  }, workspace.origin);
  assert.deepEqual(tried, {
    read: 'refused',
    simple: 'refused',
    page: 'refused',
    framed: 'refused',
    storage: 0,
  });
  const port = new URL(workspace.origin).port;
  const rebound = await stranger.goto(`http://evil.example:${port}/`);
  assert.equal(rebound.status(), 403);
  const sent = await stranger.evaluate(() =>
    fetch('/api/stores', {
      method: 'POST',
      body: '{}',
      headers: { 'Content-Type': 'application/json' },
    }).then((response) => response.status),
  );
  assert.equal(sent, 403);
  await stranger.close();
  server.close();
});

test('figures: first paint, and answers while a handle is dragged', async () => {
  const fresh = await openPage();
  await fresh.goto(`${workspace.origin}/#/ask?store=many&query=row 12`);
  await fresh.locator('[data-answered="1"]').waitFor();
  const paint = await fresh.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0].startTime,
  );
  const times = await fresh.evaluate(async () => {
    const range = document.querySelector('.temperature');
    const side = document.querySelector('.side');
    const exact = document.querySelector('.side .exact');
    const taken = [];
    for (let i = 0; i < 60; i += 1) {
      range.value = String(100 + 7 * i);
      const begin = performance.now();
      range.dispatchEvent(new Event('input', { bubbles: true }));
      while (side.dataset.answered !== exact.value)
        await new Promise((resolve) => {
          requestAnimationFrame(resolve);
        });
      taken.push(performance.now() - begin);
    }
    return taken.sort((a, b) => a - b);
  });
  console.log(
    `100,000 rows: first paint ${paint.toFixed(0)} ms; a drag's answer p50 ${times[30].toFixed(1)} ms, p95 ${times[56].toFixed(1)} ms`,
  );
  await fresh.close();
});

test('nothing came from elsewhere, and nothing failed', async () => {
  assert.deepEqual([...new Set(requests.map((url) => new URL(url).origin))], [workspace.origin]);
  assert.deepEqual(troubles, []);
});
