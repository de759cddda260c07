// The largest blocks there may be, through real processes: 16 MiB submitted as a frame and over HTTP, committed,
// trimmed to the byte, read back by every reader, filled into a node that lost its data, and caught up by a sequencer
// with an empty store (docs/PROTOCOL.md sections 6 and 10).
import { createHash, randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { largestItem } from '../../src/core/produce/batch.js';
import { clusterOf, probe, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { readStreams, withLab } from '../support/lab.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const MIB = 1024 * 1024;
const digest = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

describe('large blocks', () => {
  it(
    'size: items that fill a block of 16 MiB → committed, retained by bytes exactly, tailed, ' +
      'verified, filled into an empty node, caught up; one byte more → refused',
    async () => {
      const slow = { ttlMs: 20_000, blockTimeMs: 2000 };
      await withLab(
        {
          ...slow,
          sequencers: 2,
          eager: true,
          runArgs: ['--max-block-bytes', '16MiB', '--retain-bytes', '40MiB', '--node-timeout', '3s'],
        },
        async (lab) => {
          const home = newHome();
          const flags = lab.nodeFlags.flatMap((each) => ['--node', each]);
          const cluster = await clusterOf(lab);
          const leader = await lab.waitForLeader();
          const over = await lab.http(leader, 'POST', '/v1/submit', {
            body: Buffer.alloc(largestItem(16 * MIB) + 1),
            headers: { 'content-type': 'application/octet-stream' },
            limitMs: 120_000,
          });
          expect([over.status, over.body]).toEqual([413, expect.stringContaining('ITEM_TOO_LARGE')]);
          const {
            error: { limit: most },
          } = JSON.parse(over.body) as { error: { limit: number } };
          expect(most).toBeGreaterThan(16 * MIB - 200);
          const [second, third] = [0, 1].map(() => randomBytes(most)) as [Buffer, Buffer];
          // `seq submit` gives each item a key, which is in the block too.
          const first = randomBytes(most - 200);

          const frame = Buffer.alloc(4);
          frame.writeUInt32BE(first.length);
          const file = join(home, 'frames');
          writeFileSync(file, Buffer.concat([frame, first]));
          const sent = await runSeq(
            home,
            [
              'submit',
              file,
              '--binary',
              ...flags,
              '--node-timeout',
              '3s',
              '--http',
              `http://127.0.0.1:${lab.port(leader)}`,
              '--json',
            ],
            { limitMs: 120_000 },
          );
          expect(sent.code, sent.stderr + sent.stdout).toBe(0);
          for (const item of [second, third]) {
            const answer = await lab.http(leader, 'POST', '/v1/submit', {
              body: item,
              headers: { 'content-type': 'application/octet-stream' },
              limitMs: 120_000,
            });
            expect(answer.status, answer.body).toBe(200);
          }

          const sizes = async (): Promise<number[]> => {
            const entries = (await readStreams(lab, '', ['r1'])).get('r1')!;
            return entries.map(({ size }) => size);
          };
          // 40 MiB are two of them and small ones, never three.
          await lab.waitFor('the window to end by bytes', 120_000, async () =>
            (await sizes()).filter((size) => size > 15 * MIB).length === 2 ? true : undefined,
          );
          const kept = await sizes();
          expect(kept.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(40 * MIB);

          const ask = (...args: string[]) =>
            runSeq(home, [...args, ...flags, '--node-timeout', '3s', '--timeout', '60s'], { limitMs: 120_000 });
          const verify = await ask('stream', 'verify', '--exit-code');
          expect(verify.code, verify.stdout).toBe(0);
          const inspect = JSON.parse((await ask('stream', 'inspect', '--json')).stdout) as {
            data: { heights?: unknown };
          };
          expect(JSON.stringify(inspect.data), 'its size').toMatch(/1677\d{4}/);
          const { floor } = await probe(lab, 'r1', cluster);
          const tail = await runSeq(
            home,
            [
              'stream',
              'tail',
              '--items',
              '--from',
              String(floor + 1),
              '--to',
              String(floor + kept.length),
              '--json',
              ...flags,
              '--node-timeout',
              '3s',
            ],
            { limitMs: 120_000 },
          );
          expect(tail.code, tail.stderr).toBe(0);
          const told = tail.stdout
            .split('"')
            .filter((text) => text.length > MIB)
            .map((text) => digest(Buffer.from(text, 'base64')));
          expect(told).toEqual([digest(second), digest(third)]);

          const before = await probe(lab, 'r3', cluster);
          await lab.kill('r3');
          lab.removeData('r3');
          await lab.startProcess('r3');
          await untilAdmitted(lab, 'r3', cluster, before.incarnation, 60_000);
          await untilIdentical(lab, 30_000);

          const follower = lab.sequencers.find(({ name }) => name !== leader)!.name;
          const { height } = (await lab.status(leader, 5000)) as { height: string };
          await lab.kill(follower);
          rmSync(lab.dataDirectory(follower), { recursive: true, force: true });
          await lab.startProcess(follower);
          await lab.waitForHeight(follower, Number(height), 60_000);
          expect(Number((await lab.http(follower, 'GET', `/v1/blocks/1`)).status)).toBe(200);
        },
      );
    },
    300_000,
  );
});
