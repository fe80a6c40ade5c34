// The console in a real browser:  node console_test.mjs SERVER TOOL WORK_DIRECTORY
//
// Opens each view, uses it and reads it back. With SOFTLOOKUP_SHOTS=DIRECTORY, leaves pictures of all
// views there. Prints figures, and no verdict depends on them.
import { after, before } from 'node:test';
import { open, workspace } from './driver.mjs';

before(open);
after(() => workspace.close());

// In this order: the first lets the browser in, and the last looks back at all.
await import('./store_cases.mjs');
await import('./ask_cases.mjs');
await import('./heat_map_cases.mjs');
await import('./memory_cases.mjs');
await import('./page_cases.mjs');
await import('./stranger_cases.mjs');
