// What is synced to disk before it is acknowledged? A commit on three servers with appendfsync always, against a
// guarded put of etcd with three members. Both use the same disk in the same rounds. One client alone (latency), and
// sixteen clients at once (through POST /v1/submit).
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { interleave } from './harness/rounds.js';
import { atLeast, type Bench } from './harness/words.js';
import { etcdClients, findEtcd, startEtcd } from './support/etcd.js';
import { Lane, Servers } from './support/lane.js';
import { itemsBody, load, submitClient } from './support/load.js';

const BYTES = 1024;
const CLIENTS = 16;

export const bench: Bench = {
  title: 'appendfsync always, against etcd on the same disk (1 KB)',
  limitS: 90,
  fullLimitS: 400,
  async run(on) {
    const program = findEtcd();
    if (program.path === null) return on.skip(program.why);
    const etcd = await startEtcd(program.path);
    try {
      if (on.wants('alone')) {
        const servers = await Servers.start(3, 'always');
        const lane = await new Lane(servers, '', 1000, Buffer.alloc(BYTES, 7)).begin();
        const [client] = await etcdClients(etcd, 1, BYTES, true);
        try {
          const measured = await interleave(
            [
              {
                name: 'etcd guarded put',
                work: async () => {
                  await client!.send();
                },
              },
              { name: 'seq commit', work: () => lane.commit() },
            ],
            { rounds: on.pick(40, 10), perRound: on.pick(50, 20), say: on.say },
          );
          on.table({ title: 'One client, 1 KB, synced on a quorum of three', unit: 'ms', rows: measured.rows });
          on.ratio({
            id: 'etcd.alone.p50',
            what: "p50 of etcd's put over p50 of a commit, one client",
            ...measured.ratio('seq commit', 'etcd guarded put'),
            goal: atLeast(2.5),
            tolerance: 0.6,
          });
        } finally {
          client!.close();
          await lane.close();
          await servers.stop();
        }
      }
      if (on.wants('together')) {
        const cluster = await PrivateCluster.start({
          nodes: 3,
          sequencers: 1,
          persist: 'always',
          ttlMs: 3000,
          blockTimeMs: 1000,
          eager: true,
        });
        const port = cluster.port(await cluster.waitForLeader());
        const seq = Array.from({ length: CLIENTS }, () => submitClient(port, itemsBody(1, BYTES), 1));
        const puts = await etcdClients(etcd, CLIENTS, BYTES, true);
        try {
          const measured = await load(
            [
              { name: 'etcd guarded put', clients: puts },
              { name: 'seq POST /v1/submit', clients: seq },
            ],
            { rounds: on.pick(10, 4), windowMs: on.pick(3000, 1000), say: on.say },
          );
          on.table({
            title: `${CLIENTS} clients, 1 KB each, synced on a quorum of three (seq: and in the leader's own store)`,
            unit: 'ms',
            rows: measured.rows,
          });
          on.ratio({
            id: 'etcd.together.rate',
            what: `items/s over etcd's, ${CLIENTS} clients`,
            ...measured.ratio('etcd guarded put', 'seq POST /v1/submit'),
            goal: atLeast(2.5),
            tolerance: 0.6,
          });
        } finally {
          for (const client of [...seq, ...puts]) client.close();
          await cluster.close();
        }
      }
    } finally {
      await etcd.stop();
    }
  },
};
