// `seq service print` and what `seq run` tells a service manager. The unit is checked by systemd's own tools, the signs
// of life by a real notify socket. Manifests: what they must say, and that no secret is in them.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startSequencer } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const SECRET = 'hunter2-hunter2';
const files = Object.fromEntries(['password', 'token', 'ca.pem'].map((name) => [name, join(home, name)]));
for (const path of Object.values(files)) writeFileSync(path, `${SECRET}\n`);
const NODES = ['r1', 'r2', 'r3'].map((id, at) => `      - { id: ${id}, url: rediss://10.0.0.${at + 1}:6379 }`);

function context(lines: string[]): void {
  const folder = join(home, '.config', 'seq');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'config.yaml'),
    ['current: prod', 'contexts:', '  prod:', '    nodes:', ...NODES, ...lines.map((line) => `    ${line}`), ''].join(
      '\n',
    ),
  );
}

const PLAIN = [
  'username: seq',
  `passwordFile: ${files['password']}`,
  `tls: { ca: ${files['ca.pem']} }`,
  'lane: orders',
  'settings: { ttl: 5s, nodeTimeout: 200ms }',
];
const TOKEN = ['--http-token-file', files['token']!, '--http', '0.0.0.0:7070'];

async function print(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runSeq(home, ['service', 'print', ...args], {
    env: { XDG_CONFIG_HOME: join(home, '.config') },
  });
  expect(code, stderr).toBe(0);
  return stdout;
}

describe('service print', () => {
  test('systemd: verify finds nothing, the exposure is at most 2.0, and every hint for the context is there', async () => {
    context(PLAIN);
    const unit = await print('systemd', ...TOKEN);
    const path = join(home, 'seq-prod.service');
    writeFileSync(path, unit);
    const verified = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
    expect([verified.status, verified.stderr]).toEqual([0, '']);
    const judged = spawnSync('systemd-analyze', ['security', '--offline=true', path], { encoding: 'utf8' });
    const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(judged.stdout)?.[1]);
    expect(exposure, judged.stdout).toBeLessThanOrEqual(2);
    for (const line of [
      'Type=notify',
      'WatchdogSec=30s',
      'DynamicUser=yes',
      'Environment="SEQ_NODE=r1=rediss://10.0.0.1:6379 r2=rediss://10.0.0.2:6379 r3=rediss://10.0.0.3:6379"',
      'Environment=SEQ_LANE=orders',
      'Environment=SEQ_TTL=5s',
      'Environment=SEQ_NODE_TIMEOUT=200ms',
      'Environment=SEQ_PASSWORD_FILE=%d/redis-password',
      `LoadCredential=redis-password:${files['password']}`,
      `LoadCredential=http-token:${files['token']}`,
      'StateDirectory=seq-prod',
    ])
      expect(unit.split('\n')).toContain(line);
  });

  test.each(['systemd', 'compose', 'kubernetes'])('%s: says where secrets are, and holds none', async (kind) => {
    for (const secret of [`passwordFile: ${files['password']}`, `passwordCommand: "echo ${SECRET}"`]) {
      context(['username: seq', secret]);
      const text = await print(kind, ...TOKEN);
      expect(text).toContain('redis-password');
      expect(text).not.toContain(SECRET);
      if (secret.startsWith('passwordCommand')) expect(text).toContain('# /etc/seq/redis-password must hold');
    }
  });

  test('callers need a certificate → the authority is a secret, and probes ask a port that wants none', async () => {
    context(PLAIN);
    const ca = files['ca.pem']!;
    const secure = [...TOKEN, '--http-cert', ca, '--http-key', ca, '--http-client-ca', ca];
    const unit = (await print('systemd', ...secure)).split('\n');
    expect(unit).toContain('Environment=SEQ_HTTP_CLIENT_CA=%d/http-client-ca');
    expect(unit).toContain(`LoadCredential=http-client-ca:${ca}`);

    const made = parse(await print('compose', ...secure)) as {
      services: Record<string, { environment: Record<string, string>; healthcheck: { test: string[] } }>;
    };
    const { environment, healthcheck } = made.services['seq-a']!;
    expect(environment).toMatchObject({
      SEQ_HTTP_CLIENT_CA: '/run/secrets/http-client-ca',
      SEQ_ADMIN: '127.0.0.1:7071',
    });
    expect(healthcheck.test.join(' ')).toContain("port:7071,path:'/livez'");

    const all = parseAllDocuments(await print('kubernetes', ...secure)).map((one) => one.toJS() as { kind: string });
    expect(all.find(({ kind }) => kind === 'ConfigMap')).toMatchObject({ data: { SEQ_ADMIN: '0.0.0.0:7071' } });
    expect(all.find(({ kind }) => kind === 'StatefulSet')).toMatchObject({
      spec: {
        template: {
          spec: {
            containers: [
              {
                ports: [{ name: 'http' }, { name: 'admin', containerPort: 7071 }],
                livenessProbe: { httpGet: { port: 'admin', scheme: 'HTTPS' } },
                readinessProbe: { exec: { command: [expect.anything(), '-e', expect.stringContaining('port:7071')] } },
              },
            ],
          },
        },
      },
    });
  });

  test('service: nodes of different credentials → refused by name', async () => {
    context(['username: seq', `passwordFile: ${files['password']}`]);
    const path = join(home, '.config/seq/config.yaml');
    writeFileSync(path, readFileSync(path, 'utf8').replace('{ id: r2,', '{ id: r2, username: other,'));
    const { code, stdout } = await runSeq(home, ['service', 'print', 'systemd', '-o', 'json'], {
      env: { XDG_CONFIG_HOME: join(home, '.config') },
    });
    expect([code, (JSON.parse(stdout) as { error: { code: string } }).error.code]).toEqual([78, 'CREDENTIALS_DIFFER']);
  });

  test('service: a container without a token is refused, because it serves beyond its own loopback', async () => {
    context(PLAIN);
    const { code, stderr } = await runSeq(home, ['service', 'print', 'compose'], {
      env: { XDG_CONFIG_HOME: join(home, '.config') },
    });
    expect(code).toBe(78);
    expect(stderr).toContain('HTTP_NOT_LOOPBACK');
  });

  test('compose: each sequencer has its own id, store and port; it may write nothing else', async () => {
    context(PLAIN);
    const made = parse(await print('compose', ...TOKEN)) as {
      services: Record<string, Record<string, unknown> & { environment: Record<string, string> }>;
      volumes: object;
      secrets: Record<string, { file: string }>;
    };
    expect(Object.keys(made.services)).toEqual(['seq-a', 'seq-b']);
    expect(made.volumes).toEqual({ 'seq-a': {}, 'seq-b': {} });
    expect(made.secrets['redis-password']).toEqual({ file: files['password'] });
    for (const [id, one] of Object.entries(made.services)) {
      expect(one.environment).toMatchObject({
        SEQ_ID: id,
        SEQ_STORE: '/var/lib/seq',
        SEQ_TTL: '5s',
        SEQ_ADVERTISE: `http://${id}:7070`,
        SEQ_PASSWORD_FILE: '/run/secrets/redis-password',
      });
      expect(one).toMatchObject({ read_only: true, cap_drop: ['ALL'], volumes: [`${id}:/var/lib/seq`] });
    }
    const ports = Object.values(made.services).flatMap((one) => one['ports'] as string[]);
    expect(ports).toEqual(['127.0.0.1:7070:7070', '127.0.0.1:7071:7070']);
  });

  test('kubernetes: pods on different hosts, probes, drain, budgets; selectors and names fit together', async () => {
    context(PLAIN);
    const documents = parseAllDocuments(await print('kubernetes', ...TOKEN, '--node-labels', 'app=redis')).map(
      (one) => one.toJS() as { kind: string; metadata: { name: string }; spec?: object; data?: object },
    );
    expect(documents.map(({ kind, metadata }) => [kind, metadata.name].join(' '))).toEqual([
      'ConfigMap seq-prod',
      'Service seq-prod-peers',
      'Service seq-prod',
      'StatefulSet seq-prod',
      'PodDisruptionBudget seq-prod',
      'PodDisruptionBudget seq-prod-nodes',
    ]);
    const [config, peers, , set, budget, nodes] = documents.map(({ spec, data }) => spec ?? data) as unknown as [
      Record<string, string>,
      { clusterIP: string; selector: object },
      object,
      {
        replicas: number;
        serviceName: string;
        selector: { matchLabels: object };
        template: { metadata: { labels: object }; spec: unknown };
      },
      { maxUnavailable: number; selector: { matchLabels: object } },
      { maxUnavailable: number; selector: { matchLabels: object } },
    ];
    const { labels } = set.template.metadata;
    expect([set.selector.matchLabels, budget.selector.matchLabels, peers.selector]).toEqual([labels, labels, labels]);
    expect(set).toMatchObject({ replicas: 3, serviceName: 'seq-prod-peers' });
    expect(peers.clusterIP).toBe('None');
    expect([budget.maxUnavailable, nodes]).toEqual([
      1,
      { maxUnavailable: 1, selector: { matchLabels: { app: 'redis' } } },
    ]);
    expect(config).toMatchObject({ SEQ_LANE: 'orders', SEQ_PASSWORD_FILE: '/run/secrets/redis-password' });
    const pod = set.template.spec as unknown as {
      terminationGracePeriodSeconds: number;
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { topologyKey: string }[] } };
      containers: { livenessProbe: { httpGet: object }; readinessProbe: { exec: { command: string[] } } }[];
      volumes: { name: string; secret?: { secretName: string } }[];
    };
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(30);
    expect(pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution).toMatchObject([
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
    ]);
    expect(pod.containers[0]?.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'http', scheme: 'HTTP' });
    expect(pod.containers[0]?.readinessProbe.exec.command.join(' ')).toContain('/readyz');
    expect(pod.volumes.find(({ name }) => name === 'secrets')?.secret?.secretName).toBe('seq-prod-secrets');
  });
});

/** Prints each message to the socket of a service manager as one line. */
const LISTENER = `
import socket, sys
own = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
own.bind(sys.argv[1])
print('bound', flush=True)
while True:
    for line in own.recv(4096).decode().splitlines():
        print(line, flush=True)
`;

describe('notify', () => {
  let lab: PrivateCluster;
  const listeners: ChildProcess[] = [];
  beforeAll(async () => {
    lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 500, blockTimeMs: 100 });
  }, STANDSTILL_MS);
  afterAll(async () => {
    for (const listener of listeners) listener.kill();
    await lab?.close();
  });

  async function listen(name: string): Promise<{ socket: string; heard: () => string[] }> {
    const socket = join(home, name);
    const listener = spawn('python3', ['-c', LISTENER, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    listeners.push(listener);
    let text = '';
    listener.stdout.on('data', (data: Buffer) => (text += data.toString()));
    await vi.waitFor(() => expect(text).toContain('bound'), { timeout: STANDSTILL_MS, interval: 20 });
    return { socket, heard: () => text.split('\n').filter((line) => /^(READY|WATCHDOG|STOPPING)=/.test(line)) };
  }
  const args = (id: string) => [
    ...['--id', id, '--store', join(home, id), '--http', '127.0.0.1:0', '--ttl', '500ms', '--block-time', '100ms'],
    ...lab.nodeFlags.flatMap((node) => ['--node', node]),
  ];

  test('notify: ready when it serves, alive while its loop turns, stopping at SIGTERM', async () => {
    const { socket, heard } = await listen('one.sock');
    const one = startSequencer(home, args('seq-n'), { env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '600000' } });
    await vi.waitFor(() => expect(heard()[0]).toBe('READY=1'), { timeout: STANDSTILL_MS, interval: 20 });
    expect((await fetch(`${await one.url()}/livez`)).status).toBe(200);
    await vi.waitFor(() => expect(heard().filter((line) => line === 'WATCHDOG=1').length).toBeGreaterThan(3), {
      timeout: STANDSTILL_MS,
      interval: 50,
    });
    expect(await one.stop()).toBe(0);
    await vi.waitFor(() => expect(heard()).toContain('STOPPING=1'), { timeout: STANDSTILL_MS, interval: 20 });
    const order = heard().filter((line, at, all) => all.indexOf(line) === at);
    expect(order).toEqual(['READY=1', 'WATCHDOG=1', 'STOPPING=1']);
  });

  test('notify: while no quorum answers → not ready, and still no sign of life is owed', async () => {
    const { socket, heard } = await listen('two.sock');
    const none = ['--id', 'seq-w', '--store', join(home, 'seq-w'), '--node', 'redis://127.0.0.1:1'];
    const one = startSequencer(home, none, { env: { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '600000' } });
    await one.line(/waiting for a quorum/);
    expect(heard()).toEqual([]);
    expect(await one.stop()).toBe(0);
  });

  test('notify: the watchdog is another process’ → ready, and no sign of life', async () => {
    const { socket, heard } = await listen('three.sock');
    const env = { NOTIFY_SOCKET: socket, WATCHDOG_USEC: '100', WATCHDOG_PID: '1' };
    const one = startSequencer(home, args('seq-p'), { env });
    await vi.waitFor(() => expect(heard()).toContain('READY=1'), { timeout: STANDSTILL_MS, interval: 20 });
    expect(await one.stop()).toBe(0);
    await vi.waitFor(() => expect(heard()).toContain('STOPPING=1'), { timeout: STANDSTILL_MS, interval: 20 });
    expect(heard()).toEqual(['READY=1', 'STOPPING=1']);
  });
});
