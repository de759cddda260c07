// bin/run.js from outside: version, hand-over to the other seq, help, unknown commands.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { schemaProblems } from '../support/schemas.js';
import { bin, newHome, root, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

/** A fake `seq` in a folder of its own. */
function fakeSeq(name: string, body: string): string {
  const folder = join(newHome(), name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'seq'), body);
  chmodSync(join(folder, 'seq'), 0o755);
  return folder;
}

const other = fakeSeq('other', '#!/bin/sh\necho "other: $*"\ncat\nexit 7\n');
const node = join(process.execPath, '..');

describe('launcher', () => {
  test('version: answered with name, version and platform', async () => {
    const { code, stdout } = await runSeq(home, ['--version']);
    expect([code, stdout]).toEqual([
      0,
      `seqctl/${version} ${process.platform}-${process.arch} node-${process.version}\n`,
    ]);
  });

  test.each([
    [['1', '5']],
    [['-w', '1', '10']],
    [['-s', ',', '3']],
    [['-s,', '3']],
    [['-f', '%g', '1', '3']],
    [['-5', '-1']],
    [['-1']],
    [['.5', '2']],
    [['+3']],
    [['1e1']],
    [['--separator=,', '3']],
    [['--equal-width', '1', '3']],
    [['--', '-3', '0']],
    [['1', '--help']],
  ])('hand-over: seq %j → the next seq on PATH, same arguments, stdin and exit code', async (args) => {
    const { code, stdout } = await runSeq(home, args, {
      env: { PATH: `${other}${delimiter}${node}${delimiter}/bin${delimiter}/usr/bin` },
      input: 'fed\n',
    });
    expect([code, stdout]).toEqual([7, `other: ${args.join(' ')}\nfed\n`]);
  });

  test('a clone before its first build → 78 and how to build it, no stack trace', () => {
    const clone = newHome();
    mkdirSync(join(clone, 'bin'));
    for (const file of ['bin/run.js', 'package.json']) copyFileSync(join(root, file), join(clone, file));
    const { status, stderr } = spawnSync(process.execPath, [join(clone, 'bin', 'run.js'), 'status']);
    expect([status, stderr.toString()]).toEqual([
      78,
      'NOT_BUILT: seq cannot start from this folder\n' +
        `  why:     ${clone}/dist holds no program: a clone is built once, and after each change\n` +
        '  changed: nothing\n' +
        `  next:    npm --prefix ${clone}/ ci && npm --prefix ${clone}/ run build\n`,
    ]);
  });

  test('hand-over: our own link, a shim and another copy on PATH → passed over', async () => {
    const link = join(newHome(), 'link');
    mkdirSync(link);
    symlinkSync(bin, join(link, 'seq'));
    const shim = fakeSeq('shim', '#!/bin/sh\nexec node "$0/../../seqctl/bin/run.js" "$@"\n');
    const folder = fakeSeq('folder', '');
    chmodSync(join(folder, 'seq'), 0o644);
    const { code, stdout } = await runSeq(home, ['3'], {
      env: { PATH: [link, shim, folder, other, node, '/bin', '/usr/bin'].join(delimiter) },
    });
    expect([code, stdout]).toEqual([7, 'other: 3\n']);
  });

  test('hand-over: a wrapper that only leads back to us → tried once, then 66', async () => {
    const wrapper = fakeSeq('wrapper', `#!/bin/sh\nexec ${process.execPath} ${bin} "$@"\n`);
    const { code, stderr } = await runSeq(home, ['3'], { env: { PATH: wrapper } });
    expect(code).toBe(66);
    expect(stderr).toMatch(/^NO_OTHER_SEQ: /);
  });

  test('hand-over: the other one dies by a signal → so do we', async () => {
    const dying = fakeSeq('dying', '#!/bin/sh\nkill -TERM $$\n');
    const { signal } = await runSeq(home, ['3'], { env: { PATH: [dying, node, '/bin', '/usr/bin'].join(delimiter) } });
    expect(signal).toBe('SIGTERM');
  });

  test('hand-over: the real one through a pipe that closes early → quiet', () => {
    const { stdout, stderr, status } = spawnSync('/bin/sh', ['-c', `${process.execPath} ${bin} 1 100000 | head -2`], {
      encoding: 'utf8',
    });
    expect([stdout, stderr, status]).toEqual(['1\n2\n', '', 0]);
  });

  test.each([[['--help']], [['help']], [['-h']]])(
    'help: seq %j → the first commands, then groups by what one wants, on stdout, 0',
    async (args) => {
      const { code, stdout, stderr } = await runSeq(home, args);
      expect([code, stderr]).toEqual([0, '']);
      const titles = stdout.split('\n').filter((line) => /^[A-Z]+$/.test(line));
      expect(titles).toEqual(['VERSION', 'USAGE', 'FIRST', 'START', 'LOOK', 'JUDGE', 'REPAIR', 'PROVE']);
      expect(stdout).toContain('FIRST\n  seq lab up ');
    },
  );

  test.each([[{}], [{ FORCE_COLOR: '1' }]])(
    'help: seq alone, not on a terminal (seq $n, n empty; %j) → help on stderr, 1',
    async (env) => {
      const { code, stdout, stderr } = await runSeq(home, [], { env });
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr.replace(/\u001b\[\d+m/g, '')).toContain('USAGE\n  $ seq [COMMAND]\n');
    },
  );

  test.each([60, 80, 100])('help: %i columns → no line is wider, but a command that is to be copied', async (wide) => {
    const pages = await Promise.all(
      [[], ['history'], ['run'], ['stream', 'tail'], ['lab'], ['context', 'set']].map((words) =>
        runSeq(home, [...words, '--help'], { env: { OCLIF_COLUMNS: String(wide) } }),
      ),
    );
    const lines = pages.flatMap(({ stdout }) => stdout.split('\n'));
    expect(lines.filter((line) => line.length > wide && !line.includes('$ seq '))).toEqual([]);
    expect(lines.filter((line) => /<value>|<option>|\| *\]/.test(line))).toEqual([]);
  });

  test('help: the page that the build made → what the framework draws for a pipe', async () => {
    const [made, drawn] = await Promise.all([
      runSeq(home, ['--help']),
      runSeq(home, ['--help'], { env: { OCLIF_COLUMNS: '80' } }),
    ]);
    expect(made.stdout).toBe(drawn.stdout);
    expect(made.stdout).toContain(`seqctl/${version}`);
  });

  test.each([[['context', 'ls', '--help']], [['help', 'context', 'ls']]])(
    'help: seq %j → that command',
    async (args) => {
      const { code, stdout } = await runSeq(home, args);
      expect(code).toBe(0);
      expect(stdout).toContain('$ seq context ls');
    },
  );

  test('help: a topic alone → its commands', async () => {
    const { code, stdout } = await runSeq(home, ['context']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/context ls[\s\S]*context rm/);
  });

  test.each([
    [['explian', 'X'], 'explain'],
    [['contxt', 'ls'], 'context ls'],
    [['context', 'lss'], 'context ls'],
    [['config', 'sow'], 'config show'],
    [['zzzzzz'], null],
    [['context', '-q'], null],
    [['help', 'zzzz'], null],
    [['-q', 'context'], null],
    [['repair', '-c', 'lab', 'plan'], 'seq repair plan -c lab'],
    [['stream', '-c', 'lab', 'tail', '--follow'], 'seq stream tail -c lab --follow'],
    [['-c', 'lab', 'status'], 'seq status -c lab'],
    [['--lane', 'lab', 'lab', 'status'], 'seq lab status --lane lab'],
  ])('unknown: seq %j → 64, five parts, suggestion %s', async (args, near) => {
    const { code, stdout, stderr } = await runSeq(home, args as string[]);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(/^UNKNOWN_COMMAND: .*\n {2}why: .*\n {2}changed: nothing\n {2}next: .*\n/);
    if (near) expect(stderr).toContain(`did you mean '${near}'?`);
  });

  test.each([
    [['status', '--contxt', 'lab'], 64, 'seq status --context lab'],
    [['wait', 'leader'], 64, 'seq wait --for leader'],
    [['lab', 'kill'], 64, 'seq lab kill leader'],
    [['explain', 'NODE_DWN'], 66, 'seq explain NODE_DOWN'],
    [['status', '--timeout', '5'], 64, '--timeout 5s'],
  ])('typo: seq %j → %i, next: %s', async (args, exit, next) => {
    const { code, stdout } = await runSeq(home, args, { env: { SEQ_OUTPUT: 'json' } });
    const { error } = JSON.parse(stdout) as { error: { next: string[]; message: string } };
    expect([code, error.next[0]]).toEqual([exit, next]);
    expect(error.message).toMatch(/did you mean|needs NAME/);
  });

  test.each([
    [['explian', '-o', 'json']],
    [['context', 'lss', '--json']],
    [['stauts', '-ojson']],
    [['stauts', '--output=json']],
  ])('unknown: seq %j → 64 and one envelope', async (args) => {
    const { code, stdout, stderr } = await runSeq(home, args);
    expect([code, stderr]).toEqual([64, '']);
    const document = JSON.parse(stdout) as { ok: boolean; error: { code: string; exit: number } };
    expect(schemaProblems(document)).toEqual([]);
    expect([document.ok, document.error.code, document.error.exit]).toEqual([false, 'UNKNOWN_COMMAND', 64]);
  });

  test('manifest: the committed one is what the commands say', () => {
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs'), '--check'], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
  });
});
