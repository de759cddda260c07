// Sequencers with certificates of a private authority. The follower forwards to the leader over TLS because --http-ca
// trusts it; one that trusts another authority hands nothing over, and says why. With --http-client-ca, a caller shows a
// certificate of that authority, and so do sequencers to each other. Built program, real server.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { httpCall, type ClientTls, type HttpAnswer } from '../../src/core/http-call.js';
import { makeAuthority, makeCertificate, makeCertificates } from '../support/certificates.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startSequencer, type SequencerProcess } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const directory = makeCertificates(['seq', 'caller']);
const home = newHome();
const file = (name: string) => join(directory, name);
const read = (name: string) => readFileSync(file(name));
const CA: ClientTls = { ca: read('ca.crt') };
const CALLER: ClientTls = { ...CA, cert: read('caller.crt'), key: read('caller.key') };
let server: RedisServer;
let node: string[];
let running: SequencerProcess[] = [];

beforeAll(async () => {
  makeAuthority(directory, 'other');
  makeCertificate(directory, 'foreign', { authority: 'other' });
  server = await startRedis();
  node = ['--node', `r1=${server.url}`];
  expect((await runSeq(home, ['cluster', 'init', ...node])).code).toBe(0);
});
afterEach(async () => {
  for (const one of running) one.child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  running = [];
});
afterAll(async () => {
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: STANDSTILL_MS, interval: 50 });

/** A sequencer that listens with TLS; its address. */
function run(id: string, authority: string, more: string[] = []): SequencerProcess {
  const timing = ['--ttl', '1500ms', '--block-time', '300ms', '--node-timeout', '300ms', '--eager'];
  const http = ['--http', '127.0.0.1:0', '--http-cert', file('seq.crt'), '--http-key', file('seq.key')];
  const own = ['--id', id, '--store', file(id), '--http-ca', file(authority)];
  const one = startSequencer(home, [...own, ...node, ...timing, ...http, ...more]);
  running.push(one);
  return one;
}

function ask(url: string, path: string, { body, tls = CA }: { body?: string; tls?: ClientTls } = {}) {
  return httpCall({
    url,
    path,
    tls,
    limitMs: STANDSTILL_MS,
    connectMs: STANDSTILL_MS,
    maxReplyBytes: 1 << 20,
    ...(body === undefined ? {} : { method: 'POST', body: Buffer.from(body) }),
  });
}

function json<T>(answer: HttpAnswer): T {
  if (answer.outcome !== 'answered') throw new Error(answer.why);
  return JSON.parse(answer.body.toString()) as T;
}

async function leads(url: string, tls = CA): Promise<void> {
  await eventually(async () =>
    expect(json(await ask(url, '/v1/status', { tls }))).toMatchObject({ role: 'leader', ready: true }),
  );
}

async function follows(url: string, leader: string, tls = CA): Promise<void> {
  await eventually(async () =>
    expect(json(await ask(url, '/v1/status', { tls }))).toMatchObject({ leader: { url: leader } }),
  );
}

test('https: a private authority on both sides → the follower forwards to the leader; another one → nothing is handed over, and why', async () => {
  const leading = await run('seq-a', 'ca.crt').url();
  await leads(leading);
  const others = [run('seq-b', 'ca.crt'), run('seq-c', 'other.crt')];
  const [following, distrusting] = (await Promise.all(others.map((one) => one.url()))) as [string, string];
  for (const url of [following, distrusting]) await follows(url, leading);

  const sent = await ask(following, '/v1/submit', { body: 'over two hops' });
  expect(sent).toMatchObject({ outcome: 'answered', status: 200, headers: { 'seq-leader': 'seq-a' } });
  const { height } = json<{ height: number }>(sent);
  const { data } = json<{ data: string }>(await ask(leading, `/v1/blocks/${height}`));
  expect(Buffer.from(data, 'base64').toString('latin1')).toContain('over two hops');

  const refused = await ask(distrusting, '/v1/submit', { body: 'not trusted' });
  expect(refused).toMatchObject({ outcome: 'answered', status: 503 });
  expect(json(refused)).toMatchObject({
    error: { code: 'NO_LEADER', why: expect.stringMatching(/certificate|issuer/) as string },
  });

  const submit = ['submit', '--http', following, '-o', 'json'];
  expect((await runSeq(home, [...submit, '--http-ca', file('ca.crt')], { input: 'one\ntwo\n' })).code).toBe(0);
  const untrusted = await runSeq(home, [...submit, '--give-up', '1s'], { input: 'three\n' });
  expect([untrusted.code, untrusted.stdout + untrusted.stderr]).toEqual([
    69,
    expect.stringMatching(
      /name the authority that signed it \(--http-ca FILE, SEQ_HTTP_CA\)[\s\S]*"next":\s*\[\s*"--http-ca FILE"/,
    ),
  ]);
});

test('--http-client-ca: sequencers and callers with a certificate of it are served, all others are refused by name; health is not asked', async () => {
  const asks = ['--http-client-ca', file('ca.crt'), '--admin', '127.0.0.1:0'];
  const first = run('seq-d', 'ca.crt', asks);
  const leading = await first.url();
  await leads(leading, CALLER);
  const following = await run('seq-e', 'ca.crt', asks).url();
  await follows(following, leading, CALLER);

  // The follower shows its own certificate to the leader.
  const sent = await ask(following, '/v1/submit', { body: 'over two hops', tls: CALLER });
  expect(sent).toMatchObject({ outcome: 'answered', status: 200, headers: { 'seq-leader': 'seq-d' } });

  const foreign = { ...CA, cert: read('foreign.crt'), key: read('foreign.key') };
  for (const tls of [CA, foreign])
    expect(json(await ask(leading, '/v1/submit', { body: 'nobody knows me', tls }))).toMatchObject({
      error: { code: 'CERTIFICATE_NEEDED' },
    });

  const admin = String((await first.line(/^health and metrics/))['admin']);
  expect(await ask(admin, '/livez')).toMatchObject({ outcome: 'answered', status: 200 });

  const submit = ['submit', '--http', following, '--http-ca', file('ca.crt'), '-o', 'json'];
  const known = ['--http-cert', file('caller.crt'), '--http-key', file('caller.key')];
  expect((await runSeq(home, [...submit, ...known], { input: 'one\n' })).code).toBe(0);
  const unknown = await runSeq(home, [...submit, '--give-up', '1s'], { input: 'two\n' });
  expect([unknown.code, JSON.parse(unknown.stdout)]).toMatchObject([
    77,
    { error: { code: 'CERTIFICATE_NEEDED', next: ['--http-cert FILE --http-key FILE'] } },
  ]);
  const tail = [
    'stream',
    'tail',
    '--peer',
    leading,
    '--http-ca',
    file('ca.crt'),
    ...node,
    '--limit',
    '1',
    '-o',
    'json',
  ];
  expect((await runSeq(home, [...tail, ...known])).code).toBe(0);
});
