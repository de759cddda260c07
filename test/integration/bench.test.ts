// `seq bench` on a real cluster: in a lane of its own, asked for, recorded, and nothing left of it; the cluster's own
// chain goes on.
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { withLab } from '../support/lab.js';
import { schemaProblems } from '../support/schemas.js';
import { runSeq } from '../support/run-seq.js';

test(
  'bench: unconfirmed → 81 and nothing written; confirmed → measured, recorded, the lane gone from ' +
    'every node; a node that hangs → nothing written',
  async () => {
    await withLab({ nodes: 3, sequencers: 1, ttlMs: 3000, blockTimeMs: 200 }, async (lab) => {
      await lab.waitForLeader();
      const nodes = [...lab.nodeFlags.flatMap((flag) => ['--node', flag]), '--node-timeout', '2s'];
      const clients = lab.nodes.map(({ port }) => new Redis(port, '127.0.0.1', { protocol: 2 }));
      const left = async (): Promise<string[]> =>
        (await Promise.all(clients.map((client) => client.keys('seq:bench-*')))).flat();
      try {
        const unasked = await runSeq(['bench', ...nodes, '-o', 'json']);
        expect([
          unasked.code,
          (JSON.parse(unasked.stdout) as { error: { code: string; changed: string } }).error,
        ]).toMatchObject([81, { code: 'CONFIRMATION_NEEDED', changed: 'nothing' }]);
        expect(await left()).toEqual([]);

        const ran = await runSeq(['bench', '--yes', '--duration', '1s', '--reason', 'a test', ...nodes, '-o', 'json']);
        const document = JSON.parse(ran.stdout) as {
          data: {
            lane: string;
            report: { left: string[]; failed: number; commit: { n: number }; nodes: { refused: string | null }[] };
          };
        };
        expect([ran.code, schemaProblems(document)]).toEqual([0, []]);
        expect(document.data.report).toMatchObject({
          left: [],
          failed: 0,
          nodes: [{ refused: null }, { refused: null }, { refused: null }],
        });
        expect(document.data.report.commit.n).toBeGreaterThan(0);
        expect(await left()).toEqual([]);
        const audits = await clients[0]!.xrevrange('seq:ops:audit', '+', '-', 'COUNT', 10);
        expect(
          audits.map(([, fields]) => fields.join(' ')).find((text) => text.includes(document.data.lane)),
        ).toContain('a test');

        await lab.pause('r3');
        const hanging = await runSeq([
          'bench',
          '--yes',
          ...lab.nodeFlags.flatMap((flag) => ['--node', flag]),
          '--node-timeout',
          '300ms',
          '-o',
          'json',
        ]);
        lab.unpause('r3');
        expect([hanging.code, (JSON.parse(hanging.stdout) as { error: { changed: string } }).error.changed]).toEqual([
          69,
          'nothing',
        ]);
        expect(await left()).toEqual([]);
      } finally {
        for (const client of clients) client.disconnect();
      }
    });
  },
);
