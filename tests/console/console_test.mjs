// The console in a real browser:  node console_test.mjs SERVER TOOL WORK_DIRECTORY CASES...
//
// CASES are names of *_cases.mjs. Opens the views, uses them and reads them back. With SOFTLOOKUP_SHOTS=DIRECTORY, leaves pictures of all
// views there. Prints figures, and no verdict depends on them.
import { after, before } from 'node:test';
import { open, workspace } from './driver.mjs';

before(open);
after(() => workspace.close());

// The first lets the browser in, and the last looks back at all.
for (const name of ['link', ...process.argv.slice(5), 'stranger']) await import(`./${name}_cases.mjs`);
