// What an idle watch costs the servers (case 42 of test/CASES.md): a look at each node a tick, and nothing that grows
// with the stream.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { bin, environment, newHome } from '../support/spawn-seq.js';
import { Terminal } from '../support/tmux.js';

let lab: PrivateCluster;
let redis: Redis[] = [];
let terminal: Terminal | undefined;
beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 1500, blockTimeMs: 100 });
  await lab.waitForHeight('seq-a', 30);
  await lab.kill('seq-a', 'SIGTERM'); // nobody but the watch asks anything from here on
  redis = lab.nodeFlags.map((flag) => new Redis(flag.replace(/^\w+=/, '')));
});
afterAll(async () => {
  terminal?.close();
  for (const one of redis) one.disconnect();
  await lab?.close();
});

/**
 * Commands that a server has run, those inside of scripts included, without our own questions; and the bytes it has
 * sent.
 */
async function spent(one: Redis): Promise<{ commands: number; bytes: number; names: string[] }> {
  const stats = [...(await one.info('commandstats')).matchAll(/cmdstat_([\w|]+):calls=(\d+)/g)].filter(
    ([, name]) => name !== 'info',
  );
  const sent = /total_net_output_bytes:(\d+)/.exec(await one.info('stats'))!;
  return {
    commands: stats.reduce((sum, [, , calls]) => sum + Number(calls), 0),
    bytes: Number(sent[1]),
    names: stats.map(([, name]) => name!),
  };
}

test(
  'watch: nothing happens for a while → each server is asked once a tick, a few commands and few ' + 'bytes each time',
  async () => {
    const home = newHome();
    terminal = new Terminal(100, 30, environment(home, { LANG: 'C.UTF-8' }), home);
    await terminal.until('a prompt', (s) => s.some((row) => row.startsWith('$')));
    terminal.type(
      `${process.execPath} ${bin} watch ${lab.nodeFlags.map((flag) => `--node ${flag}`).join(' ')} ` +
        '--node-timeout 1s --interval 500ms',
    );
    await terminal.until('the screen', (s) => s.some((row) => /NO_LEADER|CRIT/.test(row)));
    const age = (s: string[]): boolean => s.some((row) => / r3 /.test(row));
    await terminal.until('a table', age);
    const [from, before] = [performance.now(), await Promise.all(redis.map(spent))];
    // what is measured is a length of time in which nothing happens
    await new Promise((resolve) => setTimeout(resolve, 5000));
    const [seconds, after] = [(performance.now() - from) / 1000, await Promise.all(redis.map(spent))];
    for (const [n, now] of after.entries()) {
      const commands = (now.commands - before[n]!.commands) / seconds;
      const bytes = (now.bytes - before[n]!.bytes) / seconds;
      process.stdout.write(
        `idle watch, two ticks a second, r${n + 1}: ${commands.toFixed(1)} commands and ` +
          `${Math.round(bytes)} bytes a second\n`,
      );
      expect(commands).toBeGreaterThan(0);
      expect(commands).toBeLessThan(100);
      expect(bytes).toBeLessThan(20_000);
    }
    terminal.keys('q');
    await terminal.until('the end', () => terminal!.fact('alternate_on') === '0');
  },
  300_000,
);
