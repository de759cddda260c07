// A million heights on each of five real servers, merged height by height: in bounded memory, with progress, every
// height told. The peak is what the kernel counted for the process. SEQ_LONG_HEIGHTS makes it smaller.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome } from '../support/spawn-seq.js';
import { loadStreams } from '../support/stream-loader.js';

const HEIGHTS = Number(process.env['SEQ_LONG_HEIGHTS'] ?? 1_000_000);
const NODES = 5;
const MOST_BYTES = 200 * 1024 * 1024;
const CLUSTER = 'c0ffee00c0ffee00.1';
const PEAK =
  "data:text/javascript,process.on('exit',()=>process.stderr.write('\\npeak " +
  "'+process.resourceUsage().maxRSS*1024+'\\n'))";
let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: NODES }, () => startRedis()));
  const nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  await loadStreams({
    nodes,
    ports: servers.map((server) => server.port),
    cluster: CLUSTER,
    heights: HEIGHTS,
    dataBytes: 32,
  });
  await Promise.all(nodes.map((node) => node.close()));
}, 900_000);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

/** Runs it as a script would, reading line by line; what it printed last, how many lines, its peak and its progress. */
async function run(args: string[]): Promise<{
  code: number | null;
  lines: number;
  last: string;
  peakBytes: number;
  progress: string[];
  seconds: number;
}> {
  const startedAt = performance.now();
  const target = servers.flatMap((server, i) => ['--node', `r${i + 1}=${server.url}`]);
  const child = spawn(process.execPath, ['--import', PEAK, bin, ...args, ...target, '--node-timeout', '5s'], {
    env: environment(newHome()),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [lines, last, said] = [0, '', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  for await (const line of createInterface({ input: child.stdout })) [lines, last] = [lines + 1, line];
  const code = child.exitCode ?? (await new Promise<number | null>((resolve) => child.on('close', resolve)));
  await new Promise<void>((resolve) => {
    if (child.stderr.readableEnded) resolve();
    else child.stderr.on('end', resolve);
  });
  const peakBytes = Number(/peak (\d+)/.exec(said)?.[1]);
  const progress = said.split('\n').filter((line) => line.includes(' of '));
  process.stdout.write(
    `${args.join(' ')}: ${lines} lines, peak ${(peakBytes / 1048576).toFixed(0)} MiB, ` +
      `${((performance.now() - startedAt) / 1000).toFixed(0)} s, ${progress.length} lines of progress\n`,
  );
  return { code, lines, last, peakBytes, progress, seconds: (performance.now() - startedAt) / 1000 };
}

describe('merge', () => {
  test('inspect: every height of five nodes as ndjson → each told, bounded memory, progress', async () => {
    const { code, lines, last, peakBytes, progress, seconds } = await run([
      'stream',
      'inspect',
      '--from',
      '1',
      '--limit',
      String(HEIGHTS),
      '-o',
      'ndjson',
      '--timeout',
      '30m',
    ]);
    expect([code, lines, (JSON.parse(last) as { height: string; class: string; copies: number }).height]).toEqual([
      0,
      HEIGHTS,
      '1',
    ]);
    expect(peakBytes).toBeLessThan(MOST_BYTES);
    if (seconds > 25) expect(progress.length).toBeGreaterThan(0);
  }, 1_800_000);

  test('verify: every entry of five nodes → OK, bounded memory', async () => {
    const { code, last, peakBytes } = await run(['stream', 'verify', '-o', 'json', '--exit-code']);
    expect([code, last]).toEqual([0, '}']);
    expect(peakBytes).toBeLessThan(MOST_BYTES);
  }, 1_800_000);
});
