// Nodes that forget, on real servers and processes: every way is detected, named by `seq status`, mended by the
// leader alone, and the node is identical to its peers afterwards (docs/PROTOCOL.md section 8). The sequencers stand
// still while the node is looked at, so that the leader cannot mend it before anybody has seen it.
import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { clusterOf, copyData, probe, meddle, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { QUICK, withLab, type Lab } from '../support/lab.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

interface Row {
  id: string;
  state: string;
  admission: string;
  note: string;
}

function cutAof(data: string): void {
  const dir = join(data, 'appendonlydir');
  const file = readdirSync(dir).find((name) => name.endsWith('.incr.aof'))!;
  truncateSync(join(dir, file), statSync(join(dir, file)).size - 100);
}

async function wiped(lab: Lab): Promise<void> {
  await lab.kill('r2');
  rmSync(lab.dataDirectory('r2'), { recursive: true, force: true });
  await lab.startProcess('r2');
}

const MISHAPS: [
  name: string,
  state: string,
  admission: string,
  note: RegExp,
  act: (lab: Lab, saved: string) => Promise<void>,
][] = [
  [
    'FLUSHALL',
    'EMPTY',
    'pristine',
    /no key/,
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        await redis.flushall();
      }),
  ],
  ['killed and started without its data', 'EMPTY', 'pristine', /no key/, wiped],
  [
    'killed and started with all its data',
    'OUT',
    'restarted',
    /restarted/,
    async (lab) => {
      await lab.kill('r2');
      await lab.startProcess('r2');
    },
  ],
  [
    'killed, its append-only file lost the end',
    'OUT',
    'restarted',
    /restarted/,
    async (lab) => {
      await lab.kill('r2');
      cutAof(lab.dataDirectory('r2'));
      await lab.startProcess('r2');
    },
  ],
  [
    'restored from an old copy of its data',
    'OUT',
    'restarted',
    /restarted/,
    async (lab, saved) => {
      await lab.kill('r2');
      copyData(saved, lab.dataDirectory('r2'));
      await lab.startProcess('r2');
    },
  ],
  [
    'the epoch key evicted',
    'OUT',
    'damaged',
    /epoch key is gone/,
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        await redis.del('seq:epoch:token');
      }),
  ],
  [
    'the stream evicted',
    'OUT',
    'damaged',
    /holds 0 entries/,
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        await redis.del('seq:block:stream');
      }),
  ],
  [
    'the admission record evicted',
    'OUT',
    'wiped',
    /record/,
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        await redis.del('seq:node:admission');
      }),
  ],
  [
    'the newest entry deleted',
    'OUT',
    'damaged',
    /entries, the record says/,
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        const [entry] = await redis.xrevrange('seq:block:stream', '+', '-', 'COUNT', 1);
        await redis.xdel('seq:block:stream', entry![0]);
      }),
  ],
  [
    'the stream is of another type',
    'OUT',
    'damaged',
    /another type/,
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        await redis.del('seq:block:stream');
        await redis.set('seq:block:stream', 'x');
      }),
  ],
];

describe('memory: one node of three forgets', () => {
  let lab: Lab;
  let cluster: string;
  let saved: string;

  beforeAll(async () => {
    lab = await PrivateCluster.start({ ...QUICK, persist: 'always', runArgs: ['--retain-blocks', '40'] });
    cluster = await clusterOf(lab);
    const leader = await lab.waitForLeader();
    await lab.waitForHeight(leader, 8);
    saved = join(lab.directory, 'saved');
    copyData(lab.dataDirectory('r2'), saved);
    await lab.waitForHeight(leader, 15);
  }, 300_000);
  afterAll(() => lab.close());

  it.each(MISHAPS)(
    'memory: %s → %s (%s) in status, mended by the leader, identical',
    async (_, state, admission, note, act) => {
      // A few blocks after the last repair, so that a truncated file does not lose the admission, too.
      const leader = await lab.waitForLeader();
      const { height } = (await lab.status(leader)) as { height: string };
      await lab.waitForHeight(leader, Number(height) + 3);
      const before = await probe(lab, 'r2', cluster);
      for (const { name } of lab.sequencers) await lab.pause(name);
      await act(lab, saved);
      const { nodes } = (await lab.ask(['status', '--node-timeout', '5s'])) as { nodes: Row[] };
      const row = nodes.find(({ id }) => id === 'r2');
      for (const { name } of lab.sequencers) lab.unpause(name);
      expect({ state: row?.state, admission: row?.admission }).toEqual({ state, admission });
      expect(row?.note).toMatch(note);
      const { view } = await untilAdmitted(lab, 'r2', cluster, before.incarnation);
      expect(view.runId).toBe(view.admittedRunId);
      expect(view.epoch, 'its promise never falls').toBeGreaterThanOrEqual(before.epoch);
      await untilIdentical(lab);
    },
    300_000,
  );

  it(
    "memory: another node's server answers at its address → FOREIGN, never taken over; empty there → " + 'admitted',
    async () => {
      await lab.kill('r2');
      copyData(lab.dataDirectory('r1'), lab.dataDirectory('r2'));
      await lab.startProcess('r2');
      const leader = await lab.waitForLeader();
      const { height } = (await lab.status(leader)) as { height: string };
      await lab.waitForHeight(leader, Number(height) + 5);
      const { nodes } = (await lab.ask(['status'])) as { nodes: Row[] };
      expect(nodes.find(({ id }) => id === 'r2')).toMatchObject({
        state: 'FOREIGN',
        note: expect.stringContaining('names node r1'),
      });
      expect((await probe(lab, 'r2', cluster)).admission).toBe('foreign');
      await wiped(lab);
      await untilAdmitted(lab, 'r2', cluster, '');
      await untilIdentical(lab);
    },
    300_000,
  );
});

describe('memory: seq node admit', () => {
  it(
    'memory: a wiped node, the leader alive → waits until it counts; nobody leading → says so; ' +
      "another node's server → never",
    async () => {
      await withLab({ sequencers: 1, persist: 'always' }, async (lab) => {
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 4);
        const admit = async (...args: string[]) => {
          const ran = await runSeq(newHome(), [
            'node',
            'admit',
            ...lab.nodeFlags.flatMap((node) => ['--node', node]),
            '--on',
            'r2',
            '--json',
            ...args,
          ]);
          const document = JSON.parse(ran.stdout) as {
            data: { nodes: { before: string }[] } | null;
            error: { code: string } | null;
          };
          expect(schemaProblems(document), ran.stdout).toEqual([]);
          return { code: ran.code, why: document.error?.code, before: document.data?.nodes[0]?.before };
        };
        await lab.pause(leader);
        await meddle(lab, 'r2', async (redis) => {
          await redis.flushall();
        });
        expect(await admit('--timeout', '900ms')).toMatchObject({ code: 75 });
        lab.unpause(leader);
        expect(await admit()).toMatchObject({ code: 0 });
        await lab.kill('r2');
        copyData(lab.dataDirectory('r1'), lab.dataDirectory('r2'));
        await lab.startProcess('r2');
        expect(await admit()).toMatchObject({ code: 76, why: 'NODE_FOREIGN' });
      });
    },
    300_000,
  );
});
