// Gives out blocks of the file only when their bytes match their hash (docs/PROTOCOL.md section 7). A disk may change
// a bit and say nothing. Every reader of the store reads here: nodes, feeds, peers and children get a right block or
// none. A damaged block is known by its height, until the right bytes are in its place.
import { blockHash } from '../chain/block.js';
import type { CommittedBlock, DamagedBlock } from '../ports.js';
import type { Block, Hash, Height } from '../protocol/types.js';
import { readBlock, readHeader, type ChainFile } from './chain-file.js';
import type { StoredHeader } from './records.js';
import { lmdbSays } from './store-errors.js';

export class ProvenBlocks {
  private readonly known = new Map<Height, DamagedBlock>();

  constructor(
    private readonly file: ChainFile,
    private readonly found: (damaged: DamagedBlock) => void = () => {},
  ) {}

  /** The damaged blocks that were found and not repaired, by height. */
  get damaged(): ReadonlyMap<Height, DamagedBlock> {
    return this.known;
  }

  /** A block that the store must hold. undefined when it is damaged. */
  read(height: Height): CommittedBlock | undefined {
    let why: string;
    try {
      const block = readBlock(this.file, height);
      if (block !== undefined && blockHash(block) === block.hash) return block;
      why = block === undefined ? 'its record is missing or cannot be read' : 'its bytes do not match its hash';
    } catch (error) {
      why = lmdbSays(error);
    }
    const damaged = { height, why };
    const first = !this.known.has(height);
    this.known.set(height, damaged);
    if (first) this.found(damaged);
    return undefined;
  }

  /**
   * Is this the block that was stored at its height? Two records name its hash: its own header, and the next block,
   * whose parent it is. Damage never turns a hash into that of another block, so one of the two is enough.
   */
  proves(block: Block, above: Hash | undefined): boolean {
    return blockHash(block) === block.hash && (block.hash === this.header(block.height)?.hash || block.hash === above);
  }

  /** The header as it is on disk, right or wrong. */
  header(height: Height): StoredHeader | undefined {
    try {
      return readHeader(this.file, height);
    } catch {
      return undefined; // A header that LMDB cannot read names no hash.
    }
  }

  repaired(height: Height): void {
    this.known.delete(height);
  }
}
