// The nodes agree how many nodes there are. A list with other nodes, or with a part of them, changes no quorum
// (docs/PROTOCOL.md section 8). Each test takes the way on which such a list once forked the chain or made a reader
// print a block that was not committed, on real servers and processes.
import { expect, test } from 'vitest';
import {
  client,
  endAllAfterEach,
  forkAt,
  initialise,
  Link,
  redis,
  soon,
  start,
  until,
  view,
} from '../support/live-sequencers.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

test('case 3: a cluster of three, a sequencer with a list of five → no fork; it is refused', async () => {
  const [r1, r2, r3, r4, r5] = [await redis(), await redis(), await redis(), await redis(), await redis()];
  const [b1, b2] = [await Link.to(r1), await Link.to(r2)];
  await initialise({ r1, r2, r3 });
  const b = await start('b', { r1: b1, r2: b2, r3, r4, r5 });
  const led = await until('b to lead or to end', async () => (b.ended() === null ? b.leads() : false));
  if (led) {
    await soon(5000, async () => ((await view(r5)).admission === 'admitted' ? true : undefined));
    b1.cut();
    b2.cut();
    const receipt = await soon(3000, () => b.submit('paid once'));
    if (receipt !== undefined) {
      const block = await until('its block', () => b.block(receipt.height));
      b.child.kill('SIGKILL');
      for (const server of [r1, r2, r3]) await client(server).del('seq:sequencer:b'); // as after some seconds
      const gone = await Link.to(r3);
      gone.cut();
      const c = await start('c', { r1, r2, r3: gone });
      const again = await soon(8000, () => c.submit('paid once'));
      expect(await forkAt(block.height, block, c), `two blocks at height ${block.height}`).toEqual([]);
      expect(again?.height ?? receipt.height, 'the item is sequenced once').toBe(receipt.height);
    }
  }
  for (const server of [r4, r5]) expect((await view(server)).admission, 'a stranger is no member').toBe('pristine');
}, 180_000);

test('case 4: one node of three is named → what no quorum holds is never called committed', async () => {
  const [r1, r2, r3] = [await redis(), await redis(), await redis()];
  const [a1, a2, b3] = [await Link.to(r1), await Link.to(r2), await Link.to(r3)];
  b3.cut();
  await initialise({ r1, r2, r3 });
  const a = await start('a', { r1: a1, r2: a2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  a1.cut();
  a2.cut();
  const pending = await until('a block on r3 alone', async () => {
    const [here, there] = [await view(r3), await view(r1)];
    return here.head > there.head && here.head > (await view(r2)).head ? here : undefined;
  });
  a.child.kill('SIGKILL');
  const b = await start('b', { r1, r2, r3: b3 });
  const block = await until('another block at that height', () => b.block(pending.head));
  expect(block.hash).not.toBe(pending.headHash);

  const tail = await runSeq(newHome(), [
    'stream',
    'tail',
    '--node',
    `r3=${r3.url}`,
    '-o',
    'ndjson',
    '--node-timeout',
    '2s',
  ]);
  const printed = tail.stdout.split('\n').filter((line) => line.startsWith('{'));
  expect(
    printed.filter((line) => line.includes(pending.headHash)),
    'a superseded block, said to be committed',
  ).toEqual([]);
  const status = await runSeq(newHome(), ['status', '--node', `r3=${r3.url}`, '--json', '--node-timeout', '2s']);
  const { data } = JSON.parse(status.stdout) as { data: { quorum: number } };
  expect(data.quorum, 'nodes needed').toBe(2);
}, 180_000);
