// The stores of many lanes in one LMDB environment (docs/decisions/0015). Every key begins with the lane. Appends of
// all lanes in one turn of the event loop share a transaction, and so a sync. The chains stay apart: each lane's store
// has its own head, its own window of keys, and its own check when it is opened.
import { join } from 'node:path';
import { open, type Database, type RootDatabase } from 'lmdb';
import { SeqError } from '../errors.js';
import { makeFolder } from '../home.js';
import { META, claimFor, readRetained, verifiedHead, type ChainFile, type Table } from './chain-file.js';
import { LmdbStore, type StoreOptions } from './lmdb-store.js';
import { checkPages, mapBytes } from './meta-pages.js';
import { MOST_PAGES } from './tree-pages.js';
import { heightOfKey } from './records.js';
import { cannotBeMade, lmdbSays, readFailed, unreadable } from './store-errors.js';
import { takeWriterLock } from './writer-lock.js';

type Plain = Database<Buffer, Buffer>;

interface Environment {
  root: RootDatabase<Buffer, Buffer>;
  meta: Plain;
  headers: Plain;
  blocks: Plain;
  keys: Plain;
}

const BINARY = { encoding: 'binary', keyEncoding: 'binary' } as const;
/** Ends the name of the lane in a key. No lane's name contains it. */
const END = 0;
/** Keys of a lane that are removed in one transaction. */
const CLEARED_AT_ONCE = 4096;

export class LaneStores {
  private constructor(
    private readonly dir: string,
    private readonly environment: Environment,
    private readonly unlock: () => void,
  ) {}

  /** Throws SeqError STORE_UNREADABLE or STORE_LOCKED (78). The lock is for all lanes. */
  static async open(dir: string): Promise<LaneStores> {
    try {
      makeFolder(dir);
    } catch (error) {
      throw cannotBeMade(dir, error);
    }
    const lock = takeWriterLock(dir);
    try {
      return new LaneStores(dir, openEnvironment(dir, lock.afterCrash), () => lock.release());
    } catch (error) {
      lock.release(!lock.afterCrash);
      throw readFailed(dir, error);
    }
  }

  /** Throws as `openStore` does. Closing it leaves the other lanes open. */
  async lane(options: Omit<StoreOptions, 'dir'>): Promise<LmdbStore> {
    const { cluster, lane, generation = 0 } = options;
    const file = laneFile(this.environment, lane);
    try {
      await claimFor(file, this.dir, { cluster, lane, generation });
      const head = verifiedHead(file, this.dir, { cluster, lane });
      const store = new LmdbStore(file, () => undefined, { ...options, dir: this.dir }, head, readRetained(file));
      if (file.meta.get(META.rebuild) !== undefined) await store.rebuildKeys(head?.height ?? 0);
      return store;
    } catch (error) {
      throw readFailed(this.dir, error);
    }
  }

  /** How many write transactions the environment has had. */
  get transactions(): number {
    return (this.environment.root.getStats() as { lastTxnId: number }).lastTxnId;
  }

  /** The stores of the lanes are closed before. */
  async close(): Promise<void> {
    await this.environment.root.close();
    this.unlock();
  }
}

function openEnvironment(dir: string, afterCrash: boolean): Environment {
  const path = join(dir, 'lanes.mdb');
  checkPages(dir, path, { readOnly: false, mostPages: afterCrash ? Infinity : MOST_PAGES });
  try {
    const root = open<Buffer, Buffer>({
      ...{ path, noSubdir: true, overlappingSync: false, maxDbs: 8, mapSize: mapBytes(path) },
      ...BINARY,
    });
    try {
      const table = (name: string): Plain => root.openDB<Buffer, Buffer>(name, BINARY);
      return { root, meta: table('meta'), headers: table('headers'), blocks: table('blocks'), keys: table('keys') };
    } catch (error) {
      void root.close();
      throw error;
    }
  } catch (error) {
    if (error instanceof SeqError) throw error;
    throw unreadable(dir, lmdbSays(error), error);
  }
}

function laneFile({ root, meta, headers, blocks, keys }: Environment, lane: string): ChainFile {
  const prefix = Buffer.from(`${lane}\0`);
  return {
    // The environment is closed once, after all lanes.
    root: { batch: (work) => root.batch(work), resetReadTxn: () => root.resetReadTxn(), close: async () => undefined },
    meta: laneTable(meta, prefix),
    headers: laneTable(headers, prefix),
    blocks: laneTable(blocks, prefix),
    keys: laneTable(keys, prefix),
  };
}

function laneTable(table: Plain, prefix: Buffer): Table {
  const within = (key: Buffer): Buffer => Buffer.concat([prefix, key]);
  const after = Buffer.from(prefix);
  after[after.length - 1] = END + 1;
  const ends = (reverse: boolean): { start: Buffer; end: Buffer } =>
    reverse ? { start: after, end: prefix } : { start: prefix, end: after };
  const firstOf = (reverse: boolean): Buffer | undefined => {
    for (const key of table.getKeys({ ...ends(reverse), reverse, limit: 1 })) return key.subarray(prefix.length);
    return undefined;
  };
  return {
    get: (key) => table.get(within(key)),
    put: (key, value) => table.put(within(key), value),
    remove: (key) => table.remove(within(key)),
    prefetch: async (keys) => void (await table.prefetch(keys.map(within))),
    clearAsync: async () => {
      for (;;) {
        const some = [...table.getKeys({ ...ends(false), limit: CLEARED_AT_ONCE })];
        if (some.length === 0) return;
        await Promise.all(some.map((key) => table.remove(key)));
      }
    },
    lastKey: () => firstOf(true),
    // Counting would read every key. Where heights are keys, the ends say how many there are if none is missing.
    entryCount: () => {
      const [first, last] = [firstOf(false), firstOf(true)];
      return first === undefined || last === undefined ? 0 : heightOfKey(last) - heightOfKey(first) + 1;
    },
  };
}
