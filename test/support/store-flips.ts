// A process that flips one bit of a store, opens the store and reports what it found, then does the same with another
// bit. If LMDB follows a damaged page, a signal may end this process. Arguments: the good file, a folder, the
// seed, how many flips.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SeqError } from '../../src/core/errors.js';
import { KeysOfBlock } from '../../src/core/store/proven-keys.js';
import { openStoreReader } from '../../src/core/store/lmdb-reader.js';
import { openStore } from '../../src/core/store/lmdb-store.js';

const [good, base, seed, count] = process.argv.slice(2) as [string, string, string, string];
const bytes = readFileSync(good);
let state = Number(seed);
/** xorshift32 */
const random = (below: number): number => {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
};
const say = (text: string): void => void process.stdout.write(`${text}\n`);

const truth = new Map<number, { hash: string; keys: KeysOfBlock }>();
const dirOf = (name: string): string => {
  const dir = join(base, name);
  mkdirSync(dir);
  return dir;
};
const first = dirOf('good');
copyFileSync(good, join(first, 'chain.mdb'));
const whole = await openStore({ dir: first, cluster: 'c1', lane: '' });
for (let height = 1; height <= whole.head().height; height++) {
  const block = whole.get(height)!;
  truth.set(height, { hash: block.hash, keys: new KeysOfBlock(block) });
}
await whole.close();

for (let flip = 0; flip < Number(count); flip++) {
  const [at, bit] = [random(bytes.length), random(8)];
  const changed = Buffer.from(bytes);
  changed[at]! ^= 1 << bit;
  say(`flip ${flip}: bit ${bit} of byte ${at}`);
  for (const how of ['read', 'written']) {
    const dir = dirOf(`${how}-${flip}`);
    writeFileSync(join(dir, 'chain.mdb'), changed);
    try {
      say(`${how}: ${how === 'read' ? await readAll(dir) : await openAll(dir)}`);
    } catch (error) {
      if (!(error instanceof SeqError)) throw error;
      say(`${how}: ${error.code}`);
    }
    rmSync(dir, { recursive: true });
  }
}

async function readAll(dir: string): Promise<string> {
  const reader = openStoreReader(dir);
  try {
    reader.head();
    for (const [height, { hash }] of truth) {
      try {
        const block = reader.get(height);
        if (block !== undefined && block.hash !== hash) return `WRONG block ${height}`;
      } catch (error) {
        if (!(error instanceof SeqError)) throw error;
      }
    }
    return 'right';
  } finally {
    await reader.close();
  }
}

/** As a sequencer does: opens the store, checks all of it once, and then answers from it. */
async function openAll(dir: string): Promise<string> {
  const store = await openStore({ dir, cluster: 'c1', lane: '' });
  try {
    while (await store.scrub());
    let missing = 0;
    for (const [height, { hash, keys }] of truth) {
      const block = store.get(height);
      if (block !== undefined && block.hash !== hash) return `WRONG block ${height}`;
      if (block === undefined) missing++;
      if (block === undefined && !store.damaged.has(height)) return `WRONG: block ${height} is missing and not told`;
      for (const name of keys.names) {
        const [right, told] = [keys.receipt(name)!, store.receipt(name)];
        if (told === 'unproven' || (told === undefined && block === undefined)) continue;
        const same = told?.height === right.height && told.index === right.index && told.digest === right.digest;
        if (!same) return `WRONG: receipt of ${name}: ${JSON.stringify(told)}`;
      }
    }
    return missing === 0 ? 'right' : `${missing} damaged`;
  } finally {
    await store.close();
  }
}
