// The nodes agree how many nodes there are. A list with other nodes, or with a part of them, changes no quorum
// (docs/PROTOCOL.md section 8). Each test takes the way on which such a list once forked the chain or made a reader
// print a block that was not committed, on real servers and processes.
import { expect, test } from 'vitest';
import {
  client,
  endAllAfterEach,
  flagsOf,
  forkAt,
  initialise,
  Link,
  redis,
  soon,
  start,
  until,
  view,
  type Nodes,
} from '../support/live-sequencers.js';
import { freePort } from '../../src/lab/free-port.js';
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
  await initialise({ r1, r2, r3: b3 }); // so b finds r3 at no other address
  b3.cut();
  const a = await start('a', { r1: a1, r2: a2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  const pending = await until('a block on r3 alone', async () => {
    a1.cut();
    a2.cut();
    const alone = await soon(3000, async () => {
      const [here, there] = [await view(r3), await view(r1)];
      return here.head > there.head && here.head > (await view(r2)).head ? here : undefined;
    });
    if (alone !== undefined) return alone;
    a1.heal(); // a had no term in which it could have written one
    a2.heal();
    await until('a to lead again', a.leads);
    return undefined;
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

/** Four at a time. */
async function atOnce<T, R>(all: readonly T[], run: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += 4)
    results.push(...(await Promise.all(all.slice(from, from + 4).map(run))));
  return results;
}

/** Every verb that reads the nodes. What it counts stands in `meta`, what it leaves out in `warnings` or in a row. */
const READERS: string[][] = [
  ['status'],
  ['node', 'list'],
  ...['quorum', 'nodes', 'leader', 'epoch', 'stream', 'lag', 'all'].map((what) => ['check', what]),
  ['doctor'],
  ['wait', '--for', 'leader'],
  ['history'],
  ['epoch', 'show'],
  ['watch', '--once'],
  ['repair', 'plan'],
  ['stream', 'inspect'],
  ['stream', 'diff', '--on', 'r2'],
  ['stream', 'verify'],
];

const SOME_READERS: string[][] = [['status'], ['check', 'nodes'], ['epoch', 'show'], ['stream', 'verify']];

interface Answer {
  data: { restart?: { why: string }; nodes?: { id: string; state?: string }[] } | null;
  error: { code: string } | null;
  warnings: string[];
  meta: { quorum: number };
}

test('whatever list is given, every reader counts the members, and says of each other server that it is none', async () => {
  const [r1, r2, r3, other, replica] = [await redis(), await redis(), await redis(), await redis(), await redis()];
  await initialise({ r1, r2, r3 });
  await initialise({ s1: other });
  await client(replica).replicaof('127.0.0.1', r1.port);
  const a = await start('a', { r1, r2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  const gone = `redis://127.0.0.1:${await freePort()}`;
  const lists: [string, Nodes, RegExp | null][] = [
    ['the members and a stranger', { r1, r2, r3, s1: other }, /s1 .*is no member of cluster/],
    ['one member', { r3 }, null],
    ['a replica of a member', { r1: replica }, /r1 is asked at .*does not show the memory that counts as r1/],
    ['a member where nobody answers, and another one', { r1: { url: gone }, r2 }, /r1 is asked at/],
  ];
  const ask = async (words: string[], nodes: Nodes): Promise<{ answer: Answer }> => {
    const ran = await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '3s', '-o', 'json']);
    return { answer: JSON.parse(ran.stdout) as Answer };
  };
  for (const [at, [list, nodes, says]] of lists.entries()) {
    const readers = at === 0 ? READERS : SOME_READERS; // the lists are judged in one place; what is shown is not
    const answers = await atOnce(readers, (words) => ask(words, nodes));
    for (const [at, { answer }] of answers.entries()) {
      const what = `seq ${readers[at]!.join(' ')}: ${list}`;
      expect(answer.error, what).toBeNull();
      expect(answer.meta.quorum, what).toBe(2);
      const shown = answer.data?.nodes?.find(({ id }) => id === 's1')?.state;
      const told = shown === 'STRANGER' ? 's1 (shown) is no member of cluster' : answer.warnings.join();
      if (says === null) expect(answer.warnings.join(), what).not.toMatch(/is no member|is asked at/);
      else expect(told, what).toMatch(says);
      expect(answer.data?.restart?.why ?? '', `${what}: restart`).not.toContain('s1');
    }
  }
  for (const words of SOME_READERS) {
    const alone = await ask(words, { s1: other });
    expect(alone.answer.meta.quorum, `seq ${words.join(' ')}: the other cluster alone`).toBe(1);
    const { answer } = await ask(words, { r1, x: { url: r1.url.replace('127.0.0.1', 'localhost') } });
    expect(answer.error?.code, `seq ${words.join(' ')}: one member twice`).toBe('SAME_SERVER');
  }
}, 400_000);
