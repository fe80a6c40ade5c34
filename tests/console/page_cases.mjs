// What holds for every view: axe-core, 380 pixels, light and dark; and figures.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { answered, go, many, openPage, page, people, workspace } from './driver.mjs';

const shots = process.env.SOFTLOOKUP_SHOTS;
const views = ['stores', 'ask', 'attention', 'memories', 'server'];

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

test('figures: first paint, and answers while a handle is dragged', async () => {
  const fresh = await openPage();
  await fresh.goto(`${workspace.origin}/#/ask?store=many&query=row 12`);
  await fresh.locator('[data-answered="1"]').waitFor();
  const paint = await fresh.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0].startTime,
  );
  const [times, calls] = await fresh.evaluate(async () => {
    const range = document.querySelector('.temperature');
    const side = document.querySelector('.side');
    const exact = document.querySelector('.side .exact');
    const taken = [];
    const calls = [];
    for (let i = 0; i < 60; i += 1) {
      range.value = String(100 + 7 * i);
      const begin = performance.now();
      range.dispatchEvent(new Event('input', { bubbles: true }));
      while (side.dataset.answered !== exact.value)
        await new Promise((resolve) => {
          requestAnimationFrame(resolve);
        });
      taken.push(performance.now() - begin);
      calls.push(Number(/in ([\d.]+) ms/.exec(document.querySelector('.meta').textContent)[1]));
    }
    return [taken, calls].map((list) => list.sort((a, b) => a - b));
  });
  console.log(
    `100,000 rows: first paint ${paint.toFixed(0)} ms; a drag's answer p50 ${times[30].toFixed(1)} ms, p95 ${times[56].toFixed(1)} ms; its call p50 ${calls[30].toFixed(1)} ms`,
  );
  await fresh.close();
});
