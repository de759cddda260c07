// Random sequences of calls and mishaps on the in-memory node and on a real redis-server: every reply and everything
// that can be seen of the node must be equal, so that what the model and the simulator prove holds for Lua. A
// difference is cut down to few acts and printed. SEQ_SEED=… repeats one sequence, SEQ_SEQUENCES=… sets how many.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NodePort } from '../../src/core/ports.js';
import type { Mutant } from '../support/memory-node.js';
import { line, LIMIT_MS, picture } from './plain.js';
import { randomActs, type Act } from './random-calls.js';
import { memorySubject, redisSubject, type Subject } from './subject.js';

const LENGTH = 60;
const FIRST_SEED = Number(process.env['SEQ_SEED'] ?? 1);
const SEQUENCES = Number(process.env['SEQ_SEQUENCES'] ?? (process.env['SEQ_SEED'] === undefined ? 100 : 1));

/** Sequences that once showed a difference stay here. */
const KEPT_SEEDS: number[] = [];

/** The two nodes. Nothing that can be seen may differ between them. */
interface Pair {
  a: Subject;
  b: Subject;
  ports: [NodePort, NodePort];
}

function pairOf(a: Subject, b: Subject): Pair {
  return { a, b, ports: [a.port(), b.port()] };
}

let pair: Pair;
beforeAll(async () => {
  pair = pairOf(memorySubject(), await redisSubject());
});
afterAll(async () => pair?.b.close());

interface Difference {
  at: number;
  what: string;
  memory: string;
  redis: string;
}

const coverage = new Map<string, number>();

async function firstDifference(pair: Pair, acts: readonly Act[]): Promise<Difference | null> {
  const [a, b] = pair.ports;
  await pair.a.interfere('wipe');
  await pair.b.interfere('wipe');
  for (const [at, act] of acts.entries()) {
    if ('mishap' in act) {
      await pair.a.interfere(act.mishap);
      await pair.b.interfere(act.mishap);
    } else {
      const [x, y] = await Promise.all([a.call(act.call, LIMIT_MS), b.call(act.call, LIMIT_MS)]);
      if (line(x) !== line(y)) return { at, what: 'reply', memory: line(x), redis: line(y) };
      if (x.outcome === 'accepted' && y.outcome === 'accepted' && x.incarnation !== y.incarnation) {
        return { at, what: 'incarnation', memory: x.incarnation, redis: y.incarnation };
      }
      const word = `${act.call.script} ${x.outcome === 'refused' ? x.reason : x.outcome}`;
      coverage.set(word, (coverage.get(word) ?? 0) + 1);
    }
    const [p, q] = await Promise.all([picture(a), picture(b)]);
    if (p !== q) return { at, what: 'state', memory: p, redis: q };
  }
  return null;
}

/** Drops acts one by one, from the end, as long as a difference remains. */
async function shrink(acts: Act[], found: Difference): Promise<{ acts: Act[]; found: Difference }> {
  let kept = { acts: acts.slice(0, found.at + 1), found };
  for (let index = kept.acts.length - 2; index >= 0; index -= 1) {
    const fewer = kept.acts.filter((_, other) => other !== index);
    const still = await firstDifference(pair, fewer);
    if (still !== null) kept = { acts: fewer.slice(0, still.at + 1), found: still };
    index = Math.min(index, kept.acts.length - 1);
  }
  return kept;
}

function narrate(seed: number, { acts, found }: { acts: Act[]; found: Difference }): string {
  const steps = acts.map(
    (act, index) =>
      `${String(index + 1).padStart(3)}. ${JSON.stringify('mishap' in act ? act : act.call, (_, value: unknown) =>
        value !== null && typeof value === 'object' && 'type' in value && value.type === 'Buffer' ? '…' : value,
      )}`,
  );
  return [
    `seed ${seed}: the two differ in ${found.what} after ${acts.length} acts`,
    ...steps,
    `  memory: ${found.memory}`,
    `  redis:  ${found.redis}`,
  ].join('\n');
}

async function check(seed: number): Promise<void> {
  const acts = randomActs(seed, LENGTH);
  const found = await firstDifference(pair, acts);
  if (found !== null) throw new Error(narrate(seed, await shrink(acts, found)));
}

describe('contract: memory against redis-server', () => {
  test.each(KEPT_SEEDS)('contract: kept seed %i → equal', check);

  test(
    `contract: ${SEQUENCES} random sequences of ${LENGTH} from seed ${FIRST_SEED} → equal replies, ` + 'equal nodes',
    async () => {
      for (let seed = FIRST_SEED; seed < FIRST_SEED + SEQUENCES; seed += 1) await check(seed);
    },
    600_000,
  );

  test.skipIf(SEQUENCES < 100)('contract: the random sequences reach every script and nearly every answer', () => {
    const seen = new Set(coverage.keys());
    const wanted = [
      'promote_leader accepted',
      'promote_leader LOCK_HELD',
      'promote_leader HELD',
      'promote_leader HANDOVER',
      'promote_leader EPOCH_MOVED',
      'promote_leader NOT_ADMITTED',
      'claim accepted',
      'claim FENCING_ERROR',
      'write_block accepted',
      'write_block FENCING_ERROR',
      'write_block HEIGHT_EXISTS',
      'write_block GAP',
      'write_block PARENT_MISMATCH',
      'write_block TRIMMED',
      'write_block CONFLICT',
      'write_block BAD_ARGUMENT',
      'rebase accepted',
      'rebase NOT_BEHIND',
      'release_lock accepted',
      'release_lock FENCING_ERROR',
      'raise_epoch accepted',
      'raise_epoch WOULD_DEPOSE',
      'raise_epoch BAD_ARGUMENT',
      'bootstrap_prepare accepted',
      'bootstrap_prepare NOT_PRISTINE',
      'bootstrap_commit accepted',
      'bootstrap_commit STALE_NONCE',
      'begin_admission accepted',
      'begin_admission FENCING_ERROR',
      'begin_admission STALE_NONCE',
      'backfill accepted',
      'backfill STALE_NONCE',
      'backfill PARENT_MISMATCH',
      'admit accepted',
      'admit NOT_READY',
      'admit STALE_NONCE',
      'set_hold accepted',
      'set_hold EXPECTATION',
      'clear_hold accepted',
      'request_leader accepted',
      'clear_request accepted',
      'announce accepted',
      'audit accepted',
      'note_lanes accepted',
      'read_lanes accepted',
      'extend_lock accepted',
      'extend_lock FENCING_ERROR',
    ];
    expect(wanted.filter((word) => !seen.has(word))).toEqual([]);
  });

  // Would the sequences find a difference? Each rule is switched off on one side, and must be found.
  const RULES: (keyof Mutant)[] = [
    'noOwnerCheck',
    'noEpochCheck',
    'noClaimantRule',
    'existsIsVote',
    'noAdmissionCheck',
    'noSupersede',
    'repeatPromotionAtAnyEpoch',
    'reuseNonces',
  ];
  test.each(RULES)('contract: %s on one side → found', async (rule) => {
    const odd = pairOf(memorySubject(), memorySubject({ [rule]: true }));
    let seed = 1;
    while (seed <= 300 && (await firstDifference(odd, randomActs(seed, LENGTH))) === null) seed += 1;
    expect(seed).toBeLessThanOrEqual(300);
  });
});
