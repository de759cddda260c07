// seq repair while a leader works: its own term carries the plan out, asked through the request on the nodes.
// Writes that reached too few nodes through a cut proxy, a stream edited by hand under the leader's eyes, two
// operators at once; nothing is ever written but by that term.
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { makeBlock } from '../../src/core/chain/block.js';
import { clusterOf, probe, meddle, untilIdentical } from '../support/node-hands.js';
import { withLab, type Lab } from '../support/lab.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
interface Answer {
  code: number | null;
  data: {
    digest: string;
    by: string;
    steps: { node: string; kind: string; class: string }[];
    undecidable: { class: string; copies: { hash: string; nodes: string[] }[]; stores: { hash: string | null }[] }[];
    done: object | null;
    result: string;
  };
  error: { code: string; message: string; changed: string } | null;
}

async function seq(lab: Lab, ...args: string[]): Promise<Answer> {
  const ran = await runSeq(
    home,
    [...args, ...lab.nodeFlags.flatMap((node) => ['--node', node]), '--node-timeout', '1s', '-o', 'json'],
    { limitMs: 120_000 },
  );
  const document = JSON.parse(ran.stdout) as Answer;
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { ...document, code: ran.code };
}
const steps = ({ data }: Answer): string[] => data.steps.map((step) => `${step.node} ${step.kind} ${step.class}`);

/** Changes the bytes of one entry in the middle, in one step. Only a person at the server can do that. */
async function spoil(redis: Redis, height: number): Promise<void> {
  await redis.eval(
    `
    local all = redis.call('XRANGE', KEYS[1], '-', '+')
    redis.call('DEL', KEYS[1])
    for _, entry in ipairs(all) do
      if string.match(entry[1], '^(%d+)-') == ARGV[1] then
        for i = 1, #entry[2], 2 do if entry[2][i] == 'data' then entry[2][i + 1] = 'spoilt' end end
      end
      redis.call('XADD', KEYS[1], entry[1], unpack(entry[2]))
    end`,
    1,
    'seq:block:stream',
    String(height),
  );
}

describe('repair while a leader works', () => {
  test(
    'repair: a node cut off from the leader falls behind → planned, not finished while it is cut ' +
      '(79), finished when it is back',
    async () => {
      await withLab({ sequencers: 1, ttlMs: 2000, blockTimeMs: 100, proxies: true }, async (lab) => {
        const leader = await lab.waitForLeader();
        const height = await lab.waitForHeight(leader, 3);
        const proxy = lab.proxy(leader, 'r3');
        proxy.onConnect('refuse');
        proxy.cut();
        await lab.waitForHeight(leader, height + 10);
        const plan = await seq(lab, 'repair', 'plan');
        expect([plan.data.by, steps(plan)]).toEqual(['leader', ['r3 backfill under-replicated']]);
        const cut = await seq(lab, 'repair', 'apply', '--confirm', plan.data.digest, '--timeout', '1s');
        expect([cut.code, cut.error?.code]).toEqual([79, 'REPAIR_UNFINISHED']);
        expect(cut.error?.message).toContain('r3');
        proxy.heal();
        await lab.waitFor('nothing left to repair', 120_000, async () =>
          (await seq(lab, 'repair', 'verify')).code === 0 ? true : undefined,
        );
        await untilIdentical(lab);
      });
    },
    300_000,
  );

  test(
    'repair: an entry edited by hand under a leader that never reads it again → two operators at ' +
      'once, the leader replaces the stream, proven',
    async () => {
      await withLab({ sequencers: 1, ttlMs: 3000, blockTimeMs: 200 }, async (lab) => {
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 12);
        const before = await probe(lab, 'r2', await clusterOf(lab));
        await meddle(lab, 'r2', (redis) => spoil(redis, 5));
        const plan = await seq(lab, 'repair', 'plan');
        expect([plan.data.by, steps(plan)]).toEqual(['leader', ['r2 replace divergent']]);
        expect(await seq(lab, 'repair')).toMatchObject({
          code: 81,
          error: { code: 'CONFIRMATION_NEEDED', changed: 'nothing' },
        });
        const both = await Promise.all(
          [1, 2].map((which) =>
            seq(lab, 'repair', 'apply', '--confirm', plan.data.digest, '--reason', `operator ${which}`),
          ),
        );
        // One wins. The other is told that a repair is under way, that it was overtaken, or that its plan is stale or
        // done.
        expect(
          both.filter((one) => one.code === 0).length,
          JSON.stringify(both.map((one) => one.error)),
        ).toBeGreaterThanOrEqual(1);
        for (const one of both) expect([0, 75, 76, 80]).toContain(one.code);
        expect((await probe(lab, 'r2', await clusterOf(lab))).incarnation).not.toBe(before.incarnation);
        await lab.waitFor('nothing left to repair', 120_000, async () =>
          (await seq(lab, 'repair', 'verify')).code === 0 ? true : undefined,
        );
        await untilIdentical(lab);
        expect(await lab.leader()).toBe(leader);
      });
    },
    300_000,
  );

  test(
    "repair: another valid block of the same epoch on one node, under a leader → the leader's cannot " +
      "be chosen against; chosen or not, the leader's stays",
    async () => {
      await withLab({ sequencers: 1, ttlMs: 3000, blockTimeMs: 200 }, async (lab) => {
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 8);
        const rival = await forge(lab, 'r2', 4);
        const plan = await seq(lab, 'repair', 'plan');
        expect(plan.data.by).toBe('leader');
        const choice = await seq(lab, 'repair', 'plan', '--choose-block', rival);
        // The leader's store holds what was committed there. Whoever chooses the other block is told so, before any
        // request is made.
        expect([choice.code, choice.error?.code, choice.error?.changed], JSON.stringify([plan, choice])).toEqual(
          plan.data.undecidable.length > 0 ? [81, 'CHOICE_REFUSED', 'nothing'] : [66, 'CHOICE_NOT_FOUND', 'nothing'],
        );
        const chosen = plan.data.undecidable.flatMap((one) => one.copies).find((copy) => copy.hash !== rival)?.hash;
        const args = chosen === undefined ? [] : ['--choose-block', chosen];
        const right = await seq(lab, 'repair', 'plan', ...args);
        expect(steps(right)).toEqual(['r2 replace divergent']);
        expect(await seq(lab, 'repair', 'apply', ...args, '--confirm', right.data.digest)).toMatchObject({
          code: 0,
          error: null,
        });
        await lab.waitFor('nothing left to repair', 120_000, async () =>
          (await seq(lab, 'repair', 'verify')).code === 0 ? true : undefined,
        );
        await untilIdentical(lab);
        expect(await lab.leader()).toBe(leader);
      });
    },
    300_000,
  );
});

/** Puts another block with a hash of its own in the place of one in the middle, under the same epoch; its hash. */
async function forge(lab: Lab, name: string, height: number): Promise<string> {
  return meddle(lab, name, async (redis) => {
    const [entry] = await redis.xrange('seq:block:stream', String(height), String(height));
    const of = (field: string): string => entry![1][entry![1].indexOf(field) + 1]!;
    const block = makeBlock({
      height,
      parent: of('parent'),
      timestamp: Number(of('timestamp')),
      data: Buffer.from('another'),
    });
    await redis.eval(
      `
      local all = redis.call('XRANGE', KEYS[1], '-', '+')
      redis.call('DEL', KEYS[1])
      for _, entry in ipairs(all) do
        if string.match(entry[1], '^(%d+)-') == ARGV[1] then
          for i = 1, #entry[2], 2 do
            if entry[2][i] == 'data' then entry[2][i + 1] = 'another' end
            if entry[2][i] == 'hash' then entry[2][i + 1] = ARGV[2] end
          end
        end
        redis.call('XADD', KEYS[1], entry[1], unpack(entry[2]))
      end`,
      1,
      'seq:block:stream',
      String(height),
      block.hash,
    );
    return block.hash;
  });
}
