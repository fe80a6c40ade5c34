// The real server and console, stores with known rows, and a Chromium.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const kSkipped = 77;

/** Ends the test with the exit code that CTest counts as skipped. */
export function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(kSkipped);
}

function findBrowser() {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const found = (process.env.PATH ?? '')
      .split(':')
      .map((folder) => path.join(folder, name))
      .find((file) => existsSync(file));
    if (found !== undefined) return found;
  }
  return skip('there is no chromium; scripts/install-packages --test');
}

/** Installs the packages of package-lock.json in `work`, once, and returns what loads them. */
function loadPackages(work) {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const lock = path.join(here, 'package-lock.json');
  const installed = path.join(work, 'installed.json');
  if (!existsSync(installed) || readFileSync(installed, 'utf8') !== readFileSync(lock, 'utf8')) {
    for (const name of ['package.json', 'package-lock.json'])
      copyFileSync(path.join(here, name), path.join(work, name));
    try {
      execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
        cwd: work,
        stdio: 'pipe',
      });
    } catch (error) {
      skip(`npm ci failed:\n${error.stderr}`);
    }
    copyFileSync(lock, installed);
  }
  return createRequire(path.join(work, 'package.json'));
}

/** Starts a program and returns it with the first line that it prints. */
async function start(program, flags) {
  const child = spawn(program, flags, { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (data) => {
    errors += data;
  });
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => line),
    once(child, 'exit').then(() => null),
  ]);
  if (first === null) throw new Error(`${program} ended:\n${errors}`);
  return { child, first, errors: () => errors };
}

/** Writes rows of float32 as a .npy file. */
export function writeNpy(file, rows, cols, data) {
  let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${cols}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + '\n';
  const head = Buffer.alloc(10 + header.length);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(header.length, 8);
  head.write(header, 10, 'latin1');
  writeFileSync(
    file,
    Buffer.concat([head, Buffer.from(data.buffer, data.byteOffset, data.byteLength)]),
  );
}

export class Workspace {
  constructor({ serverBinary, toolBinary, work }) {
    this.work = work;
    this.toolBinary = toolBinary;
    this.serverBinary = serverBinary;
    mkdirSync(work, { recursive: true });
    this.browserPath = findBrowser();
    const load = loadPackages(work);
    this.chromium = load('playwright-core').chromium;
    this.axe = readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');
  }

  async open() {
    this.server = await start(this.serverBinary, [
      '--ephemeral',
      '--listen=127.0.0.1:0',
      '--http-listen=127.0.0.1:0',
      '--log-level=warning',
      '--max-waiting-work=60000',
    ]);
    [, this.grpc, this.http] = /grpc=(\S+) http=(\S+)/.exec(this.server.first);
    await this.openConsole();
    this.browser = await this.chromium.launch({
      executablePath: this.browserPath,
      args: ['--no-sandbox', '--host-resolver-rules=MAP evil.example 127.0.0.1'],
    });
  }

  async openConsole() {
    this.console = await start(this.toolBinary, [
      '--server',
      this.grpc,
      'console',
      '--listen',
      '127.0.0.1:0',
      '--metrics',
      this.http,
    ]);
    this.link = this.console.first;
    this.origin = new URL(this.link).origin;
  }

  /** Runs the tool; returns what it prints. */
  tool(...args) {
    return execFileSync(this.toolBinary, ['--server', this.grpc, ...args], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
  }

  file(name) {
    return path.join(this.work, name);
  }

  async close() {
    await this.browser?.close();
    for (const each of [this.console, this.server]) {
      if (each === undefined) continue;
      const ended = once(each.child, 'exit');
      each.child.kill('SIGTERM');
      const [code] = await ended;
      if (code !== 0) throw new Error(`a program ended with ${code}:\n${each.errors()}`);
    }
  }
}
