// The config file `$XDG_CONFIG_HOME/seq/config.yaml`: contexts and settings. A file in the current directory is never
// used unless SEQ_CONFIG names it. The file is written whole: to a temporary file, synced, then renamed. It keeps its
// mode and owner, because a service may read it under a user of its own; a new file has the mode 0600. A lock file
// keeps two writers apart. The file refers to secrets and never stores them.
import { randomBytes } from 'node:crypto';
import { link, open, readFile, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EXIT, SeqError } from '../../core/errors.js';
import { configHome, makeFolder } from '../../core/home.js';
import { badConfig } from './config-errors.js';
import type { ConfigFile } from './config-types.js';

/** How long a writer waits while the lock has the same holder. */
const LOCK_WAIT_MS = 10_000;

export function configPath(env: NodeJS.ProcessEnv = process.env): string {
  if (env['SEQ_CONFIG']) return env['SEQ_CONFIG'];
  return join(configHome(env), 'seq', 'config.yaml');
}

/**
 * Null when there is no file (unless it was named). The file is parsed and checked; yaml and the schema are loaded only
 * when there is a file.
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
    throw badConfig(path, `cannot be read (${code})`, {
      why:
        code === 'EACCES'
          ? 'the user of this process may not read it'
          : 'it is there, and the system refuses to read it',
      next: [`check the owner and the permissions of ${path} and of its folders`],
    });
  }
  const { parseConfig } = await import('./schema.js');
  return parseConfig(text, path);
}

/** A writer's turn. `isHeld`: nobody has taken the lock from this writer since. */
interface Lock {
  isHeld(): Promise<boolean>;
}

async function withLock<T>(path: string, work: (lock: Lock) => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  const own = `${process.pid} ${randomBytes(8).toString('hex')}\n`;
  let holder: string | null = null;
  let until = 0;
  while (!(await take(lock, own, path))) {
    const seen = await readLock(lock);
    if (seen === null) continue;
    // The limit is per holder. Many writers in turn are progress, however long the last one waits.
    if (seen !== holder) {
      holder = seen;
      until = performance.now() + LOCK_WAIT_MS;
    }
    if (await isAbandoned(lock, seen)) {
      await removeAbandoned(lock, seen);
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
  const isHeld = async (): Promise<boolean> => (await readLock(lock)) === own;
  try {
    return await work({ isHeld });
  } finally {
    if (await isHeld()) await rm(lock, { force: true });
  }
}

/** False when somebody else has the lock. */
async function take(lock: string, own: string, path: string): Promise<boolean> {
  try {
    const handle = await open(lock, 'wx', 0o600);
    await handle.writeFile(own);
    await handle.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw cannotWrite(path, error);
  }
}

/** What its holder wrote into the lock file. Null when there is no lock file. */
async function readLock(lock: string): Promise<string | null> {
  return readFile(lock, 'utf8').catch(() => null);
}

/** True when its writer is dead, or ended before it wrote its pid. */
async function isAbandoned(lock: string, seen: string): Promise<boolean> {
  const pid = Number(seen.trim().split(' ')[0]);
  if (Number.isInteger(pid) && pid > 0) {
    try {
      process.kill(pid, 0);
      return false;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ESRCH';
    }
  }
  const made = await stat(lock).catch(() => null);
  return made !== null && Date.now() - made.mtimeMs > LOCK_WAIT_MS;
}

/**
 * Moves the lock away by name: of two writers only one wins the rename. A slow writer may move the lock that a third
 * one has taken meanwhile. It then puts that lock back, and the third one checks again before it writes.
 */
async function removeAbandoned(lock: string, seen: string): Promise<void> {
  const aside = `${lock}.${randomBytes(4).toString('hex')}`;
  try {
    await rename(lock, aside);
  } catch {
    return;
  }
  if ((await readLock(aside)) !== seen) await link(aside, lock).catch(() => undefined);
  await rm(aside, { force: true });
}

/** Reads, changes and writes the file as one step. `change` returns the new content. Comments in the file are lost. */
export async function updateConfig(path: string, change: (config: ConfigFile) => ConfigFile): Promise<ConfigFile> {
  try {
    makeFolder(dirname(path), 0o700);
  } catch (error) {
    throw badConfig(path, `its folder cannot be made (${(error as NodeJS.ErrnoException).code})`, {
      why: 'the file needs a folder, and this user may not make it',
      next: ['set XDG_CONFIG_HOME or SEQ_CONFIG to a place that can be written'],
    });
  }
  // Loaded before the lock is taken: on a busy machine loading takes longer than everything under the lock.
  const { formatConfig, parseConfig } = await import('./schema.js');
  /** A text that can be read again. */
  const format = (config: ConfigFile): string => {
    const text = formatConfig(config);
    parseConfig(text, path);
    return text;
  };
  for (;;) {
    const after = await withLock(path, (lock) => writeChanged(path, change, format, lock));
    if (after !== null) return after;
  }
}

/** Returns null and writes nothing when another writer has taken the lock meanwhile. */
async function writeChanged(
  path: string,
  change: (config: ConfigFile) => ConfigFile,
  format: (config: ConfigFile) => string,
  lock: Lock,
): Promise<ConfigFile | null> {
  const after = change(structuredClone((await readConfig(path, false)) ?? { contexts: {} }));
  const text = format(after);
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    await handle.writeFile(text);
    await likeBefore(handle, path);
    await handle.sync();
    await handle.close();
    if (!(await lock.isHeld())) {
      await rm(temporary, { force: true });
      return null;
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw cannotWrite(path, error);
  }
  return after;
}

/** Gives the new file the owner and the mode of the file that it replaces. */
async function likeBefore(file: FileHandle, path: string): Promise<void> {
  const before = await stat(path).catch(() => null);
  // Only root may give a file away. Then its owner, and without that its group, stay those of the writer.
  const owned =
    before !== null &&
    (await file.chown(before.uid, before.gid).then(
      () => true,
      () => false,
    ));
  // A file of another owner opens to nobody new: the old mode was meant for the old group.
  await file.chmod(owned ? before.mode & 0o777 : 0o600);
}

function cannotWrite(path: string, error: unknown): SeqError {
  return badConfig(path, `cannot be written (${(error as NodeJS.ErrnoException).code})`, {
    why: 'it is written to a new file beside it, which then takes its name',
    next: [`check the permissions of ${dirname(path)}`],
  });
}
