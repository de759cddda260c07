// seq cluster recover on real servers: a power cut, a store that is the last copy, a recovery killed in the middle, a
// node that comes late. No term of the old generation acts afterwards, and everything acknowledged is still there
// (docs/PROTOCOL.md section 8).
import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { recoveryExpectation } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { clusterOf, probe, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { readStreams, withLab, type Lab } from '../support/lab.js';
import { newHome, runSeq, type Ran } from '../support/spawn-seq.js';
import { schemaProblems } from '../support/schemas.js';

interface Answer {
  ok: boolean;
  data: {
    result: string;
    cluster: string;
    digest: string;
    head: string;
    hash: string;
    doubts: string[];
    rejoined: string[];
    nodes: { id: string; action: string; finding: string }[];
  };
  error: { code: string; exit: number; next: string[] } | null;
}

const home = newHome();
async function recover(lab: Lab, ...args: string[]): Promise<Answer & { code: number | null }> {
  const ran: Ran = await runSeq(home, [
    'cluster',
    'recover',
    ...lab.nodeFlags.flatMap((node) => ['--node', node]),
    '--json',
    ...args,
  ]);
  const document = JSON.parse(ran.stdout) as Answer;
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { ...document, code: ran.code };
}

const POWER = { sequencers: 2, persist: 'always' } as const;

async function powerCut(lab: Lab, then: (name: string) => void = () => undefined): Promise<void> {
  await Promise.all(lab.nodes.map(({ name }) => lab.kill(name)));
  for (const { name } of lab.nodes) then(name);
  await Promise.all(lab.nodes.map(({ name }) => lab.startProcess(name)));
}

async function sequencersBack(lab: Lab): Promise<string> {
  for (const { name } of lab.sequencers) if (lab.state(name) !== 'dead') await lab.kill(name);
  for (const { name } of lab.sequencers) await lab.startProcess(name);
  return lab.waitForLeader();
}

function cutAof(lab: Lab, name: string, bytes: number): void {
  const dir = join(lab.dataDirectory(name), 'appendonlydir');
  const file = join(
    dir,
    readdirSync(dir).find((entry) => entry.endsWith('.incr.aof'))!,
  );
  truncateSync(file, statSync(file).size - bytes);
}

describe('recover', () => {
  it(
    'recover: power cut, all data there → one confirmation; old sequencers stop and say why; started ' +
      'again they go on, nothing lost',
    async () => {
      await withLab(POWER, async (lab) => {
        const cluster = await clusterOf(lab);
        const leader = await lab.waitForLeader();
        const receipt = await lab.submit(leader, [{ key: 'k', data: 'kept' }]);
        expect(receipt.status).toBe(200);
        await lab.waitForHeight(leader, 6);
        expect(await recover(lab)).toMatchObject({ code: 0, data: { result: 'not-needed', cluster } });

        await powerCut(lab);
        const status = (await lab.ask(['status'])) as { verdict: string; reasonCode: string; next: string[] };
        expect(status).toMatchObject({ verdict: 'CRIT', reasonCode: 'NO_QUORUM' });
        expect(status.next[0]).toContain('seq cluster recover');
        const heads = new Map<string, string>();
        for (const entries of (await readStreams(lab)).values())
          for (const entry of entries) heads.set(`${entry.height}`, heads.get(`${entry.height}`) ?? entry.hash);

        const plan = await recover(lab, '--dry-run');
        expect(plan).toMatchObject({ code: 0, data: { result: 'planned', doubts: [] } });
        expect(await recover(lab, '--no-input')).toMatchObject({ code: 81, error: { code: 'CONFIRMATION_NEEDED' } });
        expect(await recover(lab, '--yes', '--no-input')).toMatchObject({ code: 81 });
        expect(await recover(lab, '--confirm', '00000000')).toMatchObject({ code: 76, error: { code: 'PLAN_STALE' } });
        const done = await recover(lab, '--confirm', plan.data.digest.slice(0, 8));
        expect(done).toMatchObject({ code: 0, data: { result: 'recovered', cluster: cluster.replace(/\.1$/, '.2') } });
        expect(await recover(lab)).toMatchObject({
          code: 0,
          data: { result: 'not-needed', cluster: done.data.cluster },
        });

        for (const { name } of lab.sequencers) {
          await lab.waitFor(`${name} to stop`, 120_000, () => (lab.state(name) === 'dead' ? true : undefined));
          expect(lab.log(name, 8).join('\n')).toContain('CLUSTER_RECOVERED');
        }
        const next = await sequencersBack(lab);
        await lab.waitForHeight(next, Number(done.data.head) + 3);
        const again = await lab.submit(next, [{ key: 'k', data: 'kept' }]);
        expect(again.status).toBe(200);
        const { height, index } = JSON.parse(receipt.body) as { height: number; index: number };
        expect(JSON.parse(again.body), 'the same item at the same place').toMatchObject({ height, index });
        await untilIdentical(lab);
        for (const entry of (await readStreams(lab)).get('r1')!)
          if (heads.has(`${entry.height}`)) expect(entry.hash).toBe(heads.get(`${entry.height}`));
        for (const { name } of lab.nodes)
          expect((await probe(lab, name, done.data.cluster)).admission).toBe('admitted');
      });
    },
    300_000,
  );

  it(
    'recover: every node lost its last blocks → the store that is ahead is named, gives them back, ' +
      'and every acknowledged block is there',
    async () => {
      await withLab({ ...POWER, sequencers: 1 }, async (lab) => {
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 10);
        // Longer than its lease, so that no sequencer repairs anything by itself.
        const from = performance.now();
        await lab.pause(leader);
        await powerCut(lab, (name) => cutAof(lab, name, 4000));
        await lab.waitFor('the lease to end', 120_000, () => (performance.now() - from > 1000 ? true : undefined));
        lab.unpause(leader);
        const { height, hash } = (await lab.status(leader)) as { height: number; hash: string };
        const peer = ['--peer', `http://127.0.0.1:${lab.port(leader)}`];
        const plan = await recover(lab, '--dry-run', ...peer);
        expect(plan.data.doubts.join('\n')).toMatch(/store of seq-a is ahead of every node/);
        expect(plan.data).toMatchObject({ head: String(height), hash });
        expect(await recover(lab, ...peer, '--confirm', plan.data.digest)).toMatchObject({
          code: 81,
          error: { code: 'CONFIRMATION_NEEDED' },
        });
        expect(await recover(lab, ...peer, '--confirm', plan.data.digest, '--accept-possible-loss')).toMatchObject({
          code: 0,
          data: { result: 'recovered' },
        });
        const next = await sequencersBack(lab);
        await lab.waitForHeight(next, height + 3);
        await untilIdentical(lab);
        expect((await readStreams(lab)).get('r2')!.find((entry) => entry.height === height)?.hash).toBe(hash);
      });
    },
    300_000,
  );

  it.each(['marking', 'admitting'])(
    'recover: killed while %s → run again it goes on and finishes',
    async (at) => {
      await withLab(POWER, async (lab) => {
        const cluster = await clusterOf(lab);
        await lab.waitForHeight(await lab.waitForLeader(), 5);
        await powerCut(lab);
        const plan = await recover(lab, '--dry-run');
        const args = [
          'cluster',
          'recover',
          ...lab.nodeFlags.flatMap((node) => ['--node', node]),
          '--confirm',
          plan.data.digest,
          '-v',
        ];
        await runSeq(home, args, {
          during: (child) => {
            child.stderr!.on('data', (text: string) => {
              if (text.includes(at)) child.kill('SIGKILL');
            });
          },
        });
        // The state that a kill right after its first mark leaves, however that run ended.
        const view = await probe(lab, 'r1', cluster.replace(/\.1$/, '.2'));
        if (view.cluster === cluster) {
          const node = new RedisNode({
            id: 'r1',
            url: lab.url('r1'),
            identity: { cluster: cluster.replace(/\.1$/, '.2'), lane: '' },
          });
          const { head, headEpoch, headHash, floor, floorHash } = view;
          const mark = await node.call(
            {
              script: 'recover_node',
              owner: 'recover/00000000000000aa',
              epoch: view.epoch + 1,
              nonce: 'rec-x',
              expect: recoveryExpectation(view),
              keep: true,
              facts: { head, headEpoch, headHash, floor, floorHash },
              keepMs: 60_000,
            },
            1000,
          );
          await node.close();
          expect(mark.outcome).toBe('accepted');
        }
        const after = await recover(lab, '--dry-run');
        if (after.data.result !== 'not-needed') {
          expect(after.data).toMatchObject({
            result: 'planned',
            doubts: [],
            cluster: cluster.replace(/\.1$/, '.3'),
            hash: plan.data.hash,
          });
          expect(await recover(lab, '--confirm', after.data.digest)).toMatchObject({
            code: 0,
            data: { result: 'recovered' },
          });
        }
        const next = await sequencersBack(lab);
        await lab.waitForHeight(next, Number(plan.data.head) + 3);
        await untilIdentical(lab);
        expect((await readStreams(lab)).get('r3')!.find((entry) => entry.height === Number(plan.data.head))?.hash).toBe(
          plan.data.hash,
        );
      });
    },
    300_000,
  );

  it(
    'recover: two of three wiped, then the third comes late → what is there is kept, filled ' +
      'everywhere; the late one is handed to the leader',
    async () => {
      await withLab({ ...POWER, sequencers: 1 }, async (lab) => {
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 8);
        await lab.kill(leader);
        await Promise.all(lab.nodes.map(({ name }) => lab.kill(name)));
        rmSync(lab.dataDirectory('r2'), { recursive: true, force: true });
        await lab.startProcess('r1');
        await lab.startProcess('r2');
        const plan = await recover(lab, '--dry-run');
        expect(plan.data.nodes.map(({ action }) => action)).toEqual(['keep', 'refill', 'left-out']);
        expect(plan.data.doubts.join('\n')).toMatch(/r2 holds nothing .*\nr3 did not answer/);
        expect(await recover(lab, '--confirm', plan.data.digest, '--accept-possible-loss')).toMatchObject({
          code: 0,
          data: { result: 'recovered' },
        });
        const next = await sequencersBack(lab);
        await lab.waitForHeight(next, Number(plan.data.head) + 2);
        await lab.startProcess('r3');
        expect(await recover(lab)).toMatchObject({ code: 0, data: { result: 'not-needed', rejoined: ['r3'] } });
        await untilAdmitted(lab, 'r3', plan.data.cluster, '');
        await untilIdentical(lab);
      });
    },
    300_000,
  );
});
