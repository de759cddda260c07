// What becomes of submitted items: every way a term can go, and what the submitter is told.
import { beforeEach, describe, expect, test } from 'vitest';
import { encodeItems } from '../../src/core/chain/items.js';
import { Inbox } from '../../src/core/sequencer/lead/inbox.js';
import { InvariantError } from '../../src/core/errors.js';
import type { Item, SubmitOutcome } from '../../src/core/ports.js';
import { batchProducer, largestItem } from '../../src/core/produce/batch.js';
import { ChainMaker, keyed, text } from '../support/blocks.js';
import { ManualClock } from '../support/manual-clock.js';
import { MemoryStore } from '../support/memory-store.js';

let clock: ManualClock;
let store: MemoryStore;
let maker: ChainMaker;
let inbox: Inbox;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryStore({ cluster: 'c1', lane: '', clock });
  maker = new ChainMaker();
  inbox = make();
  inbox.open(1);
});

function make(limits: object = {}): Inbox {
  return new Inbox({
    store,
    clock,
    maxItems: 100,
    maxBytes: 10_000,
    maxItemBytes: 500,
    retryAfterMs: 250,
    unknownAfterMs: 2000,
    ...limits,
  });
}
/** The outcomes in short: `h.i` (and `=` when a duplicate), the reason of a refusal, or `?`. */
const short = (outcome: SubmitOutcome): string =>
  outcome.outcome === 'committed'
    ? `${outcome.receipt.height}.${outcome.receipt.index}${outcome.duplicate ? '=' : ''}`
    : outcome.outcome === 'unknown'
      ? '?'
      : outcome.reason;
/** Offers the items, and returns what is known so far. */
function offer(...items: Item[]): { told: string } {
  const state = { told: '-' };
  void inbox.offer(items).then((outcomes) => (state.told = outcomes.map(short).join(' ')));
  return state;
}
const turn = (): Promise<void> => clock.advance(0);
const block = (items: Item[], epoch = 1) => maker.block(encodeItems(items), { epoch });

describe('inbox: the way of an item', () => {
  test('inbox: offered, peeked, proposed, settled → told its height and index only then', async () => {
    const told = offer(...keyed('a', 'b'), { data: text('no key') });
    const items = inbox.peek(1000, 10);
    expect(items).toHaveLength(3);
    const made = block(items, 7);
    expect(inbox.propose(made, 3)).toBe(true);
    await store.append(made);
    await turn();
    expect(told.told).toBe('-');
    expect(inbox.status()).toMatchObject({ items: 3 });
    inbox.settle(made);
    await turn();
    expect(told.told).toBe('1.0 1.1 1.2');
    expect(inbox.status()).toEqual({ items: 0, bytes: 0, limitBytes: 10_000 });
  });

  test(
    'inbox: a block takes some → the rest is offered to the next one, which may be proposed before ' +
      'the first is settled',
    async () => {
      const told = offer(...keyed('a', 'b', 'c'));
      inbox.peek(1000, 10);
      const one = block(keyed('a'));
      inbox.propose(one, 1);
      expect(inbox.peek(1000, 1).map((item) => item.key)).toEqual(['b']);
      expect(inbox.peek(1000, 10).map((item) => item.key)).toEqual(['b', 'c']);
      const two = block(keyed('b', 'c'));
      inbox.propose(two, 2);
      for (const made of [one, two]) {
        await store.append(made);
        inbox.settle(made);
      }
      await turn();
      expect(told.told).toBe('1.0 2.0 2.1');
    },
  );

  test('inbox: more taken than offered → a bug is reported', () => {
    offer(...keyed('a'));
    inbox.peek(1000, 10);
    expect(() => inbox.propose(block(keyed('a', 'b')), 2)).toThrow(InvariantError);
  });

  test('inbox: work → listeners are called once per offer that queued something', () => {
    let calls = 0;
    inbox.onWork(() => calls++);
    offer(...keyed('a', 'b'));
    offer(...keyed('a'));
    offer();
    expect(calls).toBe(1);
  });
});

describe('inbox: the end of a term', () => {
  test('inbox: never led, or abandoned → refused not-leader; stopped → stopping, for good', async () => {
    inbox = make();
    const early = offer(...keyed('a'));
    inbox.open(1);
    inbox.abandon('fenced');
    const late = offer(...keyed('a'));
    inbox.stop('SIGTERM');
    inbox.abandon('fenced');
    const last = offer(...keyed('a'));
    await turn();
    expect([early.told, late.told, last.told]).toEqual(['not-leader', 'not-leader', 'stopping']);
  });

  const table: [name: string, decide: () => Promise<void>, told: string][] = [
    ['that very block committed', async () => settle(proposed), '1.0 1.1 not-leader'],
    [
      'another block committed there',
      async () => settle(foreign([{ data: text('z') }])),
      'not-leader not-leader not-leader',
    ],
    [
      'another block there holds one of the items',
      async () => settle(foreign([{ data: text('z') }, ...keyed('b')])),
      'not-leader 1.1= not-leader',
    ],
    [
      'another block there holds other bytes for a key',
      async () => settle(foreign([{ key: 'a', data: text('other') }])),
      'not-leader not-leader not-leader',
    ],
    [
      'a later block settled, that height known from the store',
      async () => {
        const other = foreign([]);
        await store.append(other);
        await settle(maker.block());
      },
      'not-leader not-leader not-leader',
    ],
    ['nothing known in time', async () => clock.advance(2000), '? ? not-leader'],
    [
      'that very block committed just in time',
      async () => {
        await clock.advance(1999);
        await settle(proposed);
      },
      '1.0 1.1 not-leader',
    ],
  ];
  let proposed: ReturnType<typeof block>;
  const settle = async (made: ReturnType<typeof block>): Promise<void> => {
    await store.append(made);
    inbox.settle(made);
  };
  const foreign = (items: Item[]): ReturnType<typeof block> => {
    maker = new ChainMaker();
    return block(items, 2);
  };
  test.each(table)('inbox: abandoned with a block in flight, %s', async (_name, decide, expected) => {
    const told = offer(...keyed('a', 'b', 'c'));
    inbox.peek(1000, 2);
    proposed = block(keyed('a', 'b'));
    inbox.propose(proposed, 2);
    inbox.abandon('fenced');
    await turn();
    expect(told.told).toBe('-');
    await decide();
    await turn();
    expect(told.told).toBe(expected);
    expect(inbox.status()).toMatchObject({ items: 0, bytes: 0 });
  });

  test('inbox: abandoned while the block is being made → refused, and the block must not be written', async () => {
    const told = offer(...keyed('a'));
    inbox.peek(1000, 10);
    inbox.abandon('fenced');
    expect(inbox.propose(block(keyed('a')), 1)).toBe(false);
    await turn();
    expect(told.told).toBe('not-leader');
  });

  test(
    'inbox: in flight from an earlier term, sent again in a new one → joins; both get the same ' + 'receipt',
    async () => {
      const first = offer(...keyed('a'));
      inbox.peek(1000, 10);
      const made = block(keyed('a'));
      inbox.propose(made, 1);
      inbox.abandon('fenced');
      inbox.open(1);
      const again = offer(...keyed('a'));
      expect(inbox.queued).toBe(0);
      await settle(made);
      await turn();
      expect([first.told, again.told]).toEqual(['1.0', '1.0=']);
    },
  );
});

describe('inbox: the same key', () => {
  test(
    'inbox: in the chain already → its first receipt, a duplicate; other bytes → key-conflict; also ' + 'on a follower',
    async () => {
      const made = block(keyed('x', 'a'), 4);
      await store.append(made);
      inbox.settle(made);
      const led = offer(...keyed('a'), { key: 'a', data: text('other') });
      inbox.abandon('fenced');
      const followed = offer(...keyed('a', 'new'));
      await turn();
      expect([led.told, followed.told]).toEqual(['1.1= key-conflict', '1.1= not-leader']);
    },
  );

  test('inbox: waiting already → joins it, or key-conflict; twice in one offer too', async () => {
    const one = offer(...keyed('a', 'a'));
    const two = offer(...keyed('a'), { key: 'a', data: text('other') });
    const items = inbox.peek(1000, 10);
    expect(items).toHaveLength(1);
    const made = block(items);
    inbox.propose(made, 1);
    await store.append(made);
    inbox.settle(made);
    await turn();
    expect([one.told, two.told]).toEqual(['1.0 1.0=', '1.0= key-conflict']);
  });

  test(
    'inbox: in a block that is appended but not synced → told after the sync, unknown when that ' + 'stays away',
    async () => {
      const one = block(keyed('a'));
      await store.append(one);
      const soon = offer(...keyed('a'));
      await turn();
      expect(soon.told).toBe('-');
      inbox.settle(one);
      await turn();
      expect(soon.told).toBe('1.0=');
      await store.append(block(keyed('b')));
      const never = offer(...keyed('b'));
      await clock.advance(2000);
      expect(never.told).toBe('?');
    },
  );

  test.each<[string, number, number | null, number | string]>([
    // a repeated key: the epoch that the store knows of its block, the term that answers, the epoch of the receipt
    ['a block that was learnt: its epoch is not known', 0, 3, 3],
    ['a block of an earlier term', 2, 3, 3],
    ['a copy of a later epoch than this term', 5, 3, 5],
    ['nobody leads here, and the epoch is known', 2, null, 2],
    ['nobody leads here, and the epoch is not known', 0, null, 'not-leader'],
  ])('inbox: a repeated key, %s → its receipt fences', async (_, stored, term, expected) => {
    const made = block(keyed('a'), stored);
    await store.append(made);
    inbox = make();
    if (term !== null) inbox.open(term);
    const [outcome] = await inbox.offer(keyed('a'));
    expect(outcome!.outcome === 'committed' ? outcome!.receipt : short(outcome!)).toEqual(
      typeof expected === 'number' ? { height: 1, index: 0, epoch: expected } : expected,
    );
  });

  test('inbox: the block of this term was learnt from its successor → the receipt has this epoch at least', async () => {
    inbox.open(4);
    const told = inbox.offer(keyed('a'));
    inbox.peek(1000, 10);
    const made = block(keyed('a'), 0);
    inbox.propose(made, 1);
    inbox.abandon('fenced');
    await store.append(made);
    inbox.settle(made);
    expect(await told).toEqual([
      { outcome: 'committed', receipt: { height: 1, index: 0, epoch: 4 }, duplicate: false },
    ]);
  });

  test('inbox: no key → never de-duplicated', async () => {
    offer({ data: text('x') }, { data: text('x') });
    expect(inbox.peek(1000, 10)).toHaveLength(2);
  });

  test('inbox: not a key → RangeError, nothing taken in', () => {
    expect(() => inbox.offer([...keyed('a'), { key: 'a\nb', data: text('x') }])).toThrow(RangeError);
    expect(inbox.queued).toBe(0);
  });
});

describe('inbox: limits', () => {
  test(
    'inbox: full by count or by bytes → busy with a time, and everything behind it in the same offer ' + 'too',
    async () => {
      for (const limits of [{ maxItems: 2 }, { maxBytes: 2 * (2 + 1 + 10) }]) {
        inbox = make(limits);
        inbox.open(1);
        const three = ['a', 'b', 'c'].map((key) => ({ key, data: new Uint8Array(10) }));
        const outcomes = inbox.offer([...three, { data: new Uint8Array(0) }]);
        const late = await inbox.offer([{ data: new Uint8Array(20) }]);
        expect(late).toMatchObject([{ outcome: 'refused', reason: 'busy', retryAfterMs: 250 }]);
        expect(inbox.queued).toBe(2);
        inbox.abandon('fenced');
        expect((await outcomes).map(short)).toEqual(['not-leader', 'not-leader', 'busy', 'busy']);
      }
    },
  );

  test('inbox: proposed items hold their room until they are settled', async () => {
    inbox = make({ maxItems: 1 });
    inbox.open(1);
    offer(...keyed('a'));
    inbox.peek(1000, 10);
    const made = block(keyed('a'));
    inbox.propose(made, 1);
    expect((await inbox.offer(keyed('b'))).map(short)).toEqual(['busy']);
    await store.append(made);
    inbox.settle(made);
    offer(...keyed('b'));
    expect(inbox.queued).toBe(1);
  });

  test('inbox: larger than an item may be → too-large, the rest is taken in', async () => {
    const outcomes = inbox.offer([{ data: new Uint8Array(498) }, { data: new Uint8Array(497) }]);
    expect(inbox.queued).toBe(1);
    inbox.abandon('fenced');
    expect((await outcomes).map(short)).toEqual(['too-large', 'not-leader']);
  });

  test('inbox: peek → as many as fit; one that fits into no block is refused and holds up nobody', async () => {
    const told = offer({ data: new Uint8Array(300) }, ...keyed('a', 'b'));
    expect(inbox.peek(303, 10)).toHaveLength(1);
    expect(inbox.peek(302, 10).map((item) => item.key)).toEqual(['a', 'b']);
    inbox.abandon('fenced');
    await turn();
    expect(told.told).toBe('too-large not-leader not-leader');
  });
});

describe('produce: batch', () => {
  test('produce: items → as many as fit into a block, exactly', async () => {
    const items = keyed('a', 'b', 'c', 'd');
    const whole = encodeItems(items).length;
    for (const [maxBlockBytes, taken] of [
      [whole, 4],
      [whole - 1, 3],
      [whole * 2, 4],
      [20, 0],
    ] as const) {
      const made = await batchProducer({ maxBlockBytes }).produce({
        height: 1,
        parent: '',
        epoch: 1,
        deadlineMs: 1,
        items,
      });
      expect([made.taken, made.data.length <= maxBlockBytes]).toEqual([taken, true]);
      expect(made.data).toEqual(encodeItems(items.slice(0, taken)));
    }
  });
  test('produce: the largest item that the inbox takes in → fits into a block', async () => {
    const maxBlockBytes = 1000;
    const item = { data: new Uint8Array(largestItem(maxBlockBytes) - 3) };
    expect(
      (
        await batchProducer({ maxBlockBytes }).produce({
          height: 1,
          parent: '',
          epoch: 1,
          deadlineMs: 1,
          items: [item],
        })
      ).taken,
    ).toBe(1);
  });
});
