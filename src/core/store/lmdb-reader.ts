// Reads a store from another process while its sequencer writes. Every call sees the newest synced state. The reader
// changes nothing except the file's length, where LMDB cut off the end (meta-pages.ts).
import { existsSync } from 'node:fs';
import { blockHash, genesisHash } from '../chain/block.js';
import type { CommittedBlock } from '../ports.js';
import type { Hash, Height } from '../protocol/types.js';
import {
  chainPath,
  lastHeight,
  openChainFile,
  readAbout,
  readBlock,
  readHeader,
  type About,
  type ChainFile,
} from './chain-file.js';
import { absent, damagedBlock, readFailed, unreadable } from './store-errors.js';

export interface StoreReader {
  readonly cluster: string;
  readonly lane: string;
  /** The newest generation of the cluster that its sequencer served. 0 when it was not recorded. */
  readonly generation: number;
  /** Highest synced block; height 0 and the genesis hash when empty. */
  head(): { height: Height; hash: Hash };
  /** Throws STORE_DAMAGED when the block's bytes do not match its hash. */
  get(height: Height): CommittedBlock | undefined;
  /** Blocks from…to (inclusive; the default is the present head), in order. They are read one by one. */
  range(from: Height, to?: Height): IterableIterator<CommittedBlock>;
  close(): Promise<void>;
}

/** Throws SeqError STORE_NOT_FOUND (66) or STORE_UNREADABLE (78). */
export function openStoreReader(dir: string): StoreReader {
  if (!existsSync(chainPath(dir))) throw absent(dir);
  const file = openChainFile(dir, true);
  let about: About | undefined;
  try {
    about = readAbout(file, dir);
  } catch (error) {
    void file.root.close();
    throw readFailed(dir, error);
  }
  if (about === undefined) {
    void file.root.close();
    throw absent(dir);
  }
  return reader(file, dir, about);
}

function reader(file: ChainFile, dir: string, about: About): StoreReader {
  /** Without this, every read would see the state of the first read. */
  const fresh = <T>(read: () => T): T => {
    file.root.resetReadTxn();
    try {
      return read();
    } catch (error) {
      throw readFailed(dir, error);
    }
  };
  const get = (height: Height): CommittedBlock | undefined =>
    fresh(() => {
      const block = Number.isSafeInteger(height) && height >= 1 ? readBlock(file, height) : undefined;
      if (block !== undefined && blockHash(block) !== block.hash) throw damagedBlock(height, dir);
      return block;
    });
  const head = (): { height: Height; hash: Hash } =>
    fresh(() => {
      const height = lastHeight(file);
      if (height === 0) return { height, hash: genesisHash(about.cluster, about.lane) };
      const header = readHeader(file, height);
      if (header === undefined) throw unreadable(dir, `the header at height ${height} is damaged`);
      return { height, hash: header.hash };
    });
  return {
    cluster: about.cluster,
    lane: about.lane,
    generation: about.generation,
    head,
    get,
    *range(from, to = head().height) {
      for (let height = Math.max(1, from); height <= to; height++) {
        const block = get(height);
        if (block === undefined) return;
        yield block;
      }
    },
    close: () => file.root.close(),
  };
}
