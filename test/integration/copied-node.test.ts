// A server that holds a copy of another node: somebody made it a replica, or copied files. It counts for nothing, and it
// has nothing of its own to lose. What status names brings it back. On real servers and processes.
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import {
  client,
  endAllAfterEach,
  flagsOf,
  follow,
  initialise,
  redis,
  start,
  until,
  view,
} from '../support/live-sequencers.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

test('r1 is made a replica of r2 → every verb warns, and the commands of status bring it back', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes);
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  await follow(client(nodes.r1), nodes.r2);
  const ask = async (...words: string[]) => {
    const ran = await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s', '--json']);
    return (JSON.parse(ran.stdout) as { data: { verdict: string; reasonCode: string; reason: string; next: string[] } })
      .data;
  };
  let seen = '';
  const status = await until('r1 to be seen as a copy', async () => {
    const now = await ask('status');
    seen = now.reason;
    return now.reasonCode === 'NODE_FOREIGN' && now.reason.includes('a replica') ? now : undefined;
  }).catch((error: Error) => expect.unreachable(`${error.message}; status says: ${seen}`));
  expect(status).toMatchObject({
    verdict: 'WARN',
    reason: expect.stringMatching(/^r1 holds a copy of r2: the record names node r2; its server is a replica /),
    next: [`redis-cli -u ${nodes.r1.url} replicaof no one`, `redis-cli -u ${nodes.r1.url} del seq:node:admission`],
  });
  for (const words of [['check', 'all'], ['doctor']])
    expect((await ask(...words)).verdict, words.join(' ')).toBe('WARN');
  for (const line of status.next) {
    const [command = '', ...args] = line.split(' ');
    expect(spawnSync(command, args, { encoding: 'utf8' })).toMatchObject({ status: 0 });
  }
  await until('r1 to count again', async () => {
    const [one, three] = [await view(nodes.r1), await view(nodes.r3)];
    return one.admission === 'admitted' && one.node === 'r1' && one.head >= three.head - 1 ? true : undefined;
  });
  await until('all to be well but for the missing standby', async () =>
    (await ask('check', 'nodes')).verdict === 'OK' ? true : undefined,
  );
}, 180_000);
