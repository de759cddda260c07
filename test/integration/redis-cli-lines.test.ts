// Each redis-cli line that seq shows is run as it stands: behind TLS with a client certificate and a password, and over a
// unix socket.
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { makeCertificates } from '../support/certificates.js';
import { freePort } from '../../src/lab/free-port.js';
import { startRedis } from '../support/redis-server.js';
import { environment, newHome, runSeq } from '../support/spawn-seq.js';

const shell = async (line: string, env: NodeJS.ProcessEnv): Promise<string> =>
  (await promisify(execFile)('/bin/sh', ['-c', line], { env })).stdout.trim();

test('redis-cli: behind TLS and a password, what doctor and status advise is done by the line itself', async () => {
  const home = newHome();
  const dir = makeCertificates(['server', 'client']);
  const file = (name: string): string => join(dir, name);
  const port = await freePort();
  const server = await startRedis({
    args: [
      ...['--tls-port', String(port), '--tls-auth-clients', 'yes', '--requirepass', 'secret'],
      ...['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')],
      ...['--tls-ca-cert-file', file('ca.crt')],
    ],
  });
  writeFileSync(file('password'), 'secret\n');
  const env = {
    SEQ_TLS_CA: file('ca.crt'),
    SEQ_TLS_CERT: file('client.crt'),
    SEQ_TLS_KEY: file('client.key'),
    SEQ_PASSWORD_FILE: file('password'),
  };
  try {
    const node = ['--node', `r1=rediss://127.0.0.1:${port}`, '--node-timeout', '2s'];
    expect((await runSeq(home, ['cluster', 'init', ...node], { env })).stderr).not.toContain('NODE_');
    const doctor = await runSeq(home, ['doctor', ...node, '-o', 'json'], { env });
    const { findings } = (JSON.parse(doctor.stdout) as { data: { findings: { check: string; fix: string }[] } }).data;
    const lines = findings.map(({ fix }) => fix).filter((fix) => fix.includes('redis-cli'));
    expect(lines).toContainEqual(expect.stringMatching(/config set appendonly yes$/));
    for (const line of lines) {
      expect(line).not.toContain('secret');
      expect(await shell(line, environment(home, env)), line).toBe('OK');
    }
    const again = await runSeq(home, ['doctor', ...node], { env });
    expect(again.stdout).not.toMatch(/\tpersistence\t/);
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}, 120_000);

test('redis-cli: over a unix socket', async () => {
  const home = newHome();
  const socket = join(home, 'redis.sock');
  const server = await startRedis({ args: ['--unixsocket', socket] });
  try {
    const node = ['--node', `r1=unix:${socket}`, '--node-timeout', '2s'];
    expect((await runSeq(home, ['cluster', 'init', ...node])).code).toBe(0);
    const doctor = await runSeq(home, ['doctor', ...node]);
    const line = /redis-cli -s .* config set appendonly yes/.exec(doctor.stdout)?.[0] ?? doctor.stdout;
    expect(await shell(line, environment(home))).toBe('OK');
  } finally {
    await server.stop();
  }
}, 120_000);
