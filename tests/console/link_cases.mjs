// The link that lets a browser in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page, workspace } from './driver.mjs';

test('the link lets one browser in', async () => {
  const usedLink = workspace.link;
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

test('a page that is open takes the next link, and a used one once it is let in', async () => {
  let next = null;
  while (next === null) {
    next = /http:\S+(?=\n)/.exec(workspace.console.errors());
    await new Promise(setImmediate);
  }
  const other = await workspace.browser.newContext();
  const locked = await other.newPage();
  await locked.goto(`${workspace.origin}/`);
  await locked.getByRole('heading', { name: 'This browser is not let in' }).waitFor();
  for (const link of [next[0], next[0]]) {
    await locked.goto(link);
    await locked.waitForURL(/#\/stores/);
    await locked.locator('tr[data-store="team/people"]').waitFor();
  }
  await other.close();
});
