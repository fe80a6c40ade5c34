// The view Ask.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import {
  answered,
  figure,
  go,
  near,
  numberOf,
  openPage,
  page,
  people,
  slide,
  workspace,
} from './driver.mjs';
import { answerOf, keyOf } from './rows.mjs';

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
  for (const [side, rows] of [
    [0, /^40$/],
    [1, /^3$/],
  ]) {
    await copy
      .locator('.side')
      .nth(side)
      .locator('[data-figure="counted_rows"]')
      .filter({ hasText: rows })
      .waitFor();
  }
  for (const name of ['log_sum_exp', 'entropy', 'counted_rows']) {
    for (const side of [0, 1]) {
      const [one, other] = [page, copy].map((each) =>
        figure(name, each.locator('.side').nth(side)),
      );
      assert.equal(await other, await one, `${name} of ${side}`);
    }
  }
  await copy.close();
});

test('the request as a command gives the same answer', async () => {
  await go('#/ask?store=team/people&query=row 9&temperature=0.5&last=40&label="a\'b\\"c", row-30');
  await answered(0.5);
  await page.getByRole('button', { name: 'Copy as' }).click();
  const text = (kind) => page.locator(`pre[data-kind="${kind}"]`).textContent();
  const command = (await text('cli')).replace(/^softlookup/, `"$TOOL" -o json`);
  const printed = execFileSync('/bin/sh', ['-c', command], {
    env: { ...process.env, TOOL: workspace.toolBinary },
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
