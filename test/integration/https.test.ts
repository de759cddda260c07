// Two sequencers with certificates of a private authority: the follower forwards to the leader over TLS because
// --http-ca trusts it; one that trusts another authority hands nothing over, and says why. Built program, real
// server.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { httpCall, type HttpAnswer } from '../../src/core/http-call.js';
import { until } from '../support/fake-sequencer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const LIMIT_MS = 20_000;
const directory = mkdtempSync(join(tmpdir(), 'seq-https-'));
const home = newHome();
const file = (name: string) => join(directory, name);
let server: RedisServer;
let node: string[];
const running: ChildProcess[] = [];

beforeAll(async () => {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
  for (const name of ['ca', 'other'])
    openssl(
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.crt`,
      '-days',
      '2',
      '-subj',
      `/CN=seq test ${name}`,
    );
  openssl(
    'req',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    'seq.key',
    '-out',
    'seq.csr',
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=IP:127.0.0.1,DNS:localhost',
  );
  openssl(
    'x509',
    '-req',
    '-in',
    'seq.csr',
    '-CA',
    'ca.crt',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-out',
    'seq.crt',
    '-days',
    '2',
    '-copy_extensions',
    'copy',
  );
  server = await startRedis();
  node = ['--node', `r1=${server.url}`];
  expect((await runSeq(home, ['cluster', 'init', ...node])).code).toBe(0);
}, 2 * LIMIT_MS);

afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** A sequencer that listens with TLS; its address. */
async function run(id: string, authority: string): Promise<string> {
  const child = spawn(
    process.execPath,
    [
      bin,
      'run',
      '--id',
      id,
      ...node,
      '--store',
      file(id),
      '--http',
      '127.0.0.1:0',
      '--http-cert',
      file('seq.crt'),
      '--http-key',
      file('seq.key'),
      '--http-ca',
      file(authority),
      '--ttl',
      '1500ms',
      '--block-time',
      '300ms',
      '--node-timeout',
      '300ms',
      '--eager',
    ],
    { env: environment(home), stdio: ['ignore', 'pipe', 'inherit'] },
  );
  running.push(child);
  let log = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const address = (): string | undefined => /"url":"(https:[^"]+)"/.exec(log)?.[1];
  await until(() => address() !== undefined, `${id} listens: ${log}`, LIMIT_MS);
  return address()!;
}

function ask(url: string, path: string, body?: string): Promise<HttpAnswer> {
  return httpCall({
    url,
    path,
    ca: readFileSync(file('ca.crt')),
    limitMs: LIMIT_MS,
    connectMs: 5000,
    maxReplyBytes: 1 << 20,
    ...(body === undefined ? {} : { method: 'POST', body: Buffer.from(body) }),
  });
}

async function status(url: string): Promise<{ role?: string; leader?: { id: string; url: string } | null }> {
  const answer = await ask(url, '/v1/status');
  return answer.outcome === 'answered' && answer.status === 200
    ? (JSON.parse(answer.body.toString()) as Awaited<ReturnType<typeof status>>)
    : {};
}

test(
  'https: a private authority on both sides → the follower forwards to the leader; another one → ' +
    'nothing is handed over, and why',
  async () => {
    const leading = await run('seq-a', 'ca.crt');
    await until(async () => (await status(leading)).role === 'leader', 'seq-a leads', LIMIT_MS);
    const [following, distrusting] = await Promise.all([run('seq-b', 'ca.crt'), run('seq-c', 'other.crt')]);
    for (const url of [following, distrusting])
      await until(
        async () => (await status(url)).leader?.url === leading,
        `${url} sees the leader's address`,
        LIMIT_MS,
      );

    const sent = await ask(following, '/v1/submit', 'over two hops');
    expect(sent).toMatchObject({ outcome: 'answered', status: 200, headers: { 'seq-leader': 'seq-a' } });
    const { height } = JSON.parse((sent as { body: Buffer }).body.toString()) as { height: number };
    const block = await ask(leading, `/v1/blocks/${height}`);
    expect(
      Buffer.from(
        (JSON.parse((block as { body: Buffer }).body.toString()) as { data: string }).data,
        'base64',
      ).toString('latin1'),
    ).toContain('over two hops');

    const refused = await ask(distrusting, '/v1/submit', 'not trusted');
    expect(refused).toMatchObject({ outcome: 'answered', status: 503 });
    const { error } = JSON.parse((refused as { body: Buffer }).body.toString()) as {
      error: { code: string; why: string };
    };
    expect(error.code).toBe('NO_LEADER');
    expect(error.why).toMatch(/certificate|issuer/);

    const submit = ['submit', '--http', following, '-o', 'json'];
    expect((await runSeq(home, [...submit, '--http-ca', file('ca.crt')], { input: 'one\ntwo\n' })).code).toBe(0);
    const untrusted = await runSeq(home, [...submit, '--give-up', '1s'], { input: 'three\n' });
    expect([untrusted.code, untrusted.stdout + untrusted.stderr]).toEqual([
      69,
      expect.stringMatching(/certificate|issuer/),
    ]);
  },
  4 * LIMIT_MS,
);
