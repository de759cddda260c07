// How fast are many blocks moved? Backfill of a node (script by script, and a whole re-admission), a follower that
// catches up from nothing, and reading everything (`stream inspect`, `stream verify`). It measures MB of payload per
// second and memory, and moves the same bytes bare in the same run.
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { interleave } from './harness/rounds.js';
import { atLeast, atMost, type Bench, type Measuring } from './harness/words.js';
import { Lane, Servers } from './support/lane.js';
import { itemsBody, submitClient } from './support/load.js';
import { peakMb } from './support/process.js';
import { runSeq } from './support/program.js';

const KB = 1024;
const MB = 1024 * KB;
const FAST = atLeast(40);
const LIMIT_MS = 60_000;

/** Blocks of 10 KB, pipelined to three nodes at once. Compared with XADDs of the same bytes, pipelined the same way. */
async function backfill(on: Measuring): Promise<void> {
  const batch = 100;
  const bytes = 10 * KB;
  const servers = await Servers.start(3, 'none');
  const lane = await new Lane(servers, '', 0, Buffer.alloc(bytes, 7)).begin();
  const data = Buffer.alloc(bytes, 7);
  try {
    const measured = await interleave(
      [
        {
          name: 'XADD, pipelined',
          work: async () => {
            await Promise.all(
              servers.bare.map((client) => {
                const pipeline = client.pipeline();
                for (let at = 0; at < batch; at += 1) pipeline.xadd('bench', 'MAXLEN', '~', 1000, '*', 'data', data);
                return pipeline.exec();
              }),
            );
          },
        },
        { name: 'seq backfill', work: () => lane.fill(batch) },
      ],
      { rounds: on.pick(20, 8), perRound: on.pick(10, 5) },
    );
    on.table({ title: `${batch} blocks of 10 KB to each of three nodes`, unit: 'ms', rows: measured.rows });
    const rate = (batch * bytes) / MB / (measured.rows[1]!.p50 / 1000);
    on.figure({ what: 'backfill, each of three nodes at once', value: rate, unit: 'MB/s', goal: FAST });
    const ratio = measured.ratio('XADD, pipelined', 'seq backfill');
    on.ratio({
      id: 'data.backfill',
      what: 'time of a backfill over pipelined XADDs of the same bytes',
      ...ratio,
      goal: atMost(3),
      tolerance: 0.6,
    });
  } finally {
    await lane.close();
    await servers.stop();
  }
}

/** A node that is wiped under a leader, and a follower that starts with nothing. Both on real processes. */
async function comingBack(on: Measuring): Promise<void> {
  const wanted = on.pick(200, 80) * MB;
  const itemBytes = 10 * KB;
  const cluster = await PrivateCluster.start({
    nodes: 3,
    sequencers: 2,
    ttlMs: 3000,
    blockTimeMs: 1000,
    eager: true,
    runArgs: ['--retain-blocks', '100000', '--retain-bytes', '1GiB'],
  });
  const client = new Redis(cluster.port('r3'), '127.0.0.1', {
    protocol: 2,
    retryStrategy: () => 20,
    maxRetriesPerRequest: null,
  });
  client.on('error', () => {});
  try {
    const leader = await cluster.waitForLeader();
    const follower = cluster.sequencers.map(({ name }) => name).find((name) => name !== leader)!;
    const perRequest = 8;
    const senders = Array.from({ length: 4 }, () =>
      submitClient(cluster.port(leader), itemsBody(perRequest, itemBytes), perRequest),
    );
    let sent = 0;
    await Promise.all(
      senders.map(async (sender) => {
        while (sent < wanted) {
          const count = await sender.send();
          sent += count * itemBytes;
        }
      }),
    );
    for (const sender of senders) sender.close();
    const heightOf = async (name: string): Promise<number> => Number((await cluster.status(name))?.['height'] ?? 0);
    const height = await heightOf(leader);
    on.say(`${height} blocks, ${Math.round(sent / MB)} MB committed`);

    await cluster.kill(follower);
    cluster.removeData(follower);
    const followerAt = performance.now();
    await cluster.startProcess(follower);
    let most = 0;
    await cluster.waitFor(
      'the follower to have caught up',
      LIMIT_MS * 3,
      async () => {
        most = Math.max(most, peakMb(cluster.pid(follower)));
        return (await heightOf(follower)) >= height || undefined;
      },
      20,
    );
    const followerS = (performance.now() - followerAt) / 1000;
    on.figure({
      what: `follower with an empty store: ${Math.round(sent / MB)} MB caught up, start of the process included`,
      value: sent / MB / followerS,
      unit: 'MB/s',
      goal: FAST,
    });
    on.figure({ what: 'follower catching up: most memory', value: most, unit: 'MB', goal: atMost(300) });

    await cluster.wipe('r3');
    const wipedAt = performance.now();
    await cluster.waitFor(
      'r3 to be admitted again',
      LIMIT_MS * 3,
      async () => {
        const [incarnation, pending] = await client.hmget('seq:node:admission', 'incarnation', 'pending');
        return ((incarnation ?? '') !== '' && (pending ?? '') === '') || undefined;
      },
      20,
    );
    const readmittedS = (performance.now() - wipedAt) / 1000;
    on.figure({
      what: `re-admission of a wiped node: ${Math.round(sent / MB)} MB, from the server's start to its vote`,
      value: sent / MB / readmittedS,
      unit: 'MB/s',
      goal: atLeast(24),
    });
    on.figure({ what: 'leader after the re-admission: most memory', value: peakMb(cluster.pid(leader)), unit: 'MB' });
  } finally {
    client.disconnect();
    await cluster.close();
  }
}

/** Every entry of three nodes, by the commands, and by bare XRANGEs. */
async function reading(on: Measuring): Promise<void> {
  const blocks = on.pick(1_000_000, 50_000);
  const bytes = KB;
  const servers = await Servers.start(3, 'none');
  const lane = await new Lane(servers, '', blocks, Buffer.alloc(bytes, 7)).begin(on.say);
  const nodes = servers.all.flatMap(({ url }, at) => ['--node', `r${at + 1}=${url}`]);
  const total = (blocks * bytes * 3) / MB;
  try {
    const bare = async (): Promise<void> => {
      await Promise.all(
        servers.bare.map(async (client) => {
          for (let from = '-'; ;) {
            const entries = await client.xrangeBuffer('seq:block:stream', from, '+', 'COUNT', 1000);
            const last = entries.at(-1);
            if (last === undefined) return;
            from = `(${last[0].toString()}`;
          }
        }),
      );
    };
    const peaks = new Map<string, number>();
    const command = (name: string, args: string[]) => ({
      name,
      work: async () => {
        const run = await runSeq([...args, ...nodes, '--node-timeout', '5s'], {
          limitMs: LIMIT_MS * 10,
          watchMemory: true,
        });
        peaks.set(name, Math.max(peaks.get(name) ?? 0, run.peakMb));
      },
    });
    const measured = await interleave(
      [
        { name: 'XRANGE, bare', work: bare },
        command('seq stream inspect', [
          'stream',
          'inspect',
          '--from',
          '1',
          '--limit',
          String(blocks),
          '-o',
          'ndjson',
          '-q',
          '--timeout',
          '10m',
        ]),
        command('seq stream verify', ['stream', 'verify', '--exit-code', '-q', '-o', 'json']),
      ],
      { rounds: on.pick(3, 2), perRound: 1, warm: 0, say: on.say },
    );
    on.table({
      title: `${blocks.toLocaleString('en-US')} blocks of 1 KB on each of three nodes, all read`,
      unit: 'ms',
      rows: measured.rows.map((row) => ({ ...row, perSecond: null })),
    });
    for (const [name, id] of [
      ['seq stream inspect', 'inspect'],
      ['seq stream verify', 'verify'],
    ] as const) {
      on.figure({
        what: name,
        value: total / (measured.rows.find(({ side }) => side === name)!.p50 / 1000),
        unit: 'MB/s',
        goal: FAST,
      });
      on.figure({ what: `${name}: most memory`, value: peaks.get(name)!, unit: 'MB', goal: atMost(200) });
      on.ratio({
        id: `data.${id}`,
        what: `time of ${name} over bare XRANGEs`,
        ...measured.ratio('XRANGE, bare', name),
        goal: atMost(4),
        tolerance: 0.6,
      });
    }
    const small = await interleave([command('1,000 heights', ['stream', 'inspect', '--limit', '1000', '-o', 'json'])], {
      rounds: on.pick(10, 3),
      perRound: 1,
      warm: 1,
    });
    on.figure({
      what: 'seq stream inspect of 1,000 heights × 3, start-up included',
      value: small.rows[0]!.p50,
      unit: 'ms',
      goal: atMost(700),
    });
  } finally {
    await lane.close();
    await servers.stop();
  }
}

export const bench: Bench = {
  title: 'backfill, catch-up, inspect and verify: MB/s and memory',
  limitS: 150,
  async run(on) {
    if (on.wants('backfill')) await backfill(on);
    if (on.wants('return')) await comingBack(on);
    if (on.wants('reading')) await reading(on);
  },
};
