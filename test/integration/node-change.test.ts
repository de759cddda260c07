// Nodes changed on purpose, on real servers and processes: one whose entries are damaged is set aside and admitted anew
// (docs/PROTOCOL.md section 8), found by a follower or asked for with `seq node admit --damaged`.
import { describe, expect, it } from 'vitest';
import { clusterOf, probe, meddle, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { QUICK, withLab, type Lab } from '../support/lab.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';
import { checkAll, Traffic } from '../support/traffic.js';

interface Document<T> {
  data: T;
  error: { code: string; exit: number } | null;
  verdict?: string;
}

async function ask<T>(lab: Lab, args: string[]): Promise<{ code: number | null; document: Document<T> }> {
  const ran = await runSeq(newHome(), [...args, ...lab.nodeFlags.flatMap((node) => ['--node', node]), '--json']);
  const document = JSON.parse(ran.stdout) as Document<T>;
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { code: ran.code, document };
}

/** The same stream, with other bytes in one entry. Neither the server nor its record can notice it. */
const SPOIL = `
  local entries = redis.call('XRANGE', KEYS[1], '-', '+')
  redis.call('DEL', KEYS[1])
  for i, entry in ipairs(entries) do
    local fields = entry[2]
    if i == #entries - tonumber(ARGV[1]) then
      for f = 1, #fields, 2 do if fields[f] == 'timestamp' then fields[f + 1] = string.format('%d', tonumber(fields[f + 1]) + 1) end end
    end
    redis.call('XADD', KEYS[1], entry[1], unpack(fields))
  end
  return #entries`;

const spoil = (lab: Lab, name: string, below: number): Promise<unknown> =>
  meddle(lab, name, (redis) => redis.eval(SPOIL, 1, 'seq:block:stream', below));

describe('damaged entries on a real server', () => {
  it(
    'damage: deep in the window → verify names it, node admit --damaged has it set aside, identical ' +
      'afterwards, no block missed',
    async () => {
      await withLab({ ...QUICK, sequencers: 2 }, async (lab) => {
        const cluster = await clusterOf(lab);
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 12);
        const { incarnation } = await probe(lab, 'r2', cluster);
        await spoil(lab, 'r2', 5);
        expect((await probe(lab, 'r2', cluster)).admission, 'the server cannot see it').toBe('admitted');
        const verify = await ask<{ verdict: string }>(lab, ['stream', 'verify', '--exit-code']);
        expect(verify.code).toBe(1);
        const refused = await ask(lab, ['node', 'admit', '--on', 'r2', '--damaged']);
        expect([refused.code, refused.document.error?.code]).toEqual([81, 'CONFIRMATION_NEEDED']);
        const done = await ask<{ nodes: { id: string }[] }>(lab, [
          'node',
          'admit',
          '--on',
          'r2',
          '--damaged',
          '--yes',
          '--timeout',
          '20s',
        ]);
        expect([done.code, done.document.data?.nodes.map((node) => node.id)]).toEqual([0, ['r2']]);
        expect((await probe(lab, 'r2', cluster)).incarnation).not.toBe(incarnation);
        expect(await lab.waitForLeader()).toBe(leader);
        await untilIdentical(lab);
        expect((await ask(lab, ['stream', 'verify', '--exit-code'])).code).toBe(0);
      });
    },
    300_000,
  );

  it('damage: read by a follower → the leader replaces that memory by itself', async () => {
    await withLab({ ...QUICK, sequencers: 2 }, async (lab) => {
      const cluster = await clusterOf(lab);
      const leader = await lab.waitForLeader();
      await lab.waitForHeight(leader, 6);
      const { incarnation } = await probe(lab, 'r3', cluster);
      const follower = lab.sequencers.map((one) => one.name).find((name) => name !== leader)!;
      await lab.pause(follower);
      const { height } = (await lab.status(leader)) as { height: string };
      await lab.waitForHeight(leader, Number(height) + 3);
      await spoil(lab, 'r3', 1);
      lab.unpause(follower);
      await untilAdmitted(lab, 'r3', cluster, incarnation, 20_000);
      await untilIdentical(lab);
    });
  }, 300_000);
});

describe('rolling restart', () => {
  it(
    'restart: all nodes, one after the other by the runbook, under load, memory only → nothing ' +
      'acknowledged is lost, no recovery',
    async () => {
      await withLab({ ...QUICK, ttlMs: 1500, blockTimeMs: 200, persist: 'none' }, async (lab) => {
        await lab.waitForLeader();
        const traffic = new Traffic(lab, 'c1');
        const generation = await clusterOf(lab);
        for (const { name } of lab.nodes) {
          const safe = await ask<{ result: string; now: string }>(lab, [
            'wait',
            '--for',
            'restart-safe',
            '--timeout',
            '30s',
          ]);
          expect([safe.code, safe.document.data.now]).toEqual([0, 'the next node may be restarted']);
          await lab.kill(name);
          await traffic.more(6);
          await lab.startProcess(name);
          expect((await ask(lab, ['node', 'admit', '--on', name, '--timeout', '30s'])).code).toBe(0);
        }
        await traffic.more(6);
        await traffic.stop();
        await untilIdentical(lab);
        expect(await clusterOf(lab)).toBe(generation);
        await checkAll(lab, [traffic]);
      });
    },
    300_000,
  );
});
