// The view Stores.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, many, page, people, workspace } from './driver.mjs';
import { kHostile } from './rows.mjs';

test('an error of the filter goes when the filter is right', async () => {
  await go('#/stores?store=team/people');
  const end = page.getByLabel('Below position');
  await end.fill('61');
  await page.locator('.notice:not([hidden])').waitFor();
  await end.fill('3');
  await page.getByText('positions 0 to 2').waitFor();
  await page.locator('.notice[hidden]').waitFor({ state: 'attached' });
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

test('a view that is left does not come back', async () => {
  let gate;
  const held = new Promise((resolve) => {
    gate = resolve;
  });
  await page.goto('about:blank');
  await page.route('**/api/stores', async (route) => {
    await held;
    await route.continue();
  });
  await go('#/stores');
  await page.locator('.stores').waitFor();
  await go('#/server');
  const answered = page.waitForResponse('**/api/stores');
  gate();
  await answered;
  await page.unroute('**/api/stores');
  await page.locator('[data-samples]').waitFor();
  assert.equal(new URL(page.url()).hash, '#/server');
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
