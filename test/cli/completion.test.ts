// Completion in real shells: the words, the flags, the choices of this very command, and the ids of the cluster that
// is being typed.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const folder = join(home, 'bin');
const env = { ...environment(home), PATH: `${folder}:${process.env['PATH']}` };
const has = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0;

beforeAll(async () => {
  mkdirSync(folder);
  writeFileSync(join(folder, 'seq'), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`, { mode: 0o755 });
  const nodes = (prefix: string): string[] =>
    [1, 2, 3].flatMap((at) => ['--node', `${prefix}${at}=redis://127.0.0.1:${at}`]);
  expect((await runSeq(home, ['context', 'set', 'here', ...nodes('r')])).code).toBe(0);
  expect((await runSeq(home, ['context', 'set', 'there', ...nodes('a')])).code).toBe(0);
  expect((await runSeq(home, ['context', 'use', 'here'])).code).toBe(0);
});

/** Typed up to the TAB → what is offered. */
const TYPED: readonly [line: string, offered: string][] = [
  ['seq st', 'status stepdown stream'],
  ['seq -c there stream in', 'inspect'],
  ['seq status -c ', 'here there'],
  ['seq context use t', 'there'],
  ['seq status --on ', 'r1 r2 r3'],
  ['seq status -c there --on ', 'a1 a2 a3'],
  ['seq status --context=there --on=', 'a1 a2 a3'],
  ['seq status --node x=redis://127.0.0.1:7 --on ', 'x'],
  ['seq status --on r1,', 'r1,r1 r1,r2 r1,r3'],
  ['seq status -o n', 'ndjson'],
  ['seq check leader -o n', 'ndjson nagios'],
  ['seq wait --for h', 'healthy height='],
  ['seq explain NO_QU', 'NO_QUORUM'],
  ['seq repair apply --conf', '--confirm'],
];

describe('completion', () => {
  test('completion: bash, typed up to the TAB → what fits there, of the cluster that is named in the line', () => {
    const script =
      `eval "$(seq completion bash)"\nt() { COMP_LINE="$1"; COMP_POINT=\${#1}; _seq_complete; echo "$1 ` +
      `=> \${COMPREPLY[*]}"; }\n${TYPED.map(([line]) => `t '${line}'`).join('\n')}`;
    const ran = spawnSync('bash', ['--norc', '-c', script], { env, encoding: 'utf8', timeout: 120_000 });
    expect(ran.stdout.trimEnd().split('\n')).toEqual(TYPED.map(([line, offered]) => `${line} => ${offered}`));
    expect(ran.stderr).toBe('');
  }, 300_000);

  test.skipIf(!has('fish'))(
    'completion: fish, typed up to the TAB → the same (skipped where there is no fish)',
    () => {
      const script =
        'seq completion fish | ' +
        `source\n${TYPED.map(([line]) => `echo '${line} => '(complete -C '${line}' | string replace -r '\\t.*' '' | sort | string join ' ` + `')`).join('\n')}`;
      const ran = spawnSync('fish', ['--no-config', '-c', script], { env, encoding: 'utf8', timeout: 120_000 });
      const sorted = (words: string): string => words.split(' ').sort().join(' ');
      const said = ran.stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' => '))
        .map(([line, offered = '']) => [line, sorted(offered.replaceAll(/--[a-z]+=/g, ''))]);
      expect(said).toEqual(TYPED.map(([line, offered]) => [line, sorted(offered)]));
    },
    300_000,
  );

  test.skipIf(!has('zsh'))(
    'completion: zsh → the script loads without a word (skipped where there is no zsh)',
    () => {
      const script = `eval "$(seq completion zsh)"\nprint -l \${(k)functions} | grep -c '^_seq_complete$'`;
      const ran = spawnSync('zsh', ['-f', '-c', script], { env, encoding: 'utf8', timeout: 120_000 });
      expect([ran.stdout.trim(), ran.stderr]).toEqual(['1', '']);
    },
    300_000,
  );
});
