// Items per second from submission to acknowledgement (committed on a quorum, and in the leader's store). It uses POST
// /v1/submit with 200 bytes an item, one item per request and in batches. It is compared with etcd puts by as many
// clients, and with Redis Streams XADD + WAIT 1 (one primary, two replicas). Sequencer, servers and clients share this
// machine, so the figures cover all of them together.
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { startRedis } from '../test/support/redis-server.js';
import { atLeast, type Bench, type Measuring } from './harness/words.js';
import { etcdClients, findEtcd, startEtcd, type EtcdCluster } from './support/etcd.js';
import type { Persistence } from './support/lane.js';
import { itemsBody, load, submitClient, type Client } from './support/load.js';

const BYTES = 200;
/** Most items in one request, and most items in all requests under way. */
const BATCH = 500;
const IN_FLIGHT = 48_000;

/** XADD, then WAIT for one replica. That makes two copies of three, like a quorum. */
class Streams {
  private constructor(private readonly servers: Awaited<ReturnType<typeof startRedis>>[]) {}

  static async start(persist: Persistence): Promise<Streams> {
    const servers: Awaited<ReturnType<typeof startRedis>>[] = [];
    for (let at = 0; at < 3; at += 1)
      servers.push(
        await startRedis({
          persist,
          args: at === 0 ? ['--repl-diskless-sync-delay', '0'] : ['--replicaof', '127.0.0.1', String(servers[0]!.port)],
        }),
      );
    const client = new Redis(servers[0]!.port, '127.0.0.1', { protocol: 2 });
    const deadline = Date.now() + 20_000;
    while (
      !/connected_slaves:2/.test(await client.info('replication')) ||
      (await client.info('replication')).match(/state=online/g)?.length !== 2
    ) {
      if (Date.now() > deadline) throw new Error('the replicas did not come up');
      await new Promise((done) => setTimeout(done, 50));
    }
    client.disconnect();
    return new Streams(servers);
  }

  clients(count: number): Client[] {
    const data = Buffer.alloc(BYTES, 7);
    return Array.from({ length: count }, () => {
      const client = new Redis(this.servers[0]!.port, '127.0.0.1', { protocol: 2 });
      return {
        send: async () => {
          const [, copies] = await Promise.all([
            client.xadd('bench', 'MAXLEN', '~', 100_000, '*', 'data', data),
            client.call('WAIT', 1, 5000),
          ]);
          if (Number(copies) < 1) throw new Error('WAIT: no replica has it');
          return 1;
        },
        close: () => client.disconnect(),
      };
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

async function withPersistence(on: Measuring, persist: Persistence, etcd: EtcdCluster | null): Promise<void> {
  const cluster = await PrivateCluster.start({
    nodes: 3,
    sequencers: 1,
    persist,
    ttlMs: 3000,
    blockTimeMs: 1000,
    eager: true,
  });
  const streams = await Streams.start(persist);
  try {
    const port = cluster.port(await cluster.waitForLeader());
    for (const count of [1, 16, 256]) {
      if (!on.wants(`${persist} ${count}`)) continue;
      const batch = Math.min(BATCH, Math.floor(IN_FLIGHT / count));
      const sides = [
        {
          name: 'seq, an item a request',
          clients: Array.from({ length: count }, () => submitClient(port, itemsBody(1, BYTES), 1)),
        },
        {
          name: 'seq, batches',
          clients: Array.from({ length: count }, () => submitClient(port, itemsBody(batch, BYTES), batch)),
        },
        { name: 'XADD + WAIT', clients: streams.clients(count) },
        ...(etcd === null ? [] : [{ name: 'etcd put', clients: await etcdClients(etcd, count, BYTES, false) }]),
      ];
      try {
        const by = `${count} ${count === 1 ? 'client' : 'clients'}`;
        const measured = await load(sides, {
          rounds: on.pick(6, 2),
          windowMs: on.pick(2000, 600),
          say: (text) => on.say(`${by}, ${persist}: ${text}`),
        });
        on.table({
          title: `${by}, 200 B items, batches of ${batch}; persistence ${persist}: ms a request, items per second`,
          unit: 'ms',
          rows: measured.rows,
        });
        const key = `submit.${persist}.${count}`;
        if (etcd !== null)
          on.ratio({
            id: `${key}.etcd`,
            what: `items/s in batches over etcd's puts, ${by}, ${persist}`,
            ...measured.ratio('etcd put', 'seq, batches'),
            goal: atLeast(20),
            tolerance: 1,
          });
        on.ratio({
          id: `${key}.streams`,
          what: `items/s in batches over XADD + WAIT, ${by}, ${persist}`,
          ...measured.ratio('XADD + WAIT', 'seq, batches'),
          goal: atLeast(1),
          tolerance: 1,
        });
        if (persist === 'none' && count === 16)
          on.figure({
            what: 'items/s batched, 16 clients, no persistence',
            value: measured.rate('seq, batches'),
            unit: 'items/s',
            goal: atLeast(50_000),
          });
      } finally {
        for (const client of sides.flatMap(({ clients }) => clients)) client.close();
      }
    }
  } finally {
    await cluster.close();
    await streams.stop();
  }
}

export const bench: Bench = {
  title: 'items per second through POST /v1/submit, against etcd and Redis Streams',
  limitS: 110,
  fullLimitS: 900,
  async run(on) {
    const program = findEtcd();
    if (program.path === null) on.skip(`etcd: ${program.why}`);
    const etcd = program.path === null ? null : await startEtcd(program.path);
    try {
      on.note(
        'etcd syncs every put, whatever the others do: compare it with persistence always. Its client ' +
          'library runs in the process of the bench, as all clients do. XADD + WAIT and etcd put carry one ' +
          'item each, and wait for that item alone.',
      );
      for (const persist of ['none', 'always'] as const)
        await withPersistence(on, persist, persist === 'always' ? etcd : null);
    } finally {
      await etcd?.stop();
    }
  },
};
