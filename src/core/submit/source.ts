// Which input is this? Its items must have the same keys when it is submitted again. A regular file is known by its
// content: the key prefix is the SHA-256 of its bytes when the run begins. Bytes that are appended later are not part
// of the run. So the same file sent twice is sequenced once, even after an interruption or from another path. To
// sequence it twice, give another --key-prefix. A pipe has no identity, so its prefix is random for each run. The state
// file says how far a run got, for --resume. Its name comes from cluster, lane and path (or key prefix), and it is
// checked against the bytes themselves. So a file that has grown is continued where the earlier run ended.
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { renameSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { EXIT, SeqError } from '../errors.js';
import { makeFolder } from '../home.js';
import type { Checkpoint } from './submit.js';

export interface SourceIdentity {
  /** Absolute path, '' for a pipe. */
  path: string;
  /** Bytes of the file that belong to the run; null for a pipe (or a FIFO or device). */
  size: number | null;
}

export interface ResumeState extends Checkpoint {
  version: 1;
  cluster: string;
  lane: string;
  path: string;
  keyPrefix: string;
  binary: boolean;
  /** The key prefix was made from this many bytes: the file when the first run began. Older state files lack it. */
  size?: number | null;
}

function unreadable(path: string, error: unknown): SeqError {
  const code = (error as { code?: string }).code ?? '';
  return new SeqError({
    code: code === 'ENOENT' ? 'FILE_NOT_FOUND' : 'FILE_UNREADABLE',
    exit: code === 'ENOENT' ? EXIT.notFound : EXIT.data,
    message: `${path} cannot be read`,
    why: (error as Error).message,
    changed: 'nothing',
    next: [`ls -l ${path}`],
    cause: error,
  });
}

/** Throws SeqError 66 or 65 when there is nothing to read. */
export async function identifySource(file: string): Promise<SourceIdentity> {
  const path = resolve(file);
  try {
    const facts = await stat(path);
    if (facts.isDirectory()) throw Object.assign(new Error('it is a directory'), { code: 'EISDIR' });
    if (facts.isFile()) await (await open(path, 'r')).close();
    return { path, size: facts.isFile() ? facts.size : null };
  } catch (error) {
    throw unreadable(file, error);
  }
}

export async function* readSource(source: SourceIdentity): AsyncGenerator<Buffer> {
  if (source.size === 0) return;
  try {
    yield* createReadStream(source.path, {
      highWaterMark: 256 * 1024,
      ...(source.size === null ? {} : { end: source.size - 1 }),
    }) as AsyncIterable<Buffer>;
  } catch (error) {
    throw unreadable(source.path, error);
  }
}

/** The key prefix of an input that was given none. */
export async function keyPrefixOf(source: SourceIdentity, signal: AbortSignal): Promise<string> {
  if (source.size === null) return `p-${randomBytes(16).toString('hex')}`;
  const hash = createHash('sha256');
  for await (const chunk of readSource(source)) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
  return `f-${hash.digest('hex').slice(0, 40)}`;
}

/** The path of a run's state file. `stateHome` is $XDG_STATE_HOME or its default. */
export function statePath(
  stateHome: string,
  run: { cluster: string; lane: string; path: string; keyPrefix: string | undefined; binary: boolean; text: boolean },
): string {
  const name = createHash('sha256')
    .update(
      JSON.stringify([run.cluster, run.lane, run.path, run.keyPrefix ?? '', run.binary, ...(run.text ? ['text'] : [])]),
    )
    .digest('hex')
    .slice(0, 32);
  return join(stateHome, 'seq', 'submit', `${name}.json`);
}

/**
 * Undefined when there is none that can be read. Then the keys alone keep items from being sequenced twice.
 */
export async function readState(path: string): Promise<ResumeState | undefined> {
  try {
    const state = JSON.parse(await readFile(path, 'utf8')) as ResumeState;
    const sound =
      state.version === 1 &&
      Number.isSafeInteger(state.items) &&
      state.items >= 0 &&
      Number.isSafeInteger(state.bytes) &&
      state.bytes >= 0 &&
      typeof state.keyPrefix === 'string' &&
      /^[0-9a-f]{64}$/.test(state.sha256);
    return sound ? state : undefined;
  } catch {
    return undefined;
  }
}

export async function prepareState(path: string): Promise<void> {
  makeFolder(dirname(path), 0o700);
}

/**
 * Writes the whole file or nothing. It is synchronous: when the process ends a moment later, the file still has
 * everything that was acknowledged.
 */
export function writeState(path: string, state: ResumeState): void {
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify(state)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}
