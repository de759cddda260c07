// `seq trace`: what happened to one item, from real sequencers. It says where the item is, and never says that it is
// nowhere while somebody who may know is silent.
import { expect, test } from 'vitest';
import { endAllAfterEach, flagsOf, initialise, redis, start, until } from '../support/live-sequencers.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

interface Traced {
  code: number | null;
  verdict: string;
  reasonCode: string;
  item: { height: string; index: number } | null;
  steps: { sequencer: string; what: string; detail: string; atMs: number }[];
}

test('an item that came by a follower → its way through both; what is nowhere, and what nobody can tell', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const [a, b] = [await start('seq-a', nodes), await start('seq-b', nodes)];
  const leads = await until('a leader', async () => ((await a.leads()) ? a : (await b.leads()) ? b : undefined));
  const follows = leads === a ? b : a;
  const receipt = await until('the item to be sequenced', () => follows.submit('order-17'));

  const trace = async (...args: string[]): Promise<Traced> => {
    const flags = [...flagsOf(nodes), '--node-timeout', '2s', '-o', 'json'];
    const { code, stdout } = await runSeq(newHome(), ['trace', ...args, ...flags]);
    return { code, ...(JSON.parse(stdout) as { data: Omit<Traced, 'code'> }).data };
  };
  const synced = await until('both to have it on disk', async () => {
    const traced = await trace('order-17');
    return traced.steps.filter(({ what }) => what === 'synced').length === 2 ? traced : undefined;
  });
  expect([synced.code, synced.reasonCode, synced.item]).toEqual([
    0,
    'ITEM_FOUND',
    expect.objectContaining({ height: String(receipt.height), index: receipt.index }),
  ]);
  const steps = synced.steps.map(({ sequencer, what, detail }) => `${sequencer} ${what} ${detail}`);
  const block = `block ${receipt.height}`;
  for (const step of [
    `${follows.id} received from a client`,
    `${follows.id} forwarded to ${leads.id}`,
    `${leads.id} received from another sequencer`,
    `${leads.id} proposed in ${block}`,
    `${leads.id} committed ${block}`,
    `${follows.id} committed ${block}`,
    `${leads.id} answered committed`,
    `${follows.id} answered forwarded`,
  ])
    expect(steps).toContain(step);
  const times = synced.steps.map(({ atMs }) => atMs);
  expect(times).toEqual([...times].sort((one, other) => one - other));

  const place = await trace('--height', String(receipt.height), '--index', String(receipt.index));
  expect([place.code, place.reasonCode, place.steps.length]).toEqual([0, 'ITEM_FOUND', synced.steps.length]);
  expect(await trace('--height', String(receipt.height), '--index', '99')).toMatchObject({
    code: 1,
    reasonCode: 'ITEM_NOT_SEEN',
    item: null,
  });
  expect(await trace('order-18')).toMatchObject({ code: 1, verdict: 'WARN', reasonCode: 'ITEM_NOT_SEEN', steps: [] });

  follows.child.kill('SIGKILL');
  expect(await trace('order-18'), 'one does not answer').toMatchObject({ code: 3, reasonCode: 'ITEM_UNKNOWN' });
  expect(await trace('order-17'), 'the other one knows').toMatchObject({ code: 0, reasonCode: 'ITEM_FOUND' });
}, 180_000);
