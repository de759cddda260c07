// Hostile Redis servers: whatever a reply, an entry or INFO looks like, the answer is accepted, refused or unknown,
// and never an exception.
import '../support/fuzz-seed.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeBlock } from '../../src/core/chain/block.js';
import { parseEntries } from '../../src/core/redis/entries.js';
import {
  parseErrorReply,
  parseInfo,
  parseReply,
  readOrUnknown,
  UnreadableReply,
} from '../../src/core/redis/replies.js';
import { SCRIPTS } from '../../src/core/redis/scripts.js';
import type { ScriptName } from '../../src/core/protocol/types.js';

/** Anything a RESP reply can become in the client. */
const resp = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.string({ maxLength: 20 }).map((text) => Buffer.from(text)),
    fc
      .constantFrom(
        'accepted',
        'refused',
        'FENCING_ERROR',
        'HEIGHT_EXISTS',
        'NOT_ADMITTED',
        'epoch',
        'hash',
        'check',
        'head',
        'record',
        'admission',
        'lock',
        'admitted',
        'wiped',
        '0',
        '1',
        '9007199254740992',
        '-1',
        '1e3',
        '0x10',
        '__proto__',
      )
      .map((text) => Buffer.from(text)),
    fc.integer(),
    fc.constant(null),
    fc.double(),
    fc.constant(new Error('WRONGTYPE nested')),
    fc.array(tie('any'), { maxLength: 8 }),
  ),
})).any;
const scripts = Object.keys(SCRIPTS) as ScriptName[];
const bytes = (text: string) => Buffer.from(text);

describe('fuzz: replies', () => {
  test.each(scripts)('fuzz: %s, any reply → one of the three outcomes, bounded words', (script) => {
    fc.assert(
      fc.property(
        fc.oneof(
          resp,
          fc.array(resp, { maxLength: 14 }),
          fc.array(resp, { maxLength: 30 }).map((rest) => [bytes('accepted'), bytes('inc'), ...rest]),
          fc.array(resp, { maxLength: 8 }).map((rest) => [bytes('refused'), ...rest]),
        ),
        (raw) => {
          const reply = parseReply<unknown>(raw, SCRIPTS[script].parse);
          if (reply.outcome === 'unknown') {
            expect(reply.step).toBe('reply');
            expect(reply.alarm).toBe(true);
            expect(reply.cause.length).toBeLessThan(300);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  test('fuzz: inspect, a real view with anything in one place → never an exception, numbers are whole', () => {
    const names = [
      'cluster',
      'node',
      'run',
      'incarnation',
      'claimant',
      'head',
      'head_epoch',
      'head_hash',
      'floor',
      'floor_hash',
      'pending',
    ];
    const fields = [
      'admission',
      'why',
      'run',
      'record',
      'lock',
      'lock_pttl',
      'hold',
      'hold_pttl',
      'handover',
      'handover_pttl',
      'request',
      'epoch',
      'length',
      'sequencers',
      'time_ms',
      'info',
    ];
    const value = (name: string): unknown =>
      ['record'].includes(name)
        ? names.flatMap((one) => [bytes(one), bytes('1')])
        : ['hold', 'request', 'sequencers', 'info'].includes(name)
          ? []
          : name === 'admission'
            ? bytes('admitted')
            : ['lock', 'handover', 'why', 'run'].includes(name)
              ? bytes('')
              : bytes('1');
    fc.assert(
      fc.property(fc.constantFrom(...fields), resp, fc.constantFrom(...names), resp, (at, odd, inner, odder) => {
        const view = fields.flatMap((name) => [
          bytes(name),
          name === at
            ? odd
            : name === 'record'
              ? names.flatMap((one) => [bytes(one), one === inner ? odder : bytes('1')])
              : value(name),
        ]);
        const reply = parseReply([bytes('accepted'), bytes(''), ...view], SCRIPTS.inspect.parse);
        if (reply.outcome !== 'accepted') return;
        for (const number of [
          reply.value.head,
          reply.value.floor,
          reply.value.epoch,
          reply.value.headEpoch,
          reply.value.length,
        ])
          expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test('fuzz: error replies → refused only for Redis’ own words, one bounded line', () => {
    const words = ['LOADING', 'BUSY', 'READONLY', 'NOREPLICAS', 'MISCONF', 'OOM', 'NOPERM', 'NOAUTH', 'WRONGPASS'];
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ maxLength: 400, unit: 'binary' }),
          fc
            .tuple(
              fc.constantFrom(...words, 'ERR', 'NOSCRIPT', 'EXECABORT', 'oom', 'OOMS'),
              fc.string({ maxLength: 400 }),
            )
            .map((parts) => parts.join(' ')),
        ),
        (message) => {
          const reply = parseErrorReply(message);
          const said = reply.outcome === 'refused' ? (reply.detail.message ?? '') : reply.cause;
          expect(said.length).toBeLessThanOrEqual(200);
          expect(said).not.toContain('\n');
          if (reply.outcome === 'refused' && !/^ERR (The user|ACL failure)/.test(message))
            expect(words.includes(/^[A-Z]+/.exec(message)?.[0] ?? '')).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('fuzz: INFO → a plain table of strings', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300, unit: 'binary' }), (raw) => {
        for (const value of Object.values(parseInfo(raw))) expect(typeof value).toBe('string');
      }),
      { numRuns: 500 },
    );
    expect(Object.getPrototypeOf(parseInfo('__proto__:x\r\nrun_id:1'))).toBe(Object.prototype);
  });
});

describe('fuzz: stream entries', () => {
  const block = makeBlock({ height: 7, parent: 'ab'.repeat(32), timestamp: 5, data: bytes('payload') });
  const fields = (): [string, unknown][] => [
    ['height', bytes('7')],
    ['data', block.data],
    ['epoch', bytes('3')],
    ['timestamp', bytes('5')],
    ['parent', bytes(block.parent)],
    ['hash', bytes(block.hash)],
    ['owner', bytes('a/1')],
  ];

  test('fuzz: any answer → entries, damage, or unreadable; through the reader never an exception', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          resp,
          fc.array(
            fc.tuple(
              fc.oneof(fc.constantFrom('1-1', '7-3', '99999999999999999999-1', '1e3-1', '-1', '1-').map(bytes), resp),
              fc.oneof(resp, fc.array(resp, { maxLength: 14 })),
            ),
            { maxLength: 5 },
          ),
        ),
        fc.boolean(),
        (raw, data) => {
          const read = readOrUnknown(() => ({
            outcome: 'accepted',
            incarnation: '',
            value: parseEntries(raw, { data }),
          }));
          expect(['accepted', 'unknown']).toContain(read.outcome);
          try {
            for (const one of parseEntries(raw, { data }).damaged)
              expect(one.height === null || Number.isSafeInteger(one.height)).toBe(true);
          } catch (error) {
            expect(error).toBeInstanceOf(UnreadableReply);
          }
        },
      ),
      { numRuns: 1500 },
    );
  });

  test(
    'fuzz: a good entry with one field replaced, lost, doubled or one bit changed → damaged, and the ' +
      'one beside it is read',
    () => {
      const good = fields().flat();
      expect(
        parseEntries([[bytes('7-3'), good.map((part) => (typeof part === 'string' ? bytes(part) : part))]], {
          data: true,
        }).entries,
      ).toHaveLength(1);
      fc.assert(
        fc.property(fc.nat(6), fc.constantFrom('replace', 'lose', 'flip'), resp, fc.nat(), (at, how, odd, where) => {
          const changed = fields();
          const [name, value] = changed[at]!;
          if (how === 'lose') changed.splice(at, 1);
          else if (how === 'replace') changed[at] = [name, odd];
          else {
            const copy = Buffer.from(value as Buffer);
            copy[where % copy.length]! ^= 1 << (where % 8);
            changed[at] = [name, copy];
          }
          const flat = (list: [string, unknown][]) => list.flatMap(([one, two]) => [bytes(one), two]);
          const read = parseEntries(
            [
              [bytes('7-3'), flat(changed)],
              [bytes('7-3'), flat(fields())],
            ],
            { data: true },
          );
          // The owner is covered by no hash; whatever is replaced by its own like stays good.
          const same = name === 'owner' || (how === 'replace' && Buffer.isBuffer(odd) && odd.equals(value as Buffer));
          if (how === 'lose' || !same) expect(read.damaged.length).toBe(1);
          expect(read.entries.length + read.damaged.length).toBe(2);
          for (const { why } of read.damaged) expect(why.length).toBeLessThan(200);
        }),
        { numRuns: 2000 },
      );
    },
  );
});
