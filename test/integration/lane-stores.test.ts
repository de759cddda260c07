// The chains of many lanes in one store environment: each is as apart as in a directory of its own, and what is appended
// at one moment shares a sync.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { encodeItems } from '../../src/core/chain/items.js';
import type { ChainStore, CommittedBlock } from '../../src/core/ports.js';
import { LaneStores } from '../../src/core/store/lane-stores.js';

let base: string;
let stores: LaneStores;
beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'seq-lanes-'));
  stores = await LaneStores.open(join(base, 'store'));
});
afterEach(async () => {
  await stores.close();
  rmSync(base, { recursive: true, force: true });
});

const lane = (name: string, cluster = 'c1') => stores.lane({ cluster, lane: name });

function next(store: ChainStore, name: string, key = `${name}-${store.head().height + 1}`): CommittedBlock {
  const { height, hash, timestamp } = store.head();
  const data = encodeItems([{ key, data: Buffer.from(`${name} ${height + 1}`) }]);
  return { ...makeBlock({ height: height + 1, parent: hash, timestamp: timestamp + 1, data }), epoch: 1 };
}

async function reopened(): Promise<void> {
  await stores.close();
  stores = await LaneStores.open(join(base, 'store'));
}

test('lane stores: names that begin alike → chains, keys and heads of their own, also after a restart', async () => {
  const names = ['a', 'a-b', 'ab', 'b', 'b0'];
  const lanes = await Promise.all(names.map((name) => lane(name)));
  const heads: string[] = [];
  for (const [i, store] of lanes.entries()) {
    expect(store.head()).toMatchObject({ height: 0, hash: genesisHash('c1', names[i]!) });
    for (let count = 0; count <= i; count++) await store.append(next(store, names[i]!, `key-${count}`));
    heads.push(store.head().hash);
    await store.close();
  }
  await reopened();
  for (const [i, name] of names.entries()) {
    const store = await lane(name);
    expect(store.head()).toMatchObject({ height: i + 1, hash: heads[i] });
    expect(store.get(i + 1)?.hash).toBe(heads[i]);
    expect(store.get(i + 2)).toBeUndefined();
    expect(store.receipt('key-0')).toMatchObject({ height: 1, index: 0 });
    expect(store.receipt(`key-${i + 1}`)).toBeUndefined();
    await store.append(next(store, name));
    await store.close();
  }
});

test('lane stores: blocks of a hundred lanes at one moment → each is synced, in fewer transactions than lanes', async () => {
  const lanes = await Promise.all(Array.from({ length: 100 }, (_, i) => lane(`t${i}`)));
  const before = stores.transactions;
  await Promise.all(lanes.map((store, i) => store.append(next(store, `t${i}`))));
  expect(stores.transactions - before).toBeLessThan(10);
  await Promise.all(lanes.map((store) => store.close()));
  await reopened();
  for (let i = 0; i < 100; i++) expect((await lane(`t${i}`)).head().height).toBe(1);
});

test('lane stores: a lane of another cluster → STORE_FOREIGN, the other lanes are open', async () => {
  const store = await lane('a');
  await store.append(next(store, 'a'));
  await expect(lane('a', 'c2')).rejects.toMatchObject({ code: 'STORE_FOREIGN' });
  await (await lane('b')).close();
  expect(store.get(1)).toBeDefined();
});

test('lane stores: a second process → STORE_LOCKED', async () => {
  await expect(LaneStores.open(join(base, 'store'))).rejects.toMatchObject({ code: 'STORE_LOCKED' });
});
