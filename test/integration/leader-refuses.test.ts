// A leader that refuses a request says so to the command that waits for it, at once. Each command here would wait for an
// hour otherwise. On real servers.
import { expect, test } from 'vitest';
import { answerRequest } from '../../src/core/nodes/requests.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import {
  afterTest,
  endAllAfterEach,
  flagsOf,
  initialise,
  redis,
  start,
  until,
  view,
} from '../support/live-sequencers.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

const LONG = ['--yes', '--timeout', '1h', '--node-timeout', '2s', '--json'];

interface Document {
  error: { code: string; exit: number; message: string; changed: string; next: string[] } | null;
}

test('node admit --damaged: the leader does not re-admit → its words, and nothing changed', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes, ['--no-readmit']);
  await until('a to lead', a.leads);
  await until('all nodes to be claimed', async () =>
    (await Promise.all(Object.values(nodes).map((node) => view(node)))).every(({ lock }) => lock !== null)
      ? true
      : undefined,
  );
  const before = (await view(nodes.r2)).incarnation;
  const ran = await runSeq(newHome(), ['node', 'admit', '--damaged', '--on', 'r2', ...flagsOf(nodes), ...LONG]);
  expect((JSON.parse(ran.stdout) as Document).error, ran.stdout).toMatchObject({
    code: 'REQUEST_REFUSED',
    exit: 76,
    changed: 'nothing',
    message: 'a refused: this leader was started with --no-readmit',
  });
  expect((await view(nodes.r2)).incarnation).toBe(before);
}, 180_000);

test('stepdown: the leader does not know such a request → its words, and nothing changed', async () => {
  const servers = { r1: await redis(), r2: await redis(), r3: await redis() };
  const cluster = 'c0ffee00c0ffee00.1';
  const nodes = Object.entries(servers).map(
    ([id, { url }]) => new RedisNode({ id, url, identity: { cluster, lane: '' } }),
  );
  afterTest(() => Promise.all(nodes.map((node) => node.close())));
  const writer = new ChainWriter(nodes, cluster, '', 'seq-a', 3_600_000);
  await writer.bootstrap();
  await writer.lead();
  await writer.write();
  const timing = { ttlMs: '3600000', blockTimeMs: '100', recordTtlMs: '600000' };
  for (const node of nodes)
    for (const [id, role] of [
      ['seq-a', 'leader'],
      ['seq-b', 'follower'],
    ] as const) {
      const extra = { seenAtMs: String(Date.now()), ready: 'yes', ...timing };
      const presence = { id, role, height: 1, version: '', url: '', pid: 1, configDigest: '', extra };
      await node.call({ script: 'announce', presence, ttlMs: 600_000 }, 5000);
    }
  const ran = await runSeq(newHome(), ['stepdown', ...flagsOf(servers), ...LONG], {
    during: async () => {
      const request = await until('the request', async () => (await view(servers.r1)).request ?? undefined);
      await answerRequest(nodes, request, 'refused: no requests of that kind', 'seq-a', systemClock);
    },
  });
  expect((JSON.parse(ran.stdout) as Document).error, ran.stdout).toMatchObject({
    code: 'REQUEST_REFUSED',
    exit: 76,
    changed: 'nothing',
    message: 'seq-a refused: no requests of that kind',
  });
}, 180_000);
