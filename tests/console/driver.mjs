// One browser, one console, and the stores that the tests of the pages ask.
import assert from 'node:assert/strict';
import path from 'node:path';
import { kHostile, makeStore } from './rows.mjs';
import { Workspace } from './workspace.mjs';

const [serverBinary, toolBinary, work] = process.argv.slice(2, 5).map((file) => path.resolve(file));
export const workspace = new Workspace({ serverBinary, toolBinary, work });
/** The addresses that pages asked, and what their logs say of errors. */
export const requests = [];
export const troubles = [];
// open() sets these.
export let people;
export let many;
export let context;
export let page;

/** A new page whose requests and errors are noted. */
export async function openPage(from = context) {
  const opened = await from.newPage();
  opened.on('request', (request) => requests.push(request.url()));
  opened.on('console', (message) => {
    if (message.type() === 'error') troubles.push(message.text());
  });
  opened.on('pageerror', (error) => troubles.push(String(error)));
  return opened;
}

// In an address, a + would be a space.
export const go = (hash) => page.goto(`${workspace.origin}/${hash.replace(/\+/g, '%2B')}`);
export const figure = (name, within = page) =>
  within.locator(`[data-figure="${name}"]`).first().textContent();
export const numberOf = (text) => Number(text.replace(/,/g, '').replace('\u2212', '-'));
export const near = (actual, expected, tolerance, what) =>
  assert.ok(Math.abs(actual - expected) <= tolerance, `${what}: ${actual}, not ${expected}`);
export const answered = (temperature) =>
  page.locator(`[data-answered="${temperature}"]`).first().waitFor();

/** Moves a range as a hand would: to a part of its way. */
export async function slide(locator, part) {
  await locator.evaluate((range, to) => {
    range.value = String(Number(range.min) + to * (Number(range.max) - Number(range.min)));
    range.dispatchEvent(new Event('input', { bubbles: true }));
  }, part);
}

export async function open() {
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
}
