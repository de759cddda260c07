// `npm run docs`: writes docs/COMMANDS.md from the present manifest. (`npm run build` makes manifest, reference and
// interface list.)
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandReference } from './command-reference.mjs';
import { root } from './paths.mjs';

const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'));
writeFileSync(
  join(root, 'docs', 'COMMANDS.md'),
  commandReference(read('oclif.manifest.json'), read('package.json').oclif.topics),
);
