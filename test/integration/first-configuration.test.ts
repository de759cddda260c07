// A cluster that version 0.1.0 made knows no configuration. Who says which nodes it has? On real servers and processes.
import { expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import {
  afterTest,
  endAllAfterEach,
  flagsOf,
  redis,
  start,
  until,
  view,
  type LiveSequencer,
  type Nodes,
} from '../support/live-sequencers.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

const CLUSTER = 'c0ffee00beefcafe.1';

/** Five admitted nodes without a configuration, as version 0.1.0 left them. */
async function formerCluster(): Promise<Nodes> {
  const ids = ['r1', 'r2', 'r3', 'r4', 'r5'];
  const servers = await Promise.all(ids.map(() => redis()));
  const ports = servers.map(
    ({ url }, i) => new RedisNode({ id: ids[i]!, url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  afterTest(() => Promise.all(ports.map((port) => port.close())));
  await new ChainWriter(ports, CLUSTER).bootstrap();
  return Object.fromEntries(ids.map((id, i) => [id, servers[i]!]));
}

/** What a command says, with its exit code. */
async function said(nodes: Nodes, ...words: string[]): Promise<string> {
  const wide = { env: { COLUMNS: '200' } };
  const ran = await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s'], wide);
  return `${ran.code} ${ran.stdout}`;
}

const only = (nodes: Nodes, ...ids: string[]): Nodes => Object.fromEntries(ids.map((id) => [id, nodes[id]!]));
const waits = ({ log }: LiveSequencer) =>
  until('the reason', async () => (/NOT_CONFIGURED/.test(log.join('\n')) ? true : undefined));
const configurations = (nodes: Nodes) =>
  Promise.all(Object.values(nodes).map(async (node) => (await view(node)).config.split(' ')[0]));

test('two sequencers with different lists → nobody leads, until one adopts all nodes', async () => {
  const nodes = await formerCluster();
  const a = await start('a', only(nodes, 'r1', 'r2', 'r3'));
  const b = await start('b', only(nodes, 'r3', 'r4', 'r5'));
  await Promise.all([waits(a), waits(b)]);
  expect(await configurations(nodes), 'neither of them made one').toEqual(['', '', '', '', '']);

  const drift = await start('c', nodes, ['--adopt-nodes']);
  await until('the refusal beside other lists', async () => drift.ended() ?? undefined);
  expect(drift.log.join('\n')).toContain('CONFIG_DRIFT');

  for (const { child } of [a, b]) child.kill('SIGTERM');
  await until('both to stop', async () => (a.ended() === 0 && b.ended() === 0 ? true : undefined));
  // The records of stopped sequencers are gone after some seconds.
  const c = await until('a start without a record of other lists', async () => {
    const one = await start('c', nodes, ['--adopt-nodes']);
    const led = await until(
      'c to lead or to end',
      async () => (await one.leads()) ?? (one.ended() === null ? undefined : false),
    );
    return led ? one : undefined;
  });
  await until('all nodes to note it', async () =>
    (await configurations(nodes)).every((version) => version === '0.0') ? true : undefined,
  );
  const again = await start('a', only(nodes, 'r1', 'r2', 'r3'));
  await until('a to be ready', async () => ((await again.get('/readyz')) === undefined ? undefined : true));
  c.child.kill('SIGKILL');
  await until('a to lead', again.leads);
  const receipt = await until('an item', () => again.submit('one chain'));
  await until('it on all five nodes', async () => {
    const heads = await Promise.all(Object.values(nodes).map(async (node) => (await view(node)).head));
    return heads.every((head) => head >= receipt.height) ? true : undefined;
  });
}, 240_000);

test('two sequencers adopt two lists that have no node in common → every verb that judges says so', async () => {
  const nodes = await formerCluster();
  const a = await start('a', only(nodes, 'r1', 'r2', 'r3'), ['--adopt-nodes']);
  const b = await start('b', only(nodes, 'r4', 'r5'), ['--adopt-nodes']);
  await until('a to lead', a.leads);
  await until('b to lead', b.leads);
  expect(await said(only(nodes, 'r1', 'r2', 'r3'), 'check', 'all'), 'nobody sees what nobody names').toMatch(/^0 /);
  const told = /b leads r4 and r5 of the same cluster as one of the nodes r4 and r5/;
  const verbs = ['check leader', 'check all', 'status', 'history', 'watch --once', 'doctor --exit-code'];
  for (const words of verbs.map((verb) => verb.split(' '))) {
    const text = await said(nodes, ...words);
    expect(text.replace(/\s+/g, ' '), words.join(' ')).toMatch(told);
    expect(text, words.join(' ')).toContain('CRIT');
    if (/^(check|doctor)/.test(words[0]!)) expect(text, words.join(' ')).not.toMatch(/^0 /); // the others report
  }
  expect(await said(nodes, 'wait', '--for', 'healthy', '--timeout', '2s')).toMatch(/^1 /);
  b.child.kill('SIGTERM');
  await until('b to stop', async () => (b.ended() === 0 ? true : undefined));
  expect(await said(nodes, 'check', 'leader'), 'its locks are free').toMatch(/^0 /);
}, 240_000);
