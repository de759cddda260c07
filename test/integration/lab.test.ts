// `seq lab` from outside, on the built program: real processes, a home of its own, every command as a person would
// type it.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../bin/run.js', import.meta.url));
const HOMES: string[] = [];

interface Answer {
  code: number;
  stdout: string;
  stderr: string;
}
interface Row {
  name: string;
  kind: string;
  pid: number;
  port: number;
  url: string;
  state: string;
}
type Seq = (...args: string[]) => Promise<Answer>;

function home(): { seq: Seq; directory: string; config: string } {
  const at = mkdtempSync(join(tmpdir(), 'seq-lab-home-'));
  HOMES.push(at);
  const kept = Object.entries(process.env).filter(([name]) => !/^(SEQ_|VITEST|NODE_OPTIONS$|XDG_)/.test(name));
  const env = { ...Object.fromEntries(kept), HOME: at, NODE_ENV: 'production' };
  return {
    directory: join(at, '.local/state/seq/lab'),
    config: join(at, '.config/seq/config.yaml'),
    seq: (...args) =>
      new Promise((resolve) => {
        execFile(
          process.execPath,
          [PROGRAM, ...args],
          { env, cwd: at, timeout: 120_000, maxBuffer: 64 * 1024 * 1024 },
          (error, stdout, stderr) => {
            resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr });
          },
        );
      }),
  };
}

async function data(seq: Seq, ...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await seq(...args, '-o', 'json');
  expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout).data;
}

async function rows(seq: Seq): Promise<Record<string, Row>> {
  const { processes } = (await data(seq, 'lab', 'status')) as { processes: Row[] };
  return Object.fromEntries(processes.map((row) => [row.name, row]));
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : '');
  } catch {
    return false;
  }
}

async function until(what: string, limitMs: number, probe: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await probe())) if (performance.now() > end) throw new Error(`waited ${limitMs} ms for ${what}`);
}

const main = home();
const { seq } = main;

afterAll(async () => {
  for (const at of HOMES) {
    await new Promise<void>((resolve) =>
      execFile(process.execPath, [PROGRAM, 'lab', 'down'], { env: { PATH: process.env['PATH'], HOME: at } }, () =>
        resolve(),
      ),
    );
    rmSync(at, { recursive: true, force: true });
  }
}, 300_000);

it('lab: up with a context that is not there → 66, and nothing was started', async () => {
  const { seq, directory } = home();
  const { code, stderr } = await seq('lab', 'up', '-c', 'nowhere');
  expect([code, stderr]).toEqual([66, expect.stringMatching(/CONTEXT_NOT_FOUND[^]*changed: nothing/)]);
  expect(existsSync(directory)).toBe(false);
});

describe('lab: nothing there', () => {
  it('status → 0 and says so; every act → 66 with `seq lab up`', async () => {
    expect(await data(seq, 'lab', 'status')).toMatchObject({ up: false, processes: [] });
    await Promise.all(
      [['kill', 'leader'], ['pause', 'r1'], ['start', 'r1'], ['logs', 'r1'], ['demo']].map(async (args) => {
        const { code, stderr } = await seq('lab', ...args);
        expect({ args, code, up: stderr.includes('seq lab up') }).toEqual({ args, code: 66, up: true });
      }),
    );
  });

  it(
    'up: a ttl too short for the block time, too many nodes, an unknown signal → 78, 78, 64, and ' + 'nothing there',
    async () => {
      const codes = [
        await seq('lab', 'up', '--ttl', '1s', '--block-time', '1s'),
        await seq('lab', 'up', '--nodes', '99'),
        await seq('lab', 'kill', 'r1', '--signal', 'SIGNOTHING'),
      ];
      expect(codes.map(({ code }) => code)).toEqual([78, 78, 64]);
      expect(existsSync(main.directory)).toBe(false);
    },
  );
});

describe('lab: up', () => {
  let first: Record<string, Row> = {};

  beforeAll(async () => {
    const { code, stdout, stderr } = await seq('lab', 'up', '--ttl', '500ms', '--block-time', '100ms');
    expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' });
    first = await rows(seq);
  }, 300_000);

  it('up → three nodes and two sequencers run, on ports of their own', () => {
    expect(Object.values(first).map(({ name, kind, state }) => `${name} ${kind} ${state}`)).toEqual([
      'r1 redis running',
      'r2 redis running',
      'r3 redis running',
      'seq-a sequencer running',
      'seq-b sequencer running',
    ]);
    const ports = Object.values(first).map((row) => row.port);
    expect(new Set(ports).size).toBe(5);
    expect(ports).not.toContain(6379);
  });

  it('up → a commit is there, and the context `lab` leads to it', async () => {
    const status = await data(seq, 'status', '-c', 'lab');
    expect(Number(status.committed.height)).toBeGreaterThanOrEqual(1);
    expect(status.nodes.map((node: { id: string }) => node.id)).toEqual(['r1', 'r2', 'r3']);
    expect(['seq-a', 'seq-b']).toContain(status.leader.id);
  });

  it('up twice → one lab, nothing started; with other settings → 76', async () => {
    const again = await data(seq, 'lab', 'up');
    expect(again.started).toEqual([]);
    expect(again.processes).toEqual(Object.values(first));
    const { code, stdout } = await seq('lab', 'up', '--nodes', '5', '-o', 'json');
    expect({ code, error: JSON.parse(stdout).error.code }).toEqual({ code: 76, error: 'LAB_DIFFERS' });
  });

  it('pause, unpause → paused, running; again → already so', async () => {
    expect(await data(seq, 'lab', 'pause', 'r2')).toMatchObject({ name: 'r2', state: 'paused', changed: true });
    expect(await data(seq, 'lab', 'pause', 'r2')).toMatchObject({ changed: false });
    expect((await seq('lab', 'start', 'r2')).code).toBe(76);
    expect(await data(seq, 'lab', 'unpause', 'r2')).toMatchObject({ state: 'running', changed: true });
  });

  it('an unknown name → 66 with the names there are; wiping a sequencer → 66 with the nodes', async () => {
    const unknown = await seq('lab', 'kill', 'seq-z');
    expect({ code: unknown.code, names: unknown.stderr.includes('r1, r2, r3, seq-a, seq-b') }).toEqual({
      code: 66,
      names: true,
    });
    const wiped = await seq('lab', 'wipe', 'seq-a');
    expect({ code: wiped.code, names: wiped.stderr.includes('r1, r2, r3') }).toEqual({ code: 66, names: true });
  });

  it('logs → the last lines of that process', async () => {
    expect((await seq('lab', 'logs', 'r1', '--lines', '1')).stdout).toContain('Ready to accept connections');
  });

  const WITH_ARGUMENTS = [
    ['lab', 'up'],
    ['lab', 'status'],
    ['lab', 'pause', 'r3'],
    ['lab', 'unpause', 'r3'],
    ['lab', 'kill', 'r3'],
    ['lab', 'start', 'r3'],
    ['lab', 'wipe', 'r3'],
    ['lab', 'logs', 'r3'],
    ['lab', 'demo'],
    ['lab', 'down'],
  ];
  it.each(WITH_ARGUMENTS.map((args) => [args.join(' '), args] as const))(
    '%s, with a context that is not there → 66, as text and as JSON, and nothing was done',
    async (_, args) => {
      const text = await seq(...args, '-c', 'nowhere');
      const json = await seq(...args, '-c', 'nowhere', '--json');
      expect([text.code, text.stderr]).toEqual([66, expect.stringMatching(/CONTEXT_NOT_FOUND[^]*changed: nothing/)]);
      expect([json.code, JSON.parse(json.stdout).error]).toEqual([
        66,
        expect.objectContaining({ code: 'CONTEXT_NOT_FOUND', changed: 'nothing' }),
      ]);
      expect(await rows(seq)).toEqual(first);
    },
  );

  it('demo → every line once, in order, across kill -9 of the leader', async () => {
    const { code, stdout, stderr } = await seq('lab', 'demo');
    expect(`${code}\n${stdout}\n${stderr}`).toMatch(/^0\n[\s\S]*^duplicates: 0$[\s\S]*^lost: 0$/m);
    expect(stdout).toMatch(/^gap: \d+ ms from the kill to the next commit, \d+ ms of it lease$/m);
    expect(stdout).not.toContain('seq run --id');
    expect(Object.values(await rows(seq)).filter((row) => row.state === 'dead')).toHaveLength(1);
  }, 300_000);

  it.each(['status', 'check all', 'doctor'])(
    'a sequencer is dead → seq %s names the command of the lab that starts it, and no other',
    async (verb) => {
      const dead = Object.values(await rows(seq)).find((row) => row.state === 'dead')!.name;
      const { stdout, stderr } = await seq(...verb.split(' '), '-c', 'lab');
      const starts = `${stdout}${stderr}`.split('\n').filter((line) => /seq (run|lab start) /.test(line));
      expect(starts).not.toEqual([]);
      expect(starts.filter((line) => !line.includes(`seq lab start ${dead}`))).toEqual([]);
    },
  );

  it('up after a kill → does not restart it, and says how to', async () => {
    const { started, processes } = (await data(seq, 'lab', 'up')) as { started: string[]; processes: Row[] };
    expect(started).toEqual([]);
    expect(processes.filter((row) => row.state === 'dead')).toHaveLength(1);
  });

  it('demo again, with a file that was named → starts the dead sequencer, and holds', async () => {
    const file = join(HOMES[0]!, 'odd.txt');
    writeFileSync(
      file,
      Buffer.concat([
        Buffer.from('one\n\n\r\ntwo\ttabs\none\nünï\n'),
        Buffer.from([0xff, 0xfe, 0x0a]),
        Buffer.from('no newline at the end'),
      ]),
    );
    const report = await data(seq, 'lab', 'demo', file);
    expect(report).toMatchObject({
      holds: true,
      items: 8,
      comparison: { lost: 0, duplicates: 0, unexpected: 0, identical: true },
    });
    expect(report.startedFirst).toHaveLength(1);
    expect(report.killed.name).not.toBe(report.successor.name);
  }, 300_000);

  it('start, kill leader → the other one leads', async () => {
    const dead = Object.values(await rows(seq)).find((row) => row.state === 'dead')!.name;
    expect(await data(seq, 'lab', 'start', dead)).toMatchObject({ name: dead, state: 'running', changed: true });
    expect(await data(seq, 'lab', 'start', dead)).toMatchObject({ changed: false });
    const leads = async () => (await data(seq, 'status', '-c', 'lab')).leader?.id as string | undefined;
    await until('a leader', 10_000, async () => (await leads()) !== undefined);
    const { name } = await data(seq, 'lab', 'kill', 'leader');
    expect((await rows(seq))[name]?.state).toBe('dead');
    expect((await seq('lab', 'kill', name)).code).toBe(76);
    await until('another leader', 10_000, async () => ![undefined, name].includes(await leads()));
  }, 300_000);

  it('wipe → the node runs again, empty, under the same port', async () => {
    const before = (await rows(seq))['r3']!;
    await data(seq, 'lab', 'wipe', 'r3');
    const after = (await rows(seq))['r3']!;
    expect({ state: after.state, port: after.port, other: after.pid !== before.pid }).toEqual({
      state: 'running',
      port: before.port,
      other: true,
    });
  });

  it("another home → another lab; a recorded pid that is somebody else's → never signalled", async () => {
    const other = home();
    const { processes } = (await data(
      other.seq,
      'lab',
      'up',
      '--nodes',
      '1',
      '--sequencers',
      '1',
      '--ttl',
      '500ms',
      '--block-time',
      '100ms',
    )) as { processes: Row[] };
    const ports = new Set(Object.values(await rows(seq)).map((row) => row.port));
    expect(processes.filter((row) => ports.has(row.port))).toEqual([]);
    const file = join(other.directory, 'lab.json');
    const node = processes.find((row) => row.name === 'r1')!;
    const state = JSON.parse(readFileSync(file, 'utf8'));
    state.processes[0].identity.startToken = 'another process';
    writeFileSync(file, JSON.stringify(state));
    expect((await rows(other.seq))['r1']?.state).toBe('dead');
    expect((await data(other.seq, 'lab', 'down')).stopped.map((each: { name: string }) => each.name)).toEqual([
      'seq-a',
    ]);
    expect(alive(node.pid)).toBe(true);
    process.kill(node.pid, 'SIGKILL');
  }, 300_000);

  it('down → no process, no directory, no context; again → 66', async () => {
    const before = Object.values(await rows(seq));
    await data(seq, 'lab', 'down');
    expect(before.filter((row) => alive(row.pid))).toEqual([]);
    expect(existsSync(main.directory)).toBe(false);
    expect((await seq('status', '-c', 'lab')).code).toBe(66);
    expect((await seq('lab', 'down')).code).toBe(66);
  }, 300_000);
});

describe('lab: up again, with what is left', () => {
  it.each([
    {
      ended: 'down --keep',
      persist: 'everysec',
      last: 'lost',
      refused: /needs --confirm [0-9a-f]{8}/,
      confirmed: () => ['--yes'],
    },
    {
      ended: 'down --keep',
      persist: 'none',
      last: 'the stores of the sequencers are the last copy',
      refused: /needs --accept-possible-loss/,
      confirmed: (next: string) => next.split(' ').slice(5),
    },
    {
      ended: 'nothing of it lives any more',
      persist: 'none',
      last: 'the stores of the sequencers are the last copy',
      refused: /needs --accept-possible-loss/,
      confirmed: (next: string) => next.split(' ').slice(5),
    },
  ])(
    '$ended, persist $persist → nothing without a confirmation; then the same servers go on, every item where it was',
    async ({ ended, persist, last, refused, confirmed }) => {
      const { seq, directory } = home();
      const file = join(HOMES.at(-1)!, 'items.txt');
      writeFileSync(file, Array.from({ length: 200 }, (_, at) => `item ${at}\n`).join(''));
      await data(
        seq,
        'lab',
        'up',
        '--persist',
        persist,
        '--sequencers',
        '1',
        '--ttl',
        '500ms',
        '--block-time',
        '100ms',
        '--eager',
      );
      await data(seq, 'submit', '-c', 'lab', file);
      const before = (await rows(seq))['r1']!;
      if (ended === 'down --keep') {
        expect((await data(seq, 'lab', 'down', '--keep')).kept).toBe(directory);
        expect(await data(seq, 'lab', 'status')).toMatchObject({ up: false, kept: true });
      } else for (const name of Object.keys(await rows(seq))) await data(seq, 'lab', 'kill', name);

      const first = await seq('lab', 'up', '-o', 'json');
      const { error } = JSON.parse(first.stdout) as { error: { code: string; why: string; next: string[] } };
      expect({ code: first.code, error: error.code }).toEqual({ code: 81, error: 'CONFIRMATION_NEEDED' });
      expect(`it ${error.why.replace(/^it /, '')}`).toMatch(refused);
      expect(first.stderr).toContain(last);
      expect((await data(seq, 'status', '-c', 'lab')).reasonCode).toMatch(/NO_QUORUM|NOT_INITIALISED/);

      const up = await data(seq, 'lab', 'up', ...confirmed(error.next[0]!));
      expect(up.recovered.cluster).toMatch(/\.2$/);
      expect(up.started).toEqual(['seq-a']);
      expect((await rows(seq))['r1']).toMatchObject({ state: 'running', port: before.port });
      expect(await data(seq, 'submit', '-c', 'lab', file)).toMatchObject({ sequenced: 0 });
      expect(
        (
          await seq(
            'stream',
            'tail',
            '-c',
            'lab',
            '--items',
            '--raw',
            '--from',
            '1',
            '--store',
            join(directory, 'seq-a', 'data'),
          )
        ).stdout,
      ).toBe(readFileSync(file, 'utf8'));
      expect((await data(seq, 'lab', 'up')).recovered).toBeNull();
      expect((await data(seq, 'lab', 'down')).kept).toBeNull();
      expect(existsSync(directory)).toBe(false);
    },
    300_000,
  );
});

describe('lab: a recovery of the running cluster', () => {
  it('two nodes lose their memory, a confirmed recovery → lab up brings its sequencers back, and no killed one', async () => {
    const { seq } = home();
    await data(seq, 'lab', 'up', '--ttl', '1s', '--block-time', '200ms', '--eager', '--sequencers', '2');
    await data(seq, 'lab', 'kill', 'seq-b');
    // A leader that runs admits the first wiped node before the second one is wiped.
    await data(seq, 'lab', 'pause', 'seq-a');
    for (const name of ['r1', 'r2']) await data(seq, 'lab', 'wipe', name);
    const planned = await data(seq, 'cluster', 'recover', '--dry-run', '-c', 'lab');
    const recovered = await seq(
      ...['cluster', 'recover', '-c', 'lab', '--accept-possible-loss', '--confirm', planned.digest.slice(0, 8)],
    );
    expect([recovered.code, recovered.stdout]).toEqual([0, expect.stringContaining('next\tseq lab up\n')]);
    await data(seq, 'lab', 'unpause', 'seq-a');
    const ended = async (): Promise<boolean> => (await rows(seq))['seq-a']?.state === 'dead';
    await until('the sequencer of the old generation ends', 60_000, ended);
    expect((await data(seq, 'lab', 'up')).started).toEqual(['seq-a']);
    const status = async (): Promise<boolean> => (await data(seq, 'status', '-c', 'lab')).leader?.id === 'seq-a';
    await until('it leads the new generation', 60_000, status);
    expect((await data(seq, 'status', '-c', 'lab')).cluster).toMatch(/\.2$/);
    await data(seq, 'lab', 'down');
  }, 300_000);
});
