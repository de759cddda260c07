// seq cluster resize and seq cluster set on real servers and processes (docs/PROTOCOL.md section 8): the members change
// one by one while clients submit, sequencers follow without a restart, and a leader or a command that dies in the
// middle changes nothing of the outcome.
import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { QUICK, withLab, type Lab } from '../support/lab.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';
import { checkAll, Traffic } from '../support/traffic.js';

interface Document {
  data: {
    alreadyDone: boolean;
    members: { before: string[]; after: string[] };
    margin: { before: number; after: number };
    retired: string | null;
    sequencers: { configDigest: string }[];
    findings: { severity: string; what: string }[];
  } | null;
  error: { code: string; message: string } | null;
  next?: string[];
}

async function seq(lab: Lab, ...args: string[]): Promise<{ code: number | null; document: Document }> {
  const ran = await runSeq(newHome(), [
    ...args,
    ...lab.nodeFlags.flatMap((node) => ['--node', node]),
    '--node-timeout',
    '1s',
    '--json',
  ]);
  const document = JSON.parse(ran.stdout) as Document;
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { code: ran.code, document };
}

async function resized(lab: Lab, ...args: string[]): Promise<NonNullable<Document['data']>> {
  const { code, document } = await seq(lab, 'cluster', 'resize', ...args, '--yes', '--timeout', '2m');
  expect(code, JSON.stringify(document)).toBe(0);
  return document.data!;
}

async function withSpares(count: number, body: (spares: RedisServer[]) => Promise<void>): Promise<void> {
  const spares = await Promise.all(Array.from({ length: count }, () => startRedis()));
  try {
    await body(spares);
  } finally {
    await Promise.all(spares.map((spare) => spare.stop()));
  }
}

/** `seq stream tail --follow`, from the first block on: what it has printed so far. */
function follow(lab: Lab): { blocks(): { height: number; hash: string }[]; stop(): Promise<number | null> } {
  const home = newHome();
  const nodes = lab.nodeFlags.flatMap((node) => ['--node', node]);
  const args = ['stream', 'tail', '--follow', '--from', '1', '-o', 'ndjson', '--node-timeout', '1s', ...nodes];
  const child = spawn(process.execPath, [bin, ...args], {
    env: environment(home),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return {
    blocks: () =>
      printed
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { height: number; hash: string }),
    stop: () => {
      child.kill('SIGINT');
      return ended;
    },
  };
}

const THREE = ['r1', 'r2', 'r3'];

describe('seq cluster resize', () => {
  it('3 → 4 → 5 → 4 → 3 under clients: nothing lost, nothing twice; three addresses find all five', async () => {
    await withLab({ ...QUICK, sequencers: 2 }, (lab) =>
      withSpares(2, async ([r4, r5]) => {
        await lab.waitForHeight(await lab.waitForLeader(), 8);
        const clients = [new Traffic(lab, 'ann'), new Traffic(lab, 'bob')];
        const tail = follow(lab);
        const plan = await seq(lab, 'cluster', 'resize', '--add', `r4=${r4!.url}`, '--dry-run');
        expect(plan.document.data).toMatchObject({ dryRun: true, margin: { before: 1, after: 1 } });
        expect((await seq(lab, 'cluster', 'resize', '--add', `r4=${r4!.url}`)).document.error?.code).toBe(
          'CONFIRMATION_NEEDED',
        );
        for (const [id, server] of [
          ['r4', r4!],
          ['r5', r5!],
        ] as const) {
          const { members } = await resized(lab, '--add', `${id}=${server.url}`);
          expect(members.after).toContain(id);
          await clients[0]!.more(9);
        }
        expect(await resized(lab, '--add', `r5=${r5!.url}`)).toMatchObject({ alreadyDone: true });
        const { document } = await seq(lab, 'status');
        expect(document.data).toMatchObject({ configured: 5, quorum: 3 });
        // One that starts with the old list counts the same nodes as those that followed the change.
        const leader = await lab.waitForLeader();
        await lab.restart(leader === 'seq-a' ? 'seq-b' : 'seq-a');
        await lab.waitFor('two sequencers that count the same nodes', 60_000, async () => {
          const { sequencers } = (await seq(lab, 'status')).document.data!;
          return (
            (sequencers.length === 2 && new Set(sequencers.map((one) => one.configDigest)).size === 1) || undefined
          );
        });
        // Only what is examined is narrowed: the cluster is judged over all of its nodes.
        const doctor = await seq(lab, 'doctor', '--on', 'r1');
        expect(doctor.document.data!.findings.filter(({ severity }) => severity === 'CRIT')).toEqual([]);
        for (const id of ['r4', 'r5']) {
          expect(await resized(lab, '--remove', id)).toMatchObject({ retired: 'retired' });
          await clients[1]!.more(9);
        }
        expect((await seq(lab, 'status')).document.data).toMatchObject({ configured: 3, quorum: 2 });
        await Promise.all(clients.map((client) => client.stop()));
        const chain = await checkAll(lab, clients, { nodes: THREE });
        await lab.waitFor('the tail that ran meanwhile', 60_000, () =>
          tail.blocks().length >= chain.length ? true : undefined,
        );
        expect(await tail.stop()).toBe(130);
        const shown = tail.blocks().map(({ height, hash }) => `${height} ${hash}`);
        expect(shown.slice(0, chain.length)).toEqual(chain.map(({ height, hash }) => `${height} ${hash}`));
        expect(shown.length).toBe(new Set(tail.blocks().map(({ height }) => height)).size);
      }),
    );
  }, 300_000);

  it('the leader is killed while the new server joins, and again while it leaves → both are done', async () => {
    await withLab({ ...QUICK, sequencers: 2 }, (lab) =>
      withSpares(1, async ([r4]) => {
        const client = new Traffic(lab, 'ann');
        for (const [args, after] of [
          [
            ['--add', `r4=${r4!.url}`],
            [...THREE, 'r4'],
          ],
          [['--remove', 'r4'], THREE],
        ] as const) {
          const leader = await lab.waitForLeader();
          await client.more(9);
          const running = resized(lab, ...args);
          await lab.kill(leader);
          expect((await running).members.after).toEqual(after);
          await lab.startProcess(leader);
        }
        await client.more(9);
        await client.stop();
        await checkAll(lab, [client], { nodes: THREE });
      }),
    );
  }, 300_000);

  it('refused, nothing changed: a server that is a node, an id that is taken, no server, too few nodes left', async () => {
    await withLab({ ...QUICK, sequencers: 1 }, (lab) =>
      withSpares(1, async ([spare]) => {
        await lab.waitForHeight(await lab.waitForLeader(), 4);
        const why = async (...args: string[]): Promise<string | undefined> =>
          (await seq(lab, 'cluster', 'resize', ...args, '--dry-run')).document.error?.code;
        expect(await why('--add', `r4=${lab.url('r1')}`)).toBe('SAME_SERVER');
        expect(await why('--add', `r1=${spare!.url}`)).toBe('EXPECTATION');
        expect(await why('--add', 'r4=redis://127.0.0.1:1')).toBe('NODE_UNREACHABLE');
        await lab.pause('r2');
        expect(await why('--remove', 'r1')).toBe('QUORUM_AT_RISK');
        lab.unpause('r2');
      }),
    );
  }, 300_000);
});

it('the leader refuses → the command ends with its words, long before its time is up', async () => {
  await withLab({ ...QUICK, sequencers: 1, runArgs: ['--no-readmit'] }, (lab) =>
    withSpares(1, async ([r4]) => {
      await lab.waitForHeight(await lab.waitForLeader(), 4);
      const add = ['cluster', 'resize', '--add', `r4=${r4!.url}`, '--yes', '--timeout', '10m'];
      const { code, document } = await seq(lab, ...add);
      expect({ code, error: document.error }).toMatchObject({
        code: 76,
        error: {
          code: 'REQUEST_REFUSED',
          message: expect.stringContaining('refused: this leader was started with --no-readmit'),
        },
      });
    }),
  );
}, 300_000);

describe('seq cluster set', () => {
  it('the nodes note the new values, and a sequencer that starts takes them', async () => {
    await withLab({ ...QUICK, sequencers: 1 }, async (lab) => {
      const leader = await lab.waitForLeader();
      await lab.waitForHeight(leader, 4);
      const { code, document } = await seq(lab, 'cluster', 'set', '--dedup-window', '48h', '--yes');
      expect(code, JSON.stringify(document)).toBe(0);
      expect(document.data).toMatchObject({ change: 'set', settings: { dedupMs: 172_800_000 } });
      const again = await seq(lab, 'cluster', 'set', '--dedup-window', '48h', '--yes');
      expect(again.document.data).toMatchObject({ alreadyDone: true });
      await lab.restart(leader);
      await lab.waitForLeader();
    });
  }, 300_000);
});
