// `seq watch` in a real terminal against a real cluster: what it says is what `seq status` says; keys; sizes; every
// way out.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';
import { Terminal } from '../support/tmux.js';

let lab: PrivateCluster;
const home = newHome();
let terminal: Terminal | undefined;

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: 1500, blockTimeMs: 300 });
});
afterAll(async () => {
  terminal?.close();
  await lab?.close();
});

const flags = () => [...lab.nodeFlags.flatMap((flag) => ['--node', flag]), '--node-timeout', '1s'];
const status = async () => JSON.parse((await runSeq(home, ['status', ...flags(), '-o', 'json'])).stdout).data;
const command = (more = '') => `${process.execPath} ${bin} watch ${flags().join(' ')} --interval 250ms ${more}`;

async function open(columns: number, rows: number, more: NodeJS.ProcessEnv = {}): Promise<Terminal> {
  terminal?.close();
  // CI is set on purpose: a real terminal counts as one in every environment.
  terminal = new Terminal(
    columns,
    rows,
    environment(home, { LANG: 'C.UTF-8', CI: '1', CONTINUOUS_INTEGRATION: '1', ...more }),
    home,
  );
  await terminal.until('a prompt', (s) => s.some((row) => row.startsWith('$')));
  return terminal;
}
const verdict = (screen: string[]) => /^ \[.*?\]\s+(OK|WARN|CRIT|UNKNOWN)\s/.exec(screen[0] ?? '')?.[1];
const holder = (screen: string[]) => /holder (\S+) +epoch (\d+)/.exec(screen.join('\n'))?.slice(1, 3).join(' ');

/** Screen and status must come to agree: each changes on its own between two readings. */
async function agrees(t: Terminal, expected: string): Promise<void> {
  const end = performance.now() + 20_000;
  for (;;) {
    const now = await status();
    const screen = t.screen();
    const [ours, theirs] = [
      `${verdict(screen)} ${holder(screen)}`,
      `${now.verdict} ${now.leader === null ? undefined : `${now.leader.id} ${now.leader.epoch}`}`,
    ];
    if (ours === theirs && now.verdict === expected) return;
    if (performance.now() > end)
      throw new Error(`watch says ${ours}, status says ${theirs}, expected ${expected}\n${screen.join('\n')}`);
  }
}

describe('watch: a real terminal', () => {
  test(
    'watch: a node paused and resumed, a leader killed → verdict, leader and margin of `seq status`, ' + 'events, next',
    async () => {
      const t = await open(100, 30);
      t.type(command());
      await agrees(t, 'OK');
      await lab.pause('r3');
      await t.until(
        'r3 down',
        (s) =>
          verdict(s) === 'WARN' &&
          s.some((row) => /r3 +DOWN/.test(row)) &&
          s.some((row) => row.includes('may lose 0')) &&
          s.some((row) => /^ next: redis-cli/.test(row)),
      );
      await agrees(t, 'WARN');
      // Nobody asked for the bell.
      expect(t.bells()).toBe(0);
      lab.unpause('r3');
      await t.until('r3 back', (s) => s.some((row) => row.includes('r3 back after')));
      await agrees(t, 'OK');
      const leader = (await status()).leader.id as string;
      await lab.kill(leader);
      const other = leader === 'seq-a' ? 'seq-b' : 'seq-a';
      await t.until('the successor', (s) => holder(s)?.startsWith(other));
      await lab.startProcess(leader);
      await agrees(t, 'OK');
      t.keys('6');
      t.keys('g', 'Enter');
      await t.until('an event opened', (s) => s.some((row) => row.includes('the cluster at that moment')));
      t.keys('Escape');
      await t.until('and closed', (s) => s.some((row) => row.includes('SEQUENCERS')));
      t.keys('o');
      await t.until('a snapshot', (s) => s.some((row) => row.includes('written: seq-watch-')));
      const written = readdirSync(home).find((name) => name.startsWith('seq-watch-'))!;
      expect(JSON.parse(readFileSync(join(home, written), 'utf8'))).toMatchObject({
        apiVersion: 'seq/v1',
        ok: true,
        data: { view: { verdict: 'OK' } },
      });
      t.keys('q');
      await t.until('the end', () => t.fact('alternate_on') === '0');
    },
  );

  test('watch: m, then a node paused → the bell rings, and m shows what changed since', async () => {
    const t = await open(100, 30);
    t.type(command('--bell'));
    await agrees(t, 'OK');
    t.keys('m');
    await t.until('marked', (s) => s.some((row) => row.includes('m shows what changes from here')));
    // The watch may have seen the cluster while it started. From here on it is well.
    const rung = t.bells();
    await lab.pause('r3');
    await t.until('WARN', (s) => verdict(s) === 'WARN' && s.some((row) => /r3 +DOWN/.test(row)));
    await t.until('a bell', () => t.bells() > rung);
    t.keys('m');
    await t.until('what changed', (s) => s.some((row) => /node r3 +OK, now DOWN/.test(row)));
    lab.unpause('r3');
    await t.until('nothing but events', (s) => s.some((row) => /r3 back after/.test(row)));
    t.keys('m');
    await t.until('marked anew', (s) => s.some((row) => row.includes('SEQUENCERS')));
    t.keys('q');
    await t.until('the end', () => t.fact('alternate_on') === '0');
  });

  test('watch: 140×40 → 60×16 → 40×8 → 20×4 → 140×40 → the same screen, without a stray character', async () => {
    const t = await open(140, 40);
    t.type(command());
    await t.until(
      'OK',
      (s) =>
        verdict(s) === 'OK' &&
        s.some((row) => row.includes('AGREEMENT')) &&
        s.some((row) => /A +A +A +committed/.test(row)),
    );
    t.keys('Space');
    const before = await t.until('frozen', (s) => s[0]?.includes('FROZEN') && s);
    for (const [columns, rows, seen] of [
      [60, 16, '┌› NODES'],
      [40, 8, 'NODE STATE'],
      [20, 4, 'OK'],
    ] as const) {
      t.resize(columns, rows);
      const small = await t.until(
        `${columns}×${rows}`,
        (s) =>
          s.length === rows &&
          s.at(-1) === '' &&
          s.some((row) => row.includes(seen)) &&
          !s.some((row) => row.includes('LEASE')) &&
          s,
      );
      expect(Math.max(...small.map((row) => [...row].length))).toBeLessThanOrEqual(columns);
    }
    t.resize(140, 40);
    // Everything but the banner, whose clock changes.
    await t.until('the same again', (s) => JSON.stringify(s.slice(1)) === JSON.stringify(before.slice(1)));
    t.keys('q');
    await t.until('the end', () => t.fact('alternate_on') === '0');
  });

  test.each([
    ['q', 0],
    ['Ctrl-C', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['a throw', 7],
    ['a throw in a panel', 70],
  ])('watch: %s → terminal restored, three lines, exit %i', async (way, code) => {
    // On a signal: while nothing is drawn, or while a panel is drawn (or the last lines, which also draw the banner).
    const thrown = 'throw new Error(`boom`)';
    const inPanel =
      'const own = Date.prototype.toISOString; Date.prototype.toISOString = function () { if ' +
      `(/\\bbanner\\b/.test(new Error().stack)) ${thrown}; return own.call(this); }`;
    const throws = way.startsWith('a throw');
    const t = await open(
      80,
      24,
      throws
        ? {
            NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`process.on('SIGUSR2', () => { ${way === 'a throw' ? thrown : inPanel} })`)}`,
          }
        : {},
    );
    t.type('echo before; stty -a | grep -o " echo " | head -1');
    await t.until(
      'the prompt after it',
      (s) =>
        s.some((row) => row.trim() === 'before') &&
        s
          .filter((row) => row.trim() !== '')
          .at(-1)
          ?.trim() === '$',
    );
    t.type(`sh -c 'echo $$ > pid; exec ${command()}'; echo code=$?`);
    await t.until(
      'OK, and all that follows from it',
      (s) => verdict(s) === 'OK' && s.some((row) => /^ next: nothing to do/.test(row)),
    );
    expect([t.fact('alternate_on'), t.fact('cursor_flag')]).toEqual(['1', '0']);
    const pid = Number(readFileSync(join(home, 'pid'), 'utf8'));
    if (way === 'q') t.keys('q');
    else if (way === 'Ctrl-C') t.keys('C-c');
    else process.kill(pid, throws ? 'SIGUSR2' : (way as NodeJS.Signals));
    const screen = await t.until('code', (s) => s.some((row) => /^code=\d/.test(row)) && s);
    expect([t.fact('alternate_on'), t.fact('cursor_flag'), t.fact('wrap_flag')]).toEqual(['0', '1', '1']);
    const text = screen.join('\n');
    expect(text).toMatch(
      /before\n[\s\S]*\nOK {2}seq-[ab] leads[\s\S]*\nleader: seq-[ab], epoch \d+\nnext: nothing to do\n/,
    );
    if (way !== 'a throw') expect(text).toContain(`code=${code}`);
    else expect(text).toMatch(/boom/);
    if (way === 'a throw in a panel')
      expect(text).toMatch(/BUG: Error: boom[^\n]*\n {2}why: [^\n]*\n {2}changed: +nothing\n {2}next: /);
    t.type('stty -a | grep -c " -echo "');
    await t.until('the shell echoes', (s) => s.some((row) => row.trim() === '0'));
  });

  test('watch: Ctrl-Z → the shell; fg → the screen again', async () => {
    const t = await open(80, 24);
    t.type('set -m');
    t.type(command());
    await t.until('OK', (s) => verdict(s) === 'OK');
    t.keys('C-z');
    await t.until(
      'the shell',
      (s) => t.fact('alternate_on') === '0' && s.some((row) => row.includes('Stopped')) && s.at(-1) !== undefined,
    );
    t.type('echo here-$((40+2))');
    await t.until('an answer', (s) => s.some((row) => row.includes('here-42')));
    t.type('fg');
    await t.until('back', (s) => t.fact('alternate_on') === '1' && verdict(s) === 'OK');
    t.keys('q');
    await t.until('the end', () => t.fact('alternate_on') === '0');
  });

  test('watch: no colour and no Unicode where they are not wanted', async () => {
    const t = await open(80, 24, { NO_COLOR: '1', LANG: 'C' });
    t.type(command('--count 4'));
    await t.until('a drawn frame in ASCII', (s) => s.some((row) => /^\+- LEASE -+\+/.test(row)));
    await t.until('its end', (s) => t.fact('alternate_on') === '0' && s.some((row) => row.startsWith('leader: ')));
  });
});

describe('watch: no terminal', () => {
  test('watch: a pipe → what `seq status --watch -o ndjson` prints', async () => {
    const ran = await runSeq(home, ['watch', ...flags(), '--count', '2', '--interval', '250ms']);
    expect(ran.code).toBe(0);
    expect(
      ran.stdout
        .trim()
        .split('\n')
        .map((line) => {
          const { kind, data } = JSON.parse(line);
          return [kind, data.verdict];
        }),
    ).toEqual([
      ['status', 'OK'],
      ['status', 'OK'],
    ]);
  });

  test('watch: --once → one frame as text; -o json → the envelope of status', async () => {
    const ran = await runSeq(home, ['watch', ...flags(), '--once'], { env: { COLUMNS: '80', LINES: '24' } });
    expect(ran.code).toBe(0);
    expect(ran.stdout).toMatch(/^ \[.*\] +OK +seq-[ab] leads/);
    expect(ran.stdout).not.toContain('\u001b');
    expect(ran.stdout.split('\n').length).toBe(24);
    expect(JSON.parse((await runSeq(home, ['watch', ...flags(), '--once', '-o', 'json'])).stdout).data.verdict).toBe(
      'OK',
    );
    expect((await runSeq(home, ['watch', ...flags(), '--interval', '10ms'])).code).toBe(64);
  });

  test('watch: --from-bundle → the frame of that moment, marked; a pipe gets one envelope', async () => {
    const file = join(home, 'then.bundle');
    expect((await runSeq(home, ['stream', 'export', ...flags(), '--file', file])).code).toBe(0);
    const ran = await runSeq(home, ['watch', '--from-bundle', file, '--once'], {
      env: { COLUMNS: '100', LINES: '30' },
    });
    expect(ran.code).toBe(0);
    expect(ran.stdout).toMatch(/^ \[.*\] +(OK|WARN|CRIT) .*BUNDLE \d{4}-\d\d-\d\d/);
    expect(ran.stdout).toMatch(/r3 +OK/);
    expect(JSON.parse((await runSeq(home, ['watch', '--from-bundle', file])).stdout).kind).toBe('status');
  });
});
