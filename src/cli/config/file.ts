// The config file `$XDG_CONFIG_HOME/seq/config.yaml`: contexts and settings. Never a file of the current directory
// unless named (SEQ_CONFIG). Written whole, to a temporary file, synced, renamed, 0600; a lock file keeps two writers
// apart. Secrets are only referred to, never stored.
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { EXIT, SeqError } from '../../core/errors.js';
import { badConfig } from './config-errors.js';
import type { ConfigFile } from './config-types.js';

/** How long a writer waits for another one. */
const LOCK_WAIT_MS = 3000;

export function configPath(env: NodeJS.ProcessEnv = process.env): string {
  if (env['SEQ_CONFIG']) return env['SEQ_CONFIG'];
  const home = env['XDG_CONFIG_HOME'] || join(env['HOME'] || safeHome(), '.config');
  return join(home, 'seq', 'config.yaml');
}

function safeHome(): string {
  try {
    return homedir();
  } catch {
    return '/nonexistent';
  }
}

/**
 * Null when there is no file (unless it was named). Parsed and checked; yaml and the schema are only loaded when
 * there is a file.
 */
export async function readConfig(path: string, named = Boolean(process.env['SEQ_CONFIG'])): Promise<ConfigFile | null> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') {
      if (!named) return null;
      throw new SeqError({
        code: 'CONFIG_NOT_FOUND',
        exit: EXIT.config,
        message: `${path}: there is no such file`,
        why: 'SEQ_CONFIG names it',
        changed: 'nothing',
        next: ['unset SEQ_CONFIG, or create the file with seq context set'],
      });
    }
    throw badConfig(path, `cannot be read (${code})`, [`check the permissions of ${path}`]);
  }
  const { parseConfig } = await import('./schema.js');
  return parseConfig(text, path);
}

async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  const until = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      const handle = await open(lock, 'wx', 0o600);
      await handle.writeFile(`${process.pid}\n`);
      await handle.close();
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw badConfig(path, `cannot be written (${(error as NodeJS.ErrnoException).code})`, [
          `check the permissions of ${dirname(path)}`,
        ]);
    }
    if (await abandoned(lock)) {
      // Move it away by name first: of two writers that see the same dead lock only one wins the rename.
      const aside = `${lock}.${randomBytes(4).toString('hex')}`;
      await rename(lock, aside).then(
        () => rm(aside, { force: true }),
        () => undefined,
      );
      continue;
    }
    if (performance.now() > until) {
      throw new SeqError({
        code: 'CONFIG_LOCKED',
        exit: EXIT.tryAgain,
        message: `${lock}: held by another writer for more than ${LOCK_WAIT_MS} ms`,
        why: 'another seq is changing the config file',
        changed: 'nothing',
        next: ['run it again', `remove ${lock} if no other seq runs`],
        retryable: true,
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

/** Its writer is dead, or it never got to write its pid. */
async function abandoned(lock: string): Promise<boolean> {
  try {
    const pid = Number((await readFile(lock, 'utf8')).trim());
    if (Number.isInteger(pid) && pid > 0) {
      try {
        process.kill(pid, 0);
        return false;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'ESRCH';
      }
    }
    return Date.now() - (await stat(lock)).mtimeMs > LOCK_WAIT_MS;
  } catch {
    return false;
  }
}

/** Reads, changes and writes the file as one step. `change` returns the new content. Unknown comments are not kept. */
export async function updateConfig(path: string, change: (config: ConfigFile) => ConfigFile): Promise<ConfigFile> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw badConfig(path, `its folder cannot be made (${(error as NodeJS.ErrnoException).code})`, [
      'set XDG_CONFIG_HOME or SEQ_CONFIG to a place that can be written',
    ]);
  }
  return withLock(path, async () => {
    const before = (await readConfig(path, false)) ?? { contexts: {} };
    const after = change(structuredClone(before));
    const { formatConfig, parseConfig } = await import('./schema.js');
    const text = formatConfig(after);
    parseConfig(text, path);
    const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
    try {
      const handle = await open(temporary, 'wx', 0o600);
      await handle.writeFile(text);
      await handle.sync();
      await handle.close();
      await chmod(temporary, 0o600);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw badConfig(path, `cannot be written (${(error as NodeJS.ErrnoException).code})`, [
        `check the permissions of ${dirname(path)}`,
      ]);
    }
    return after;
  });
}
