// The view Attention: what its canvas shows.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { go, many, near, page, people, workspace } from './driver.mjs';
import { answerOf, keyOf } from './rows.mjs';

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

test('what is copied of a heat map gives its weights', async () => {
  const copied = async () => {
    await page.getByRole('button', { name: 'Copy as' }).click();
    const text = await page.locator('pre[data-kind="cli"]').textContent();
    await page.getByRole('button', { name: 'Close' }).click();
    const command = text.replace(/^softlookup/gm, '"$TOOL" -o json');
    const environment = { ...process.env, TOOL: workspace.toolBinary };
    const options = { cwd: workspace.work, env: environment, encoding: 'utf8' };
    const printed = execFileSync('/bin/sh', ['-ec', command], options);
    return Number([...printed.matchAll(/"log_sum_exp":\s*([-\d.e]+)/g)].at(-1)[1]);
  };
  await heatMap('#/attention?store=team/people&kind=self&causal=1&row_begin=30&row_end=33');
  const self = answerOf(people, keyOf(people, 32), 0.25, 30, 33);
  near(await copied(), self.logSumExp, 1e-4, 'log-sum-exp of the command');
  await heatMap('#/attention?store=team/people&kind=lines&lines=row 5&row_begin=10&row_end=20');
  const written = answerOf(people, keyOf(people, 5), 0.25, 10, 20);
  near(await copied(), written.logSumExp, 1e-4, 'log-sum-exp of the command');
  await heatMap('#/attention?store=team/people&query_begin=5&query_end=6&row_begin=10&row_end=20');
  near(await copied(), written.logSumExp, 1e-4, 'log-sum-exp of the command');
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
