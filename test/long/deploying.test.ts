// The first runbook of docs/DEPLOYING.md, as an operator runs it: the lines are read from the page and run on hosts of
// their own, with TLS. What came out is asked from outside.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Agents, httpCall } from '../../src/core/http-call.js';
import { DebianHosts, mayDeploy, output } from '../support/debian-hosts.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { bin, environment, newHome, root } from '../support/spawn-seq.js';

interface Block {
  /** The bold word before it: where its lines are run. */
  where: string;
  text: string;
}

/** The blocks of a section, in order, each with the host that it is for. */
function blocksOf(title: string): Block[] {
  const page = readFileSync(join(root, 'docs/DEPLOYING.md'), 'utf8').split(/^##+ /m);
  const section = page.find((one) => one.startsWith(`${title}\n`))!;
  return [...section.matchAll(/\*\*On ([^*:]+):?\*\*(?:(?!```)[\s\S])*```sh\n([\s\S]*?)```|```sh\n/g)].map(
    ([, where, text]) => {
      expect(text, `${title}: every block says where it is run`).toBeDefined();
      return { where: where!, text: text!.trim() };
    },
  );
}
const commandsOf = ({ text }: Block): number => text.split('\n').length;

const NODES = ['redis1', 'redis2', 'redis3'];
// A busy test machine must not make nodes appear dead.
const PATIENT = { SEQ_NODE_TIMEOUT: '2s', SEQ_TTL: '8s' };
const home = newHome();
const local = { ...environment(home), ...PATIENT };
const bare = 'From a bare Debian host to a member of a TLS cluster';

describe.skipIf(!mayDeploy)('the first runbook of DEPLOYING.md', () => {
  let hosts: DebianHosts;
  const files = join(home, 'seq-files');
  const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: STANDSTILL_MS, interval: 100 });
  const secret = (name: string) => readFileSync(join(files, name), 'utf8').trim();
  const urlOf = (number: number) => hosts.located(`https://10.0.0.${number}:7070`);

  /** What callers know: it is replaced while they run. */
  const client = { token: '' };
  let agents: Agents;
  let targets: string[] = [];
  let sent = 0;
  const failures: string[] = [];
  const epochs = new Set<number>();
  const stop = new AbortController();
  const load: Promise<void>[] = [];

  async function submitAll(at: number): Promise<void> {
    for (let n = 0; !stop.signal.aborted; n += 1) {
      const answer = await httpCall({
        url: targets[at % targets.length]!,
        path: '/v1/submit',
        method: 'POST',
        body: Buffer.from(`${at}-${n}`),
        headers: { 'idempotency-key': `${at}-${n}` },
        token: client.token,
        agents,
        limitMs: 30_000,
        connectMs: 10_000,
        maxReplyBytes: 1 << 20,
      });
      const text = answer.outcome === 'answered' ? `${answer.status} ${answer.body.toString()}` : answer.why;
      const epoch = /^200 .*"epoch":(\d+)/.exec(text)?.[1];
      if (epoch === undefined) failures.push(text);
      else epochs.add(Number(epoch));
      sent += 1;
    }
  }
  async function more(): Promise<void> {
    expect(load, 'the page before this one made a cluster').not.toEqual([]);
    const until = sent + 10;
    await eventually(() => expect(sent).toBeGreaterThan(until));
  }
  const status = () => hosts.run('old', 'SEQ_CONFIG=/etc/seq/config.yaml seq status -o json', PATIENT);
  const statusData = async () => (JSON.parse(await status()) as { data: Record<string, unknown> }).data;

  beforeAll(async () => {
    hosts = new DebianHosts();
    for (const [at, name] of NODES.entries()) await hosts.add(name, at + 1);
    await hosts.add('old', 11);
    await hosts.add('second', 12);
    await hosts.add('new', 13);
  }, 120_000);
  afterAll(async () => {
    stop.abort();
    await Promise.all(load);
    agents?.close();
    await hosts?.close();
  }, 120_000);

  test('from bare hosts: at most six commands each → a TLS cluster that takes items', async () => {
    const [prepare, redis, sequencer, first] = blocksOf(bare) as [Block, Block, Block, Block];
    expect([prepare, redis, sequencer, first].map(({ where }) => where)).toEqual([
      'your own machine',
      'each Redis host',
      'each sequencer host',
      'one sequencer host',
    ]);
    expect([redis, sequencer].map(commandsOf)).toEqual([4, 6]);
    // The new host of the last section is prepared with the others, and joins there.
    const own = prepare.text.replaceAll('10.0.0.12', '10.0.0.12 10.0.0.13').replaceAll('10.0.0.13:', '10.0.0.12:');
    const seq = `seq() { ${process.execPath} ${bin} "$@"; }`;
    await output('bash', ['-ec', `cd ${home}\n${seq}\n${hosts.located(own)}`], local);
    for (const [at, name] of NODES.entries()) {
      hosts.copy(join(files, hosts.located(`10.0.0.${at + 1}`)), name);
      await hosts.run(name, redis.text);
    }
    for (const [name, number] of [
      ['old', 11],
      ['second', 12],
      ['new', 13],
    ] as const) {
      hosts.copy(join(files, hosts.located(`10.0.0.${number}`)), name);
      hosts.startRunit(name, PATIENT);
      if (name !== 'new') await hosts.run(name, sequencer.text);
    }
    expect(await hosts.run('old', first.text, PATIENT)).toMatch(/initialised[\s\S]*SEQUENCED/);

    // From outside: TLS alone, a user of its own, and no way in without a secret.
    const [redisUrl, nodeCa] = [hosts.located('10.0.0.1'), join(files, 'ca.pem')];
    const cli = `redis-cli -h ${redisUrl} --tls --cacert ${nodeCa}`;
    expect(await output('bash', ['-c', `${cli} ping`], local)).toMatch(/NOAUTH/);
    expect(
      await output('bash', ['-c', `${cli} --user seq --pass ${secret('redis-password')} config get dir`], local),
    ).toMatch(/NOPERM/);
    expect(await hosts.run('old', 'ps -o user= -C node | sort -u')).toBe('seq\n');
    await eventually(async () => expect(await hosts.run('old', 'cat /var/log/seq/*')).toMatch(/started as old in/));
    targets = [urlOf(11), urlOf(12)];
    client.token = secret('token');
    agents = new Agents({ ca: readFileSync(nodeCa) });
    expect((await statusData())['reasonCode']).toBe('OK');
    load.push(...[0, 1].map(submitAll));
    await more();
    expect(failures).toEqual([]);
  }, 600_000);
});
