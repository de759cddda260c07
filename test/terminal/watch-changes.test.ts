// An open `seq watch`, and `seq status --watch` beside it, while the cluster changes under them: new members, a member
// less, a later generation. What they say is what a new `seq status` says.
import { spawn } from 'node:child_process';
import { afterEach, expect, test } from 'vitest';
import type { Lab } from '../support/lab.js';
import { withLab } from '../support/lab.js';
import { startRedis } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';
import { Terminal } from '../support/tmux.js';

const home = newHome();
const TIMING = ['--interval', '500ms', '--node-timeout', '1s'];
let terminal: Terminal | undefined;
afterEach(() => {
  terminal?.close();
  terminal = undefined;
});

interface Status {
  verdict: string;
  cluster: string;
  leader: { id: string };
  configured: number;
  quorum: number;
  margin: number;
  nodes: { id: string; state: string }[];
}

const nodesOf = (lab: Lab) => lab.nodeFlags.flatMap((node) => ['--node', node]);
async function seq(lab: Lab, ...args: string[]): Promise<{ code: number | null; data: Record<string, unknown> }> {
  const { code, stdout } = await runSeq(home, [...args, ...nodesOf(lab), '--node-timeout', '1s', '--json']);
  return { code, data: (JSON.parse(stdout) as { data: Record<string, unknown> }).data };
}

async function open(lab: Lab): Promise<Terminal> {
  terminal = new Terminal(140, 40, environment(home, { LANG: 'C.UTF-8' }), home);
  await terminal.until('a prompt', (screen) => screen.some((row) => row.startsWith('$')));
  terminal.type([process.execPath, bin, 'watch', ...nodesOf(lab), ...TIMING].join(' '));
  return terminal;
}

/** `OK`, 'write 3/3 need 2', and the state of each node. */
function picture(screen: string[]): string {
  const [first = ''] = screen;
  const nodes = screen.flatMap((row) => /^│ [ ›] (r\d) +([A-Z]+) /.exec(row)?.slice(1, 3).join(' ') ?? []);
  return [/ (OK|WARN|CRIT|UNKNOWN) /.exec(first)?.[1], /write \S+ need \d+/.exec(first)?.[0], ...nodes.sort()].join(
    ', ',
  );
}

function pictureOf({ verdict, configured, quorum, margin, nodes }: Status): string {
  const votes = `write ${Math.max(0, margin + quorum)}/${configured} need ${quorum}`;
  return [verdict, votes, ...nodes.map(({ id, state }) => `${id} ${state}`).sort()].join(', ');
}

/** `seq status --watch`, and the last answer that it has printed. */
function statusWatch(lab: Lab): { last(): Status | undefined; stop(): Promise<number | null> } {
  const args = ['status', '--watch', '-o', 'ndjson', ...nodesOf(lab), ...TIMING];
  const child = spawn(process.execPath, [bin, ...args], {
    env: environment(home),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  return {
    last: () => {
      const line = printed.split('\n').at(-2);
      return line === undefined ? undefined : (JSON.parse(line) as { data: Status }).data;
    },
    stop: () => {
      child.kill('SIGINT');
      return ended;
    },
  };
}

test('a resize under them → the new members are asked and counted, a removed one is gone', async () => {
  const r4 = await startRedis();
  try {
    await withLab({ nodes: 3, sequencers: 2 }, async (lab) => {
      await lab.waitForHeight(await lab.waitForLeader(), 4);
      const beside = statusWatch(lab);
      const screen = await open(lab);
      const agree = async (expected: string): Promise<void> => {
        await screen.until(expected, (rows) => picture(rows) === expected, 60_000);
        await lab.waitFor(`status --watch: ${expected}`, 60_000, () => {
          const last = beside.last();
          return last !== undefined && pictureOf(last) === expected ? true : undefined;
        });
        expect(pictureOf((await seq(lab, 'status')).data as unknown as Status)).toBe(expected);
      };
      await agree('OK, write 3/3 need 2, r1 OK, r2 OK, r3 OK');
      const added = await seq(lab, 'cluster', 'resize', '--add', `r4=${r4.url}`, '--yes', '--timeout', '2m');
      expect(added.code, JSON.stringify(added.data)).toBe(0);
      await agree('OK, write 4/4 need 3, r1 OK, r2 OK, r3 OK, r4 OK');
      await screen.until('the event', (rows) => rows.some((row) => row.includes('the members have changed, new: r4')));
      const removed = await seq(lab, 'cluster', 'resize', '--remove', 'r4', '--yes', '--timeout', '2m');
      expect(removed.code, JSON.stringify(removed.data)).toBe(0);
      await agree('OK, write 3/3 need 2, r1 OK, r2 OK, r3 OK');
      await screen.until('the event', (rows) => rows.some((row) => row.includes('removed: r4')));
      expect(await beside.stop()).toBe(130);
    });
  } finally {
    await r4.stop();
  }
}, 300_000);

test('a power cut and `seq cluster recover` under it → the later generation is followed, and that is said', async () => {
  await withLab({ nodes: 3, sequencers: 2, persist: 'always' }, async (lab) => {
    await lab.waitForHeight(await lab.waitForLeader(), 4);
    const before = (await seq(lab, 'status')).data as unknown as Status;
    const screen = await open(lab);
    const healthy = 'OK, write 3/3 need 2, r1 OK, r2 OK, r3 OK';
    await screen.until(healthy, (rows) => picture(rows) === healthy);
    await Promise.all(lab.nodes.map(({ name }) => lab.kill(name)));
    await screen.until('no node answers', (rows) => /^CRIT/.test(picture(rows)));
    await Promise.all(lab.nodes.map(({ name }) => lab.startProcess(name)));
    await screen.until('no node counts', (rows) => rows.some((row) => row.includes('seq cluster recover --dry-run')));
    const { data } = await seq(lab, 'cluster', 'recover', '--dry-run');
    const done = await seq(lab, 'cluster', 'recover', '--confirm', String(data['digest']).slice(0, 8));
    expect(done.code, JSON.stringify(done.data)).toBe(0);
    const later = before.cluster.replace(/\.1$/, '.2');
    await screen.until('it says so', (rows) => rows.some((row) => row.includes(`recovered: following ${later}`)));
    for (const { name } of lab.sequencers) {
      if (lab.state(name) !== 'dead') await lab.kill(name);
      await lab.startProcess(name);
    }
    await screen.until(healthy, (rows) => picture(rows) === healthy);
    expect((await seq(lab, 'status')).data).toMatchObject({ verdict: 'OK', cluster: later });
    // Who led before is one answer, also where the copies of a recovery bear another token.
    const ended = async () =>
      ((await seq(lab, 'history')).data['terms'] as { current: boolean; leader: string }[]).filter(
        (one) => !one.current,
      );
    const [once, again] = [await ended(), await ended()];
    expect(again).toEqual(once);
    expect(once.map(({ leader }) => leader)).toContain(String(before.leader.id));
  });
}, 300_000);
