// The views Memories and Server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answered, figure, go, near, numberOf, page, people, slide, workspace } from './driver.mjs';

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
  const showsFigure = (name, pattern) =>
    page.locator(`[data-figure="${name}"]`).filter({ hasText: pattern }).first().waitFor();
  await showsFigure('health', /^serving$/);
  assert.equal(await figure('stores'), '3');
  assert.notEqual(await figure('rate'), '–');
  // There is a latency once a call ended between two looks, as the page's own calls do.
  await showsFigure('p50', /^[\d.]+ (µs|ms|s)$/);
  await page.getByText('--backup-dir').waitFor();
});
