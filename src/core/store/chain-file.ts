// Opens the LMDB file of a store and checks that it belongs here: format, cluster, lane, and a head that verifies.
// Decides the file's settings. `overlappingSync` is off, so that a write resolves only after fdatasync of the data and
// a synced meta page (docs/PROTOCOL.md section 6.2: synced before any receipt).
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { open, type Database, type RootDatabase } from 'lmdb';
import { blockHash, genesisHash } from '../chain/block.js';
import { SeqError } from '../errors.js';
import type { CommittedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';
import { checkPages, mapBytes } from './meta-pages.js';
import { MOST_PAGES } from './tree-pages.js';
import { FORMAT_VERSION, decodeHeader, heightKey, heightOfKey, type KeyWindow, type StoredHeader } from './records.js';
import { foreign, lmdbSays, newerFormat, unreadable, writeFailed } from './store-errors.js';

/** One table of one chain. In an environment of many lanes it is a part of a table (lane-stores.ts). */
export interface Table {
  get(key: Buffer): Buffer | undefined;
  put(key: Buffer, value: Buffer): Promise<boolean>;
  remove(key: Buffer): Promise<boolean>;
  /** Other threads bring these into memory. */
  prefetch(keys: Buffer[]): Promise<void>;
  /** Removes every key. */
  clearAsync(): Promise<void>;
  /** The greatest key. */
  lastKey(): Buffer | undefined;
  /** Of a table whose keys are heights. */
  entryCount(): number;
}

type Root = Pick<RootDatabase<Buffer, Buffer>, 'batch' | 'close' | 'resetReadTxn'>;

export interface ChainFile {
  root: Root;
  /** Text keys: `about` (JSON: format, cluster, lane, generation), `head` (height), `window` (JSON: KeyWindow). */
  meta: Table;
  /** Height → header record. Headers are apart from the payloads, so that reading a header never touches a payload. */
  headers: Table;
  /** Height → payload. */
  blocks: Table;
  /** Item key → receipt record. */
  keys: Table;
}

export interface About {
  format: number;
  cluster: string;
  lane: string;
  /** The newest generation of the cluster for which this store was opened. 0 when unknown. */
  generation: number;
}

export const META = {
  about: Buffer.from('about'),
  head: Buffer.from('head'),
  window: Buffer.from('window'),
  /** There while the table of keys is being made anew. */
  rebuild: Buffer.from('rebuild'),
  /** Written to measure the disk. Nobody reads it. */
  checked: Buffer.from('checked'),
};
const BINARY = { encoding: 'binary', keyEncoding: 'binary' } as const;
/** How many headers at the top are checked on opening. An incomplete last write shows there. */
const CHECKED_HEADERS = 64;

export function chainPath(dir: string): string {
  return join(dir, 'chain.mdb');
}

export function openChainFile(dir: string, readOnly: boolean, afterCrash = false): ChainFile {
  const path = chainPath(dir);
  checkPages(dir, path, { readOnly, mostPages: afterCrash ? Infinity : MOST_PAGES });
  try {
    const root = open<Buffer, Buffer>({
      path,
      noSubdir: true,
      readOnly,
      overlappingSync: false,
      maxDbs: 8,
      mapSize: mapBytes(path),
      ...BINARY,
    });
    try {
      const table = (name: string): Table => tableOf(root.openDB<Buffer, Buffer>(name, BINARY));
      return { root, meta: table('meta'), headers: table('headers'), blocks: table('blocks'), keys: table('keys') };
    } catch (error) {
      void root.close();
      throw error;
    }
  } catch (error) {
    throw unreadable(dir, lmdbSays(error), error);
  }
}

/**
 * Records which cluster this store belongs to, once, and every newer generation. When all nodes have lost their
 * records, only the stores know the last generation. Throws STORE_FOREIGN or STORE_UNREADABLE when the store belongs to
 * another cluster.
 */
export async function claimFor(
  file: ChainFile,
  dir: string,
  { cluster, lane, generation }: Omit<About, 'format'>,
): Promise<void> {
  const about = readAbout(file, dir);
  if (about !== undefined) {
    if (about.cluster !== cluster) throw foreign(dir, 'cluster', about.cluster, cluster);
    if (about.lane !== lane) throw foreign(dir, 'lane', about.lane, lane);
    if (generation > about.generation)
      await written(dir, file.meta.put(META.about, Buffer.from(JSON.stringify({ ...about, generation }))));
    return;
  }
  const fresh: About = { format: FORMAT_VERSION, cluster, lane, generation };
  await written(
    dir,
    file.root.batch(() => {
      void file.meta.put(META.about, Buffer.from(JSON.stringify(fresh)));
      void file.meta.put(META.head, Buffer.from('0'));
    }),
  );
  // The names of new files are safe only once their directories are synced.
  syncDirectory(dir);
  syncDirectory(dirname(dir));
}

async function written(dir: string, write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    throw writeFailed(dir, await commitReason(error));
  }
}

/**
 * lmdb reports the reason of a failed commit in a second rejected promise. Unhandled, that promise would end the
 * process.
 */
export async function commitReason(error: unknown): Promise<unknown> {
  const reason = (error as { commitError?: Promise<never> }).commitError;
  return reason === undefined ? error : reason.catch((cause: unknown) => cause);
}

/** undefined for a new store. */
export function readAbout(file: ChainFile, dir: string): About | undefined {
  const text = file.meta.get(META.about);
  if (text === undefined) {
    if (lastHeight(file) > 0) throw unreadable(dir, 'it holds blocks but not whose they are');
    return undefined;
  }
  let about: Partial<About>;
  try {
    about = JSON.parse(text.toString()) as Partial<About>;
  } catch (error) {
    throw unreadable(dir, 'the record of its format is damaged', error);
  }
  if (!Number.isSafeInteger(about.format) || typeof about.cluster !== 'string' || typeof about.lane !== 'string') {
    throw unreadable(dir, 'the record of its format is damaged');
  }
  if (about.format! > FORMAT_VERSION) throw newerFormat(dir, about.format!, FORMAT_VERSION);
  if (about.format! < 1) throw unreadable(dir, `format ${about.format} was never written by any version`);
  return { generation: 0, ...about } as About;
}

/** Returns the head. It first checks that the chain below is contiguous and that the top blocks are linked. */
export function verifiedHead(
  file: ChainFile,
  dir: string,
  about: { cluster: string; lane: string },
): StoredHeader | undefined {
  try {
    const height = Number(file.meta.get(META.head)?.toString() ?? 'NaN');
    const counted = [file.headers.entryCount(), file.blocks.entryCount(), lastHeight(file)];
    if (!counted.every((count) => count === height)) {
      throw unreadable(
        dir,
        `its head says ${height}, but it holds ${counted[0]} headers, ${counted[1]} payloads and ends at ` +
          `height ${counted[2]}`,
      );
    }
    if (height === 0) return undefined;
    let below: StoredHeader | undefined;
    for (let at = Math.max(1, height - CHECKED_HEADERS + 1); at <= height; at++) {
      const header = readHeader(file, at);
      if (header === undefined) throw unreadable(dir, `the header at height ${at} is missing or damaged`);
      const parent = at === 1 ? genesisHash(about.cluster, about.lane) : below?.hash;
      if (parent !== undefined && header.parent !== parent)
        throw unreadable(dir, `the block at height ${at} does not follow the one below it`);
      below = header;
    }
    const head = readBlock(file, height);
    if (head === undefined || blockHash(head) !== head.hash)
      throw unreadable(dir, `the block at height ${height} does not match its hash`);
    return below;
  } catch (error) {
    if (error instanceof SeqError) throw error;
    throw unreadable(dir, lmdbSays(error), error);
  }
}

export function readHeader(file: ChainFile, height: Height): StoredHeader | undefined {
  const bytes = file.headers.get(heightKey(height));
  return bytes === undefined ? undefined : decodeHeader(height, bytes);
}

export function readBlock(file: ChainFile, height: Height): CommittedBlock | undefined {
  const header = readHeader(file, height);
  const data = header && file.blocks.get(heightKey(height));
  if (header === undefined || data === undefined) return undefined;
  return { height, hash: header.hash, parent: header.parent, timestamp: header.timestamp, epoch: header.epoch, data };
}

export function readRetained(file: ChainFile): KeyWindow {
  const text = file.meta.get(META.window);
  return text === undefined ? { from: 1, keyed: 0, prunedTo: 0 } : (JSON.parse(text.toString()) as KeyWindow);
}

/** Highest height with a header, 0 when there is none. */
export function lastHeight(file: ChainFile): Height {
  const last = file.headers.lastKey();
  return last === undefined ? 0 : heightOfKey(last);
}

function tableOf(database: Database<Buffer, Buffer>): Table {
  return {
    get: (key) => database.get(key),
    put: (key, value) => database.put(key, value),
    remove: (key) => database.remove(key),
    prefetch: async (keys) => void (await database.prefetch(keys)),
    clearAsync: () => database.clearAsync(),
    lastKey: () => {
      for (const key of database.getKeys({ reverse: true, limit: 1 })) return key;
      return undefined;
    },
    entryCount: () => (database.getStats() as { entryCount: number }).entryCount,
  };
}

function syncDirectory(dir: string): void {
  const fd = openSync(dir, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
