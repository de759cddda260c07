// Passwords, tokens and certificates are replaced under load. Nobody notices: no request fails, and nobody else leads.
// Real servers, real sequencers.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Agents, httpCall, type HttpAnswer } from '../../src/core/http-call.js';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { makeAuthority, makeCertificate } from '../support/certificates.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startSequencer, type SequencerProcess } from '../support/sequencer-process.js';
import { bin, environment, newHome } from '../support/spawn-seq.js';

const home = newHome();
const file = (name: string) => join(home, name);
let lab: PrivateCluster;
const started: SequencerProcess[] = [];

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 3000, blockTimeMs: 100 });
  await lab.waitForLeader();
  await lab.kill('seq-a', 'SIGTERM');
  makeAuthority(home, 'ca');
  for (const name of ['first', 'second']) makeCertificate(home, name, { authority: 'ca' });
});
afterAll(async () => {
  for (const one of started) {
    one.child.kill('SIGKILL');
    await one.ended;
  }
  await lab?.close();
});

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: STANDSTILL_MS, interval: 20 });

function redis(name: string, ...args: string[]): void {
  const { stdout, stderr } = spawnSync('redis-cli', ['-u', lab.url(name), ...args], { encoding: 'utf8' });
  expect(`${stdout}${stderr}`).toMatch(/OK|^\d+$/m);
}

function useCertificate(name: string): void {
  for (const end of ['crt', 'key']) copyFileSync(file(`${name}.${end}`), file(`http.${end}`));
}

/** The fingerprint of the certificate that a new connection gets. */
function fingerprint(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), ca: readFileSync(file('ca.crt')) }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

test('run: password, token and certificate are replaced under load → 0 failed requests, 0 changes of leader', async () => {
  const nodes = lab.nodes.map(({ name }) => name);
  for (const name of nodes) redis(name, 'acl', 'setuser', 'app', 'on', '>sesame-first', '~*', '&*', '+@all');
  writeFileSync(file('password'), 'sesame-first\n');
  writeFileSync(file('tokens'), 'first-token\n');
  useCertificate('first');
  const start = (id: string) => {
    const args = ['--id', id, '--store', file(id), '--ttl', '3s', '--block-time', '100ms', '--eager'];
    const http = ['--http', '127.0.0.1:0', '--http-token-file', file('tokens'), '--http-ca', file('ca.crt')];
    const tls = ['--http-cert', file('http.crt'), '--http-key', file('http.key')];
    const node = nodes.flatMap((name) => ['--node', `${name}=${lab.url(name)}`]);
    const one = startSequencer(home, [...args, ...node, ...http, ...tls], {
      env: { SEQ_USERNAME: 'app', SEQ_PASSWORD_FILE: file('password') },
    });
    started.push(one);
    return one;
  };
  const both = [start('seq-1'), start('seq-2')] as const;
  const urls = await Promise.all(both.map((one) => one.url()));

  let token = 'first-token';
  let sent = 0;
  const failures: string[] = [];
  const epochs = new Set<number>();
  const agents = new Agents({ ca: readFileSync(file('ca.crt')) });
  const put = (url: string, key: string): Promise<HttpAnswer> =>
    httpCall({
      url,
      path: '/v1/submit',
      method: 'POST',
      body: Buffer.from(key),
      headers: { 'idempotency-key': key },
      token,
      agents,
      limitMs: 30_000,
      connectMs: 30_000,
      maxReplyBytes: 1 << 20,
    });
  const said = (answer: HttpAnswer) =>
    answer.outcome === 'answered' ? `${answer.status} ${answer.body.toString()}` : `${answer.outcome} ${answer.why}`;
  await eventually(async () => {
    for (const url of urls) expect(said(await put(url, 'warm-up'))).toMatch(/^200 /);
  });
  const stop = new AbortController();
  const load = urls.map(async (url, at) => {
    while (!stop.signal.aborted) {
      const answer = said(await put(url, `${at}-${(sent += 1)}`));
      const epoch = /^200 .*"epoch":(\d+)/.exec(answer)?.[1];
      if (epoch === undefined) failures.push(answer);
      else epochs.add(Number(epoch));
    }
  });
  const more = async () => {
    const until = sent + 20;
    await eventually(() => expect(sent).toBeGreaterThan(until));
  };
  const hangUp = async () => {
    for (const one of both) {
      const told = () => one.lines().filter(({ message }) => /^SIGHUP: tokens/.test(String(message)));
      const before = told().length;
      one.child.kill('SIGHUP');
      await eventually(() => expect(told().length).toBeGreaterThan(before));
      expect(told().at(-1)!['message']).toMatch(/all were read$/);
    }
    await more();
  };
  // A client whose input lasts longer than its first token.
  writeFileSync(file('client-token'), 'first-token\n');
  const own = ['--http-token-file', file('client-token'), '--http-ca', file('ca.crt')];
  const client = spawn(process.execPath, [bin, 'submit', '--http', urls[0]!, ...own], { env: environment(home) });
  let clientSaid = '';
  for (const stream of [client.stdout, client.stderr])
    stream.on('data', (text: Buffer) => {
      clientSaid += text.toString();
    });
  const clientEnded = new Promise((resolve) => client.on('close', resolve));
  client.stdin.on('error', () => undefined);
  client.stdin.write('before\n');
  try {
    await more();
    // The user has two passwords until every connection was made with the new one.
    for (const name of nodes) redis(name, 'acl', 'setuser', 'app', '>sesame-second');
    writeFileSync(file('password'), 'sesame-second\n');
    await hangUp();
    for (const name of nodes) {
      redis(name, 'acl', 'setuser', 'app', '<sesame-first');
      redis(name, 'client', 'kill', 'user', 'app');
      await more();
      await eventually(async () => {
        const { stdout } = spawnSync('redis-cli', ['-u', lab.url(name), 'client', 'list'], { encoding: 'utf8' });
        expect(stdout).toMatch(/user=app/);
      });
    }
    // Both tokens are taken until every caller has the new one.
    writeFileSync(file('tokens'), 'first-token\nsecond-token\n');
    await hangUp();
    writeFileSync(file('tokens'), 'second-token\nfirst-token\n');
    await hangUp();
    token = 'second-token';
    writeFileSync(file('client-token'), 'second-token\n');
    await more();
    writeFileSync(file('tokens'), 'second-token\n');
    await hangUp();
    client.stdin.end('after\n');
    expect([await clientEnded, clientSaid]).toEqual([0, expect.stringMatching(/2 items are sequenced/)]);

    const [before] = await Promise.all(urls.map(fingerprint));
    useCertificate('second');
    await hangUp();
    for (const url of urls) expect(await fingerprint(url)).not.toBe(before);
  } finally {
    stop.abort();
    client.kill('SIGKILL');
    await Promise.all(load);
    agents.close();
  }
  expect(failures).toEqual([]);
  expect([...epochs]).toHaveLength(1);
  expect(sent).toBeGreaterThan(100);

  // What cannot be used is told, and what was read last goes on.
  const last = await fingerprint(urls[0]!);
  copyFileSync(file('first.key'), file('http.key'));
  writeFileSync(file('tokens'), 'no\n');
  both[0].child.kill('SIGHUP');
  await both[0].line(/^SIGHUP: .*http.key are no pair.*what was read last goes on CERTIFICATE_UNREADABLE$/);
  await both[0].line(/^SIGHUP: the token file .*what was read last goes on HTTP_TOKEN_FILE$/);
  expect(await fingerprint(urls[0]!)).toBe(last);
  expect(JSON.stringify(both.map((one) => one.lines()))).not.toMatch(/sesame|second-token/);
});
