// Prepares a fresh clone: npm packages, dist/ and a redis-server. It does only what is missing. It uses Node built-ins
// alone, because no package may be installed yet. npm run lab, npm test and .ci/run call it; `node
// scripts/bootstrap.mjs` does the same.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './paths.mjs';

const NODE_LEAST = 20;
const say = (text) => process.stderr.write(`bootstrap: ${text}\n`);

export class BootstrapError extends Error {}

export function bootstrap() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < NODE_LEAST)
    throw new BootstrapError(
      `Node ${NODE_LEAST} or newer is needed, this is ${process.version}: install it from https://nodejs.org`,
    );
  installPackages();
  build();
  return ensureRedis();
}

function run(command, args, { quiet = false, env = {} } = {}) {
  const done = spawnSync(command, args, {
    cwd: root,
    stdio: quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 2, 2],
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  return {
    ok: done.status === 0,
    output: `${done.stdout ?? ''}${done.stderr ?? ''}`,
    missing: /** @type {NodeJS.ErrnoException | undefined} */ (done.error)?.code === 'ENOENT',
  };
}

const isLink = (path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
const digest = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** The digest of the lock file is stored after an install. While the digest is the same there is nothing to do. */
function installPackages() {
  const lock = join(root, 'package-lock.json');
  const note = join(root, 'node_modules', '.seq-lock-digest');
  const wanted = digest(lock);
  if (existsSync(note) && readFileSync(note, 'utf8') === wanted) return;
  if (
    existsSync(join(root, 'node_modules', '.package-lock.json')) &&
    run('npm', ['ls', '--all', '--silent'], { quiet: true }).ok
  ) {
    writeFileSync(note, wanted);
    return;
  }
  if (isLink(join(root, 'node_modules')))
    throw new BootstrapError(
      'node_modules is a link, and its packages are not those of package-lock.json: npm ci would empty the folder it ' +
        'points to. Run npm ci there, or remove the link',
    );
  say('installing npm packages (npm ci)');
  const done = run('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline'], { env: { NODE_ENV: 'development' } });
  if (!done.ok)
    throw new BootstrapError(
      done.missing
        ? 'npm is not on PATH: install Node 20 with npm'
        : 'npm ci failed (see above): check the network and the registry, then run it again',
    );
  writeFileSync(note, wanted);
}

function newest(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

function build() {
  const built = newest(join(root, 'dist', 'cli', 'start', 'main.js'));
  if (
    existsSync(join(root, 'oclif.manifest.json')) &&
    built >=
      Math.max(
        newest(join(root, 'src')),
        newest(join(root, 'scripts', 'build.mjs')),
        newest(join(root, 'package.json')),
      )
  )
    return;
  say('building (npm run build)');
  if (!run(process.execPath, [join(root, 'scripts', 'build.mjs'), '--bundle-only']).ok)
    throw new BootstrapError('the build failed (see above)');
}

export function onPath(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder || '.', name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      /* not here */
    }
  }
  return null;
}

/** Installs on Debian as root, and on macOS with brew. On other systems a person must install. */
function install(deb, brew) {
  if (onPath('apt-get') && process.getuid?.() === 0) {
    say(`installing ${deb} (apt-get)`);
    const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    // RUNLEVEL=1 keeps init from starting the packaged server on the default port.
    if (!run('apt-get', ['install', '-y', '-q', '--no-install-recommends', deb], { env }).ok) {
      run('apt-get', ['update', '-q'], { env });
      run('apt-get', ['install', '-y', '-q', '--no-install-recommends', deb], { env });
    }
  } else if (onPath('brew')) {
    say(`installing ${brew} (brew)`);
    run('brew', ['install', brew]);
  }
}

/** Returns the path of a redis-server (or valkey-server). Installs one when there is none. */
function ensureRedis() {
  const found = () => onPath('redis-server') ?? onPath('valkey-server');
  if (!found()) install('redis-server', 'redis');
  const path = found();
  if (path) return path;
  throw new BootstrapError(
    'there is no redis-server on PATH and it could not be installed: install Redis 6.2 or newer ' +
      '(Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis), then run this again',
  );
}

/**
 * Installs what only tests need: tmux to drive a terminal, openssl to make certificates, Prometheus to check and run the
 * alerts, systemd and a listener for its messages. A test that misses one fails, and names it.
 */
export function ensureTestTools() {
  const tools = {
    tmux: 'tmux',
    openssl: 'openssl',
    promtool: 'prometheus',
    'prometheus-alertmanager': 'prometheus-alertmanager',
    'systemd-notify': 'systemd',
    python3: 'python3',
  };
  for (const [tool, packaged] of Object.entries(tools)) if (!onPath(tool)) install(packaged, packaged);
}

/** Runs `bootstrap` and turns its failure into one line and exit code 1. */
export function bootstrapOrEnd() {
  try {
    return bootstrap();
  } catch (error) {
    if (!(error instanceof BootstrapError)) throw error;
    say(error.message);
    process.exit(1);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) bootstrapOrEnd();
