// What other pages of the browser can do, and that the console's own load nothing from elsewhere.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { context, page, requests, troubles, workspace } from './driver.mjs';

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

test('nothing came from elsewhere, and nothing failed', async () => {
  assert.deepEqual([...new Set(requests.map((url) => new URL(url).origin))], [workspace.origin]);
  assert.deepEqual(troubles, []);
});
