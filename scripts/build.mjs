// Builds dist/, man/, oclif.manifest.json, docs/COMMANDS.md, test/cli/interface.txt and "man" in package.json. dist/ is bundled by esbuild, so that
// a command loads two or three files instead of hundreds.
// `--check`: builds nothing. Fails when a committed file differs from the commands in dist/.
// `--bundle-only`: does not touch an existing manifest. Setting up a clone then cannot hide a stale committed manifest.
// `--dev`: builds into .dev/, for bin/dev.js, and changes no file that git tracks.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { clientBundle, clientTypes } from './client-package.mjs';
import { commandReference, interfaceList } from './command-reference.mjs';
import { manPages, manPaths } from './man-pages.mjs';
import { root } from './paths.mjs';

const check = process.argv.includes('--check');
const bundleOnly = process.argv.includes('--bundle-only');
const dev = process.argv.includes('--dev');
/** The folder that holds package.json; dist/ is built inside it. */
const home = dev ? join(root, '.dev') : root;
const manifestPath = join(home, 'oclif.manifest.json');

// Loaded by every command or by every command that asks nodes: bundled. The rest (native, or rarely used) stays a
// package. Ink and React from packages cost 700 ms of processor time to load, as one chunk 140 ms.
// string-width: two versions are in use, each by its own importer
const bundled = ['@oclif/core', 'ink', 'ioredis', 'react', 'table', 'yaml', 'zod', 'string-width'];
const aboutPath = join(root, 'package.json');
const about = JSON.parse(readFileSync(aboutPath, 'utf8'));
const { dependencies, oclif } = about;
const external = Object.keys(dependencies)
  .filter((name) => !bundled.includes(name))
  .flatMap((name) => [name, `${name}/*`]);

function sources(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

// CommonJS packages expect these names, and a source file expects to find its unbundled location. Each output file
// keeps only the lines that it uses.
/** @type {[uses: RegExp, line: string][]} */
const BANNER = [
  [
    /\brequire\b/,
    "import { createRequire as seqRequire } from 'node:module'; const require = seqRequire(import.meta.url);",
  ],
  [
    /\b__(file|dir)name\b/,
    "import { fileURLToPath as seqPath } from 'node:url'; const __filename = " +
      "seqPath(import.meta.url), __dirname = seqPath(new URL('.', import.meta.url));",
  ],
  [
    /\bseqPlace\b/,
    'const seqPlace = (file) => ' +
      'import.meta.url.replace(/\\/dist\\/(?:commands|cli|chunks)(?:\\/.*)?$/, ' +
      '`/dist/${file}`);',
  ],
];
const WHOLE_BANNER = BANNER.map(([, line]) => line).join('\n');

// What (nearly) every command loads. esbuild groups code by the entry points that reach it. Every entry point reaches
// these modules first, so they become one file. Otherwise they would be twenty small files, and each file costs half a
// millisecond at start.
const SHELL = [
  'start/command-index',
  'command/base-command',
  'cluster/settings',
  'compose/open-cluster',
  'compose/fuel-nodes',
  'present/text',
  'support/suggest',
]
  .map((name) => `import ${JSON.stringify(join(root, 'src', 'cli', `${name}.ts`))};`)
  .join('\n');
const starts = new Set([join(root, 'src', 'cli', 'start', 'main.ts'), ...sources(join(root, 'src', 'commands'))]);
for (const file of sources(join(root, 'src'))) {
  for (const [, target] of readFileSync(file, 'utf8').matchAll(/\bimport\('(\.[^']+)\.js'\)/g)) {
    for (const type of ['.ts', '.tsx']) starts.add(join(dirname(file), `${target}${type}`));
  }
}

/** `new URL('../../lua/x.lua', import.meta.url)` must resolve to the same file in a chunk as in its source file. */
const keepPlaces = {
  name: 'keep-places',
  setup(esbuild) {
    esbuild.onResolve({ filter: /^seq-shell$/ }, () => ({ path: 'shell', namespace: 'shell' }));
    esbuild.onLoad({ filter: /.*/, namespace: 'shell' }, () => ({ contents: SHELL, resolveDir: root, loader: 'js' }));
    esbuild.onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
      const place = relative(join(root, 'src'), path);
      if (place.startsWith('..')) return undefined;
      const text = readFileSync(path, 'utf8').replaceAll(
        'import.meta.url',
        `seqPlace(${JSON.stringify(place.replace(/\.tsx?$/, '.js'))})`,
      );
      return {
        contents: starts.has(path) ? `import 'seq-shell'; ${text}` : text,
        loader: path.endsWith('x') ? 'tsx' : 'ts',
      };
    });
  },
};

// Parts of the framework that every start would load and no command needs. Left out are: finding commands by globbing
// (the manifest lists them), user plugins, and the framework's spinner. If a left-out part is used after all, the first
// test that starts the program fails with an error.
const HELP = "export { CommandHelp, Help } from '@oclif/core/help';";
const PARTS = [
  "export { Command } from '@oclif/core/command';",
  "export { Config, Plugin } from '@oclif/core/config';",
  "export * as Args from '@oclif/core/args';",
  "export * as Flags from '@oclif/core/flags';",
].join('\n');
const refusal = (name) => `() => { throw new Error(${JSON.stringify(`${name} is not part of this program`)}); }`;
const LEFT_OUT = {
  help: `module.exports = { Help: class { constructor() { (${refusal('help/index')})(); } } };`,
  tinyglobby: `module.exports = { glob: ${refusal('tinyglobby')}, globSync: ${refusal('tinyglobby')} };`,
  minimatch: `module.exports = { minimatch: ${refusal('minimatch')} };`,
  // No command needs to know whether it runs in Windows Subsystem for Linux.
  'wsl-utils': 'module.exports = { isWsl: false };',
  'cli-spinners':
    "const none = { interval: 1000, frames: ['.'] }; module.exports = { dots: none, dots2: none, line: none };",
};
const fewerParts = {
  name: 'fewer-parts',
  setup(esbuild) {
    esbuild.onResolve({ filter: /^@oclif\/core$/ }, () => ({ path: 'oclif-parts', namespace: 'parts' }));
    // wrap-ansi is bundled with its own CommonJS version. Left outside, `require` finds the ES module of another
    // version. That costs a third of every start, and older Node versions refuse it.
    esbuild.onResolve({ filter: /^wrap-ansi$/ }, ({ path, importer }) =>
      /[\\/]@oclif[\\/]core[\\/]/.test(importer) ? { path: createRequire(importer).resolve(path) } : undefined,
    );
    // The framework's own display of errors needs this import. This program shows errors itself.
    esbuild.onResolve({ filter: /^\.\.\/help\/index$/ }, ({ importer }) =>
      /[\\/]errors[\\/]handle\.js$/.test(importer) ? { path: 'help', namespace: 'left-out' } : undefined,
    );
    esbuild.onResolve({ filter: /^@oclif\/core\/help$/ }, ({ namespace }) =>
      namespace === 'parts' ? undefined : { path: 'oclif-help', namespace: 'parts' },
    );
    esbuild.onLoad({ filter: /.*/, namespace: 'parts' }, ({ path }) => ({
      contents: path === 'oclif-help' ? HELP : PARTS,
      resolveDir: root,
      loader: 'js',
    }));
    esbuild.onResolve({ filter: /^(tinyglobby|minimatch|cli-spinners|wsl-utils)$/ }, ({ path }) => ({
      path,
      namespace: 'left-out',
    }));
    esbuild.onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({ contents: LEFT_OUT[path], loader: 'js' }));
  },
};

async function bundle(outdir) {
  await build({
    absWorkingDir: root,
    entryPoints: [join(root, 'src/cli/start/main.ts'), ...sources(join(root, 'src/commands'))],
    outdir,
    outbase: join(root, 'src'),
    chunkNames: 'chunks/[name]-[hash]',
    plugins: [keepPlaces, fewerParts],
    // Names are kept, so that a stack trace can be read. Unused code is removed, so that it need not be parsed.
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    jsx: 'automatic',
    sourcemap: 'linked',
    sourcesContent: false,
    external: [...external, 'react-devtools-core', 'typescript', 'ts-node', 'tsx'],
    banner: { js: WHOLE_BANNER },
    logLevel: 'warning',
  });
  // Replaces line by line, so that the source maps stay correct.
  for (const file of readdirSync(outdir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(outdir, name))) {
    const body = readFileSync(file, 'utf8').slice(WHOLE_BANNER.length);
    writeFileSync(file, BANNER.map(([uses, line]) => (uses.test(body) ? line : '')).join('\n') + body);
  }
}

/** The manifest of the commands in `dist`, in a stable order. */
async function manifest() {
  process.env.NODE_ENV = 'production';
  const { Plugin } = await import('@oclif/core');
  const plugin = new Plugin({
    root: home,
    type: 'core',
    ignoreManifest: true,
    errorOnManifestCreate: true,
    respectNoCacheDefault: true,
  });
  await plugin.load();
  const { version, commands } = plugin.manifest;
  // Flags that many commands share name others that they exclude; a usage line shows those that the command has.
  for (const { flags } of Object.values(commands))
    for (const flag of Object.values(flags))
      if (flag.exclusive) flag.exclusive = flag.exclusive.filter((name) => Object.hasOwn(flags, name));
  // One command a line: a diff shows which ones changed.
  const lines = Object.entries(commands)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, command]) => `${JSON.stringify(id)}: ${JSON.stringify(command)}`);
  return `{\n"commands": {\n${lines.join(',\n')}\n},\n"version": ${JSON.stringify(version)}\n}\n`;
}

/** The index that src/cli/start/command-index.ts reads instead of the manifest. */
function commandIndex() {
  const { version, commands } = JSON.parse(readFileSync(manifestPath, 'utf8'));
  const kept = [
    'id',
    'aliases',
    'hiddenAliases',
    'hidden',
    'isESM',
    'relativePath',
    'pluginName',
    'pluginAlias',
    'pluginType',
  ];
  const index = Object.fromEntries(
    Object.entries(commands).map(([id, command]) => [
      id,
      Object.fromEntries(kept.map((name) => [name, command[name]])),
    ]),
  );
  writeFileSync(join(dist, 'commands.json'), JSON.stringify({ version, commands: index }));
}

/**
 * `seq --help` as the framework draws it for a pipe (80 columns) and for a terminal of 100 columns or more. bin/run.js
 * shows it before anything is loaded.
 */
function helpPages() {
  const { name, version } = about;
  const own = `${name}/${version} ${process.platform}-${process.arch} node-${process.version}`;
  const kept = Object.fromEntries(
    Object.entries(process.env).filter(([each]) => !/^(NO_COLOR|FORCE_COLOR|TERM|DEBUG|SEQ_.*|OCLIF_.*)$/.test(each)),
  );
  const pages = join(dist, 'help');
  const fresh = mkdtempSync(join(root, '.dist-'));
  chmodSync(fresh, 0o777 & ~process.umask());
  for (const columns of [80, 100]) {
    const script =
      `import(${JSON.stringify(pathToFileURL(join(dist, 'cli', 'start', 'main.js')).href)}).then(({ main }) => ` +
      `main({ argv: ['--help'], root: ${JSON.stringify(`${root}/`)}, end() {} }))`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', script], {
      encoding: 'utf8',
      env: { ...kept, NODE_ENV: 'production', FORCE_COLOR: '1', OCLIF_COLUMNS: String(columns) },
    });
    if (status !== 0 || !stdout.includes(own))
      throw new Error(`the help page could not be made: ${stderr}${stdout.slice(0, 200)}`);
    writeFileSync(join(fresh, `${columns}.txt`), stdout.replace(own, 'VERSION-OF-THIS'));
  }
  rmSync(pages, { recursive: true, force: true });
  try {
    renameSync(fresh, pages);
  } catch {
    rmSync(fresh, { recursive: true, force: true });
  } // another build was faster
}

/** The pages of `man seq`. Those of commands that are gone are removed. */
function manual() {
  const folder = join(root, 'man');
  const pages = manPages(JSON.parse(readFileSync(manifestPath, 'utf8')), oclif.topics, about);
  mkdirSync(folder, { recursive: true });
  for (const [path, page] of pages) writeFileSync(join(root, path), page);
  for (const name of readdirSync(folder)) if (!pages.has(`man/${name}`)) rmSync(join(folder, name));
}

/** Two builds at the same time must not make each other fail: the later one wins. */
function swap(from, to) {
  for (let attempt = 1; ; attempt += 1) {
    const old = `${from}-old${attempt}`;
    try {
      renameSync(to, old);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      if (attempt === 5 || (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST')) throw error;
    } finally {
      rmSync(old, { recursive: true, force: true });
    }
  }
}

/** Links the files that the program expects beside its dist/, as in a clone. */
function prepareDev() {
  mkdirSync(home, { recursive: true });
  copyFileSync(join(root, 'package.json'), join(home, 'package.json'));
  for (const name of ['lua', 'schemas', 'docs', 'node_modules'])
    if (!existsSync(join(home, name))) symlinkSync(join('..', name), join(home, name));
  // Copied, not linked: the lab starts this program again, and it must find this dist/ beside it.
  mkdirSync(join(home, 'bin'), { recursive: true });
  for (const name of ['run.js', 'hand-over.js']) copyFileSync(join(root, 'bin', name), join(home, 'bin', name));
}

// Builds beside dist and then swaps. A command that runs meanwhile finds either all old files or all new ones.
if (dev) prepareDev();
const fresh = mkdtempSync(join(root, '.dist-'));
const dist = join(home, 'dist');
// A temporary folder is for its maker alone; other users run what root has built.
chmodSync(fresh, 0o777 & ~process.umask());
try {
  if (!check) {
    await bundle(fresh);
    if (!dev) {
      await clientBundle(fresh);
      clientTypes(fresh);
    }
    swap(fresh, dist);
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}

const text = bundleOnly && existsSync(manifestPath) ? '' : await manifest();
if (text !== '') {
  const [reference, list] = [join(root, 'docs', 'COMMANDS.md'), join(root, 'test', 'cli', 'interface.txt')];
  const made = [[manifestPath, text], ...(dev ? [] : [[reference, commandReference(JSON.parse(text), oclif.topics)]])];
  // npm installs the manual pages that package.json names.
  if (!dev) made.push([aboutPath, `${JSON.stringify({ ...about, man: manPaths(JSON.parse(text)) }, null, 2)}\n`]);
  // A published package has no tests.
  if (!dev && existsSync(join(root, 'test')))
    made.push([list, interfaceList(JSON.parse(text), existsSync(list) ? readFileSync(list, 'utf8') : '')]);
  for (const [path, content] of made) {
    if (!check) {
      writeFileSync(path, content);
      continue;
    }
    let committed = '';
    try {
      committed = readFileSync(path, 'utf8');
    } catch {
      /* there is none: stale */
    }
    if (committed === content) continue;
    process.stderr.write(`${relative(process.cwd(), path)} is stale: run npm run build and commit it\n`);
    process.exitCode = 1;
  }
}
if (!check) {
  commandIndex();
  if (!dev) {
    helpPages();
    manual();
  }
}
