// docs/TUTORIAL.md, typed line by line into a shell as a newcomer would type it: every line must end with 0. Only the
// ports and the folder differ, because machines are shared.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePorts } from '../../src/lab/free-port.js';
import { bin, environment, newHome, root } from '../support/spawn-seq.js';

const page = readFileSync(join(root, 'docs', 'TUTORIAL.md'), 'utf8');
const WRITTEN_PORTS = ['7001', '7002', '7003', '7101', '7102'];
/** The clone is ready in a test; `seq` is a program on PATH instead of an alias, which a script does not expand. */
const PREPARED = ['npm ci', 'npm run build', 'alias seq='];

function linesOf(text: string): string[] {
  const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => (match[1] as string).trim());
  return blocks.flatMap((block) => block.split('\n')).filter((line) => !PREPARED.some((done) => line.startsWith(done)));
}

/** What must be said after a line that contains the key. */
const SAID: [string, RegExp][] = [
  ['seq cluster init', /cluster .* on 3 nodes/],
  ['seq submit', /3 items are sequenced/],
  ['seq stream tail --items', /0\tbuy 3\n.*1\tsell 1\n.*2\tbuy 7/],
  ['curl', /\{"height":\d+,"index":0,"epoch":\d+\}/],
  ['seq stream verify', /no violation on 3 of 3 nodes/],
  ['sleep 4', /seq-b leads under epoch/],
  ['seq history', /seq-b/],
  ['seq node admit', /admitted\tr3/],
  ['seq stepdown', /leader\tseq-a \(was seq-b\)/],
];

test('tutorial: every line typed in order → each ends with 0 and says what the page promises', async () => {
  const home = newHome();
  const ports = await freePorts(WRITTEN_PORTS.length);
  const own = (line: string) =>
    WRITTEN_PORTS.reduce((text, port, at) => text.replaceAll(port, String(ports[at])), line).replaceAll(
      '/tmp/first',
      join(home, 'first'),
    );
  mkdirSync(join(home, 'bin'));
  const program = join(home, 'bin', 'seq');
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`);
  chmodSync(program, 0o755);
  const lines = linesOf(page).map(own);
  expect(lines.length).toBeGreaterThan(30);
  // Whatever fails, nothing is left running.
  const end = `trap 'kill -9 $SEQ_A $SEQ_B; for p in ${ports.slice(0, 3).join(' ')}; do redis-cli -p $p shutdown nosave; done' EXIT`;
  const typed = lines.map((line) => `printf '%s\\n' '$ ${line.replaceAll("'", "'\\''")}'\n${line}`);
  const script = ['set -e', end, ...typed, 'trap - EXIT', ''].join('\n');
  writeFileSync(join(home, 'tutorial.sh'), script);
  const { status, stdout, stderr } = spawnSync('sh', [join(home, 'tutorial.sh')], {
    cwd: home,
    encoding: 'utf8',
    // On a busy machine a healthy node must not look silent.
    env: environment(home, { PATH: `${join(home, 'bin')}:${process.env['PATH']}`, SEQ_NODE_TIMEOUT: '700ms' }),
    timeout: 180_000,
  });
  expect(status, `${stdout}\n${stderr}`).toBe(0);
  for (const [after, said] of SAID) expect(stdout.slice(stdout.indexOf(`$ ${after}`)), after).toMatch(said);
}, 200_000);
