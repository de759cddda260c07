// What must not happen while nodes forget: a commit that rests on a memory that is gone (docs/PROTOCOL.md section 8),
// a late copy of an admission call that changes anything, a commit missed because a node is being filled again.
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Entry, NodeCall } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { clusterOf, probe, meddle, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { readStreams, withLab, type Lab } from '../support/lab.js';

const FORGETS: [how: string, act: (lab: Lab) => Promise<void>][] = [
  [
    'wiped',
    (lab) =>
      meddle(lab, 'r2', async (redis) => {
        await redis.flushall();
      }),
  ],
  [
    'restarted from an append-only file without its last writes',
    async (lab) => {
      await lab.kill('r2');
      const dir = join(lab.dataDirectory('r2'), 'appendonlydir');
      const file = join(
        dir,
        readdirSync(dir).find((name) => name.endsWith('.incr.aof'))!,
      );
      truncateSync(file, statSync(file).size - 900);
      await lab.startProcess('r2');
    },
  ],
];

describe('memory: H is on {r1, r2} alone', () => {
  it.each(FORGETS)(
    'memory: r2 %s, r1 unreachable → no write until r1 is back, then H stands and r2 is mended',
    async (_, forget) => {
      await withLab({ proxies: true, sequencers: 2, persist: 'always' }, async (lab) => {
        const cluster = await clusterOf(lab);
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 3);
        const ways = lab.sequencers.map(({ name }) => lab.proxy(name, 'r3'));
        for (const way of ways) {
          way.onConnect('refuse');
          way.cut();
        }
        const { head: stale } = await probe(lab, 'r3', cluster);
        await lab.waitForHeight(leader, stale + 4);
        for (const { name } of lab.sequencers) await lab.pause(name);
        const before = await probe(lab, 'r2', cluster);
        const [parent, last] = (await readStreams(lab, '', ['r1'])).get('r1')!.slice(-2) as [Entry, Entry];
        expect(parent.height, 'committed, and on r1 and r2 alone').toBeGreaterThan(stale);

        await forget(lab);
        await lab.pause('r1');
        for (const way of ways) way.heal();
        for (const way of ways) way.onConnect('accept');
        for (const { name } of lab.sequencers) lab.unpause(name);

        // For three leases nothing is committed above what r1 was given; r2 counts for nothing, whatever r3 is told.
        const until = performance.now() + 1500;
        await lab.waitFor(
          'three leases to pass without a commit',
          120_000,
          async () => {
            expect((await probe(lab, 'r2', cluster)).admission).not.toBe('admitted');
            for (const { name } of lab.sequencers)
              expect(Number((await lab.status(name))!['height']), name).toBeLessThanOrEqual(last.height);
            return performance.now() > until ? true : undefined;
          },
          50,
        );
        const status = (await lab.ask(['status'])) as { verdict: string; reasonCode: string; reason: string };
        expect(status.verdict).toBe('CRIT');
        expect(status.reasonCode).toBe('NO_QUORUM');
        expect(status.reason).toContain('r1');

        lab.unpause('r1');
        const next = await lab.waitForLeader();
        await lab.waitForHeight(next, last.height + 4);
        await untilAdmitted(lab, 'r2', cluster, before.incarnation);
        await untilIdentical(lab);
        for (const [name, entries] of await readStreams(lab))
          expect(entries.find(({ height }) => height === parent.height)?.hash, name).toBe(parent.hash);
      });
    },
    300_000,
  );
});

describe('memory: late copies', () => {
  it(
    'memory: every admission call of a finished re-admission comes again → refused, nothing changes, ' +
      'the node goes on',
    async () => {
      await withLab({ sequencers: 1 }, async (lab) => {
        const cluster = await clusterOf(lab);
        const leader = await lab.waitForLeader();
        await lab.waitForHeight(leader, 5);
        const former = await probe(lab, 'r2', cluster);
        await meddle(lab, 'r2', async (redis) => {
          await redis.flushall();
        });
        const { view } = await untilAdmitted(lab, 'r2', cluster, former.incarnation);
        const block = {
          height: 1,
          parent: view.floorHash,
          hash: 'a'.repeat(64),
          timestamp: 1,
          data: new Uint8Array(3),
        };
        const { incarnation: nonce, claimant: owner, epoch, floor, floorHash, config } = view;
        const keepMs = 60_000;
        const rows: [call: NodeCall, reason: string][] = [
          [{ script: 'begin_admission', owner, epoch, nonce: 'late-0', floor, floorHash, keepMs }, 'CONFIG_STALE'],
          [{ script: 'begin_admission', owner, epoch, nonce, floor, floorHash, keepMs, config }, 'STALE_NONCE'],
          [
            { script: 'begin_admission', owner, epoch, nonce: 'late-1', floor, floorHash, keepMs, config },
            'STALE_NONCE',
          ],
          [
            {
              script: 'begin_admission',
              owner,
              epoch,
              nonce: 'late-2',
              floor,
              floorHash,
              keepMs,
              config,
              replaces: former.incarnation,
            },
            'STALE_NONCE',
          ],
          [
            {
              script: 'begin_admission',
              owner: `${leader}/00000000000000ff`,
              epoch,
              nonce: 'late-3',
              floor,
              floorHash,
              keepMs,
              config,
            },
            'FENCING_ERROR',
          ],
          [
            {
              script: 'begin_admission',
              owner,
              epoch: epoch - 1,
              nonce: 'late-4',
              floor,
              floorHash,
              keepMs,
              config,
              replaces: nonce,
            },
            'FENCING_ERROR',
          ],
          [{ script: 'backfill', owner, epoch, nonce, block, entryEpoch: epoch }, 'STALE_NONCE'],
          [{ script: 'backfill', owner, epoch, nonce: 'late-1', block, entryEpoch: epoch }, 'STALE_NONCE'],
          [
            { script: 'admit', owner, epoch, nonce, ttlMs: 500, head: view.head, headHash: view.headHash },
            'STALE_NONCE',
          ],
          [{ script: 'bootstrap_prepare', nonce }, 'NOT_PRISTINE'],
          [{ script: 'bootstrap_commit', nonce }, 'STALE_NONCE'],
        ];
        const node = new RedisNode({ id: 'r2', url: lab.url('r2'), identity: { cluster, lane: '' } });
        try {
          for (const [call, reason] of rows) {
            const reply = await node.call(call, 1000);
            expect(reply, JSON.stringify(call)).toMatchObject({ outcome: 'refused', reason });
          }
        } finally {
          await node.close();
        }
        await lab.waitForHeight(leader, view.head + 3);
        const after = await probe(lab, 'r2', cluster);
        expect(after).toMatchObject({ admission: 'admitted', incarnation: nonce, claimant: owner, epoch });
        await untilIdentical(lab);
      });
    },
    300_000,
  );
});

describe('memory: speed', () => {
  it(
    'memory: 1,000 blocks of 10 KB, one node of three restarts without data → admitted again, in one term, ' +
      'no commit missed',
    async () => {
      const blockTimeMs = 200;
      await withLab(
        { sequencers: 1, ttlMs: 3000, blockTimeMs, eager: true, runArgs: ['--max-block-bytes', '11KiB'] },
        async (lab) => {
          const cluster = await clusterOf(lab);
          const leader = await lab.waitForLeader();
          const items = Array.from({ length: 100 }, () => ({ data: 'x'.repeat(10_000) }));
          for (let sent = 0; sent < 11; sent++) expect((await lab.submit(leader, items, 30_000)).status).toBe(200);
          const before = await probe(lab, 'r2', cluster);
          await lab.kill('r2');
          await lab.startProcess('r2'); // no persistence: empty
          const { ms, view } = await untilAdmitted(lab, 'r2', cluster, before.incarnation);
          const { height: after } = (await lab.status(leader)) as { height: string };
          await lab.waitForHeight(leader, Number(after) + 2);
          expect(view.head - view.floor).toBeGreaterThanOrEqual(1000);
          const entries = (await readStreams(lab)).get('r1')!;
          const during = entries.filter(({ height }) => height >= before.head);
          const gaps = during.slice(1).map((entry, at) => entry.timestamp - during[at]!.timestamp);
          // Milliseconds from the first block sent to the last, by the leader's own log.
          const [begun, ours] = await lab.waitFor('the log to tell of it', 120_000, () => {
            const said = lab.log(leader, 5000).flatMap((line) => {
              const one = JSON.parse(line) as {
                event?: string;
                node?: string;
                state?: string;
                why?: string;
                time: string;
              };
              return one.event === 'node' && one.node === 'r2' ? [one] : [];
            });
            const found = [
              said.findLast(({ why }) => why?.endsWith('begun')),
              said.findLast(({ state }) => state === 'claimed'),
            ] as const;
            return found[0] && found[1] ? ([found[0], found[1]] as const) : undefined;
          });
          const fillMs = Math.max(1, Date.parse(ours.time) - Date.parse(begun.time));
          console.info(
            `re-admission of ${view.head - view.floor} blocks of 10 KB: ${Math.round(ms)} ms after its ` +
              `server answered; begun to admitted ${fillMs} ms ` +
              `(${Math.round(((view.head - view.floor) * 10) / fillMs)} MB/s); longest block gap ` +
              `${Math.max(...gaps)} ms of ${blockTimeMs} ms block time`,
          );
          expect(new Set(during.map(({ epoch }) => epoch)).size, 'one term').toBe(1);
          // Whatever stops the leader for the length of a lease stops every client. The line above has the usual gap.
          expect(Math.max(...gaps)).toBeLessThan(60_000);
          await untilIdentical(lab);
        },
      );
    },
    300_000,
  );
});
