// seq node replace on real servers and processes (docs/PROTOCOL.md section 8): the new server is filled and admitted
// while the leader goes on, the old one is out for good, every sequencer that runs knows the new address, and what
// would leave too few nodes is refused.
import { describe, expect, it } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { clusterOf, meddle } from '../support/node-hands.js';
import { QUICK, withLab, type Lab } from '../support/lab.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

interface Document {
  data: { digest: string; old: string; margin: { before: number; meanwhile: number; after: number | null } } | null;
  error: { code: string } | null;
}

interface Status {
  data: { verdict: string; margin: number; nodes: { id: string; state: string; url: string }[] };
  warnings: string[];
}

async function replace(
  lab: Lab,
  to: string,
  ...args: string[]
): Promise<{ code: number | null; document: Document; why: string | undefined }> {
  const ran = await runSeq(newHome(), [
    'node',
    'replace',
    '--on',
    'r3',
    '--to',
    to,
    ...lab.nodeFlags.flatMap((node) => ['--node', node]),
    '--json',
    ...args,
  ]);
  const document = JSON.parse(ran.stdout) as Document;
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { code: ran.code, document, why: document.error?.code };
}

async function replaced(lab: Lab, to: string, ...args: string[]): Promise<Document> {
  const plan = await replace(lab, to, '--dry-run', ...args);
  expect(plan.code, JSON.stringify(plan.document)).toBe(0);
  const done = await replace(lab, to, ...args, '--confirm', plan.document.data!.digest.slice(0, 8));
  expect(done.code, JSON.stringify(done.document)).toBe(0);
  return done.document;
}

async function viewAt(url: string, cluster: string) {
  const node = new RedisNode({ id: 'r3', url, identity: { cluster, lane: '' } });
  try {
    const reply = await node.call({ script: 'inspect' }, 3000);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    return reply.value;
  } finally {
    await node.close();
  }
}

const withSpare = async (body: (spare: RedisServer) => Promise<void>): Promise<void> => {
  const spare = await startRedis();
  try {
    await body(spare);
  } finally {
    await spare.stop();
  }
};

describe('seq node replace', () => {
  it('replace: the old server answers → retired for good; the new one counts, also under the next leader', async () => {
    await withLab({ ...QUICK, sequencers: 2 }, (lab) =>
      withSpare(async (spare) => {
        const cluster = await clusterOf(lab);
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 8);
        expect((await replace(lab, spare.url)).why).toBe('CONFIRMATION_NEEDED');
        const { data } = await replaced(lab, spare.url);
        expect(data).toMatchObject({ old: 'retire', margin: { before: 1, meanwhile: 0, after: 1 } });
        expect(await viewAt(lab.url('r3'), cluster)).toMatchObject({
          admission: 'foreign',
          cluster: `retired:${cluster}`,
        });
        // A list that names the old server is a hint: the new one is asked.
        const old = lab.nodeFlags.flatMap((node) => ['--node', node]);
        const found = JSON.parse((await runSeq(newHome(), ['status', ...old, '--json'])).stdout) as Status;
        expect(found.data.nodes.find(({ id }) => id === 'r3')).toMatchObject({ state: 'OK', url: spare.url });
        expect(found).toMatchObject({ data: { verdict: 'OK', margin: 1 } });
        expect(found.warnings).toEqual([expect.stringContaining(`r3 is asked at ${spare.url}`)]);
        expect(await lab.waitForLeader()).toBe(leader);
        // It forgets even that it is retired: an empty server that nobody asks (I13).
        await meddle(lab, 'r3', (redis) => redis.flushall());
        await lab.kill(leader);
        const other = await lab.waitForLeader();
        expect(other).not.toBe(leader);
        await lab.waitFor('the new server to follow the next leader', 120_000, async () => {
          const view = await viewAt(spare.url, cluster);
          return view.admission === 'admitted' && view.lock?.owner.startsWith(`${other}/`) ? true : undefined;
        });
        await lab.startProcess(leader); // with the old address, which it learns is one
        await lab.waitFor('it to follow with the new server', 120_000, async () => {
          const nodes = (await lab.status(leader))?.['nodes'] as { id: string; state: string }[] | undefined;
          return nodes?.find(({ id }) => id === 'r3')?.state === 'admitted' || undefined;
        });
        expect(await viewAt(lab.url('r3'), cluster)).toMatchObject({ admission: 'pristine' });
        await lab.kill('r1'); // the quorum is r2 and the new one
        const { height } = (await lab.status(other)) as { height: string };
        await lab.waitForHeight(other, Number(height) + 3);
      }),
    );
  }, 300_000);

  it(
    'replace: the old server is dead → refused until it is said to be gone; what is not fit or would ' +
      'leave too few → refused, nothing changed',
    async () => {
      await withLab({ ...QUICK, sequencers: 1 }, (lab) =>
        withSpare(async (spare) => {
          const leader = await lab.waitForLeader();
          await lab.waitForHeight(leader, 4);
          expect((await replace(lab, lab.url('r1'), '--dry-run')).why).toBe('SAME_SERVER');
          expect((await replace(lab, 'redis://127.0.0.1:1', '--dry-run')).why).toBe('NODE_UNREACHABLE');
          await lab.pause('r2');
          const without = await replace(lab, spare.url, '--dry-run');
          expect([without.code, without.why]).toEqual([81, 'QUORUM_AT_RISK']);
          lab.unpause('r2');
          await lab.waitForLeader();
          await lab.kill('r3');
          await lab.waitFor(
            'a margin that lets r3 go',
            120_000,
            async () => (await replace(lab, spare.url, '--dry-run')).why === 'OLD_SERVER_SILENT' || undefined,
          );
          const { data } = await replaced(lab, spare.url, '--old-server-is-gone');
          expect(data).toMatchObject({ old: 'gone', margin: { before: 0, meanwhile: 0, after: 1 } });
        }),
      );
    },
    300_000,
  );
});
