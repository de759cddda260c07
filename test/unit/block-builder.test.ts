// When a leader makes a block of what waits: alone, while one before it is on its way to the disk, and at its block
// time.
import { beforeEach, expect, test } from 'vitest';
import { Inbox } from '../../src/core/sequencer/lead/inbox.js';
import { BlockBuilder } from '../../src/core/sequencer/lead/block-builder.js';
import type { TermDriver } from '../../src/core/sequencer/lead/term-driver.js';
import { batchProducer } from '../../src/core/produce/batch.js';
import { keyed } from '../support/blocks.js';
import { ManualClock } from '../support/manual-clock.js';
import { MemoryStore } from '../support/memory-store.js';

const BLOCK_TIME_MS = 1000;
const ITEMS_BYTES = 200;

let clock: ManualClock;
let inbox: Inbox;
let blockBuilder: BlockBuilder;
/** Time of a proposal → the items of the block. */
let proposed: string[];
let synced: (() => void) | null;
let driver: TermDriver;
let startedAt: number;
/** The producer takes none of what it is offered, as an exec child may. */
let declines: boolean;

beforeEach(() => {
  clock = new ManualClock();
  const store = new MemoryStore({ cluster: 'c1', lane: '', clock });
  inbox = new Inbox({
    store,
    clock,
    maxItems: 100,
    maxBytes: 10_000,
    maxItemBytes: 500,
    retryAfterMs: 250,
    unknownAfterMs: 2000,
  });
  inbox.open(1);
  declines = false;
  const batch = batchProducer({ maxBlockBytes: 1000 });
  proposed = [];
  synced = null;
  let disk: Promise<void> | undefined;
  driver = {
    state: { epoch: 1 },
    leaseMs: () => 3000,
    propose: () => {},
    stepdown: (code: string) => proposed.push(code),
  } as unknown as TermDriver;
  blockBuilder = new BlockBuilder({
    producer: {
      ...batch,
      name: 'test',
      needsChain: false,
      ready: () => batch.ready(),
      produce: (request) => batch.produce(declines ? { ...request, items: [] } : request),
    },
    inbox,
    clock,
    blockTimeMs: BLOCK_TIME_MS,
    nodeTimeoutMs: 100,
    eager: true,
    rests: false,
    maxBlockBytes: 1000,
    maxItemsBytes: ITEMS_BYTES,
    timestamp: () => 0,
    caughtUp: () => undefined,
    syncing: () => (synced === null ? undefined : disk),
    onProposed: (_, items) => {
      proposed.push(`${items} at ${clock.now() - startedAt}`);
      disk = new Promise(
        (resolve) =>
          (synced = () => {
            synced = null;
            resolve();
          }),
      );
    },
  });
  startedAt = clock.now();
});

const ready = (height: number): void => blockBuilder.ready(driver, height, ''.padStart(64, '0'));
const offer = (...keys: string[]): void => void inbox.offer(keyed(...keys));
async function firstBlock(): Promise<void> {
  ready(1);
  await clock.advance(0);
  expect(proposed.splice(0)).toEqual(['0 at 0']);
  ready(2);
}

test('production: eager, work comes, nothing on its way to the disk → a block at once', async () => {
  await firstBlock();
  synced!();
  await clock.advance(10);
  offer('a');
  await clock.advance(0);
  expect(proposed).toEqual(['1 at 10']);
});

test(
  'production: eager, work comes while a block is being synced → all of it in one block, right ' + 'after the sync',
  async () => {
    await firstBlock();
    offer('a');
    await clock.advance(5);
    offer('b', 'c');
    await clock.advance(5);
    expect(proposed).toEqual([]);
    synced!();
    await clock.advance(0);
    expect(proposed).toEqual(['3 at 10']);
  },
);

test('production: what waits fills a block → it is made while the one before it is being synced', async () => {
  await firstBlock();
  offer(...Array.from({ length: ITEMS_BYTES / 10 }, (_, at) => `key-${at}`));
  await clock.advance(0);
  expect(proposed).toHaveLength(1);
});

test('production: a sync that takes longer than the block time → the block is made at its time', async () => {
  await firstBlock();
  offer('a');
  await clock.advance(BLOCK_TIME_MS);
  expect(proposed).toEqual([`1 at ${BLOCK_TIME_MS}`]);
});

test(
  'production: eager, the producer takes none of what waits → asked again at its block time, not ' +
    'at once; afterwards eager again',
  async () => {
    declines = true;
    offer('a');
    ready(1);
    await clock.advance(0);
    synced!();
    ready(2);
    offer('b');
    await clock.advance(BLOCK_TIME_MS - 1);
    expect(proposed.splice(0)).toEqual(['0 at 0']);
    declines = false;
    await clock.advance(1);
    synced!();
    ready(3);
    await clock.advance(0);
    offer('c');
    await clock.advance(0);
    expect(proposed.length).toBe(2);
    expect(proposed[0]).toBe(`2 at ${BLOCK_TIME_MS}`);
  },
);

test('production: the term ends while work is gathered → no block', async () => {
  await firstBlock();
  offer('a');
  await clock.advance(1);
  blockBuilder.stop();
  synced!();
  await clock.advance(BLOCK_TIME_MS);
  expect(proposed).toEqual([]);
});

/** A block of these items that is synced, so that their senders have been answered. */
async function answered(...keys: string[]): Promise<void> {
  await firstBlock();
  offer(...keys);
  synced!();
  await clock.advance(0);
  expect(proposed.splice(0)).toEqual([`${keys.length} at 0`]);
  ready(3);
  synced!();
  await clock.advance(0);
}

test(
  'production: those who were just answered come back one after the other → one block for all, as ' +
    'soon as all are there',
  async () => {
    await answered('a', 'b', 'c');
    offer('d');
    await clock.advance(1);
    offer('e');
    expect(proposed).toEqual([]);
    offer('f');
    await clock.advance(0);
    expect(proposed).toEqual(['3 at 1']);
  },
);

test(
  'production: some of them do not come back → those who did wait 2 ms, and the next that comes ' + 'does not',
  async () => {
    await answered('a', 'b', 'c', 'd');
    offer('e');
    await clock.advance(2);
    expect(proposed.splice(0)).toEqual(['1 at 2']);
    ready(4);
    synced!();
    await clock.advance(1);
    offer('f');
    await clock.advance(0);
    expect(proposed).toEqual(['1 at 3']);
  },
);

test('production: who was answered alone comes back → a block at once', async () => {
  await answered('a');
  offer('b');
  await clock.advance(0);
  expect(proposed).toEqual(['1 at 0']);
});
