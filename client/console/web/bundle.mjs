// Bundles the console's pages:  node bundle.mjs PACKAGES_DIRECTORY OUTPUT_DIRECTORY
// PACKAGES_DIRECTORY has the node_modules of package-lock.json.
import { copyFileSync, mkdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const kBytesMax = 300 * 1024;
const [packages, output] = process.argv.slice(2).map((folder) => path.resolve(folder));
const here = path.dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(path.join(packages, 'package.json'))('esbuild');

mkdirSync(output, { recursive: true });
await esbuild.build({
  entryPoints: { app: path.join(here, 'src/main.js') },
  outdir: output,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  nodePaths: [path.join(packages, 'node_modules')],
  legalComments: 'inline',
  logLevel: 'warning',
});
const files = ['index.html', 'icon.svg'];
for (const file of files) copyFileSync(path.join(here, file), path.join(output, file));
const sizes = [...files, 'app.js', 'app.css'].map((file) => statSync(path.join(output, file)).size);
const bytes = sizes.reduce((sum, size) => sum + size, 0);
if (bytes > kBytesMax) {
  console.error(`the console's pages have ${bytes} bytes, over ${kBytesMax}`);
  process.exit(1);
}
console.log(`${bytes} bytes`);
