// What `next:` says about a lab's node that does not answer: what makes this very process answer again.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nextForLab } from '../../src/cli/present/lab.js';
import { startCommands } from '../../src/cli/compose/target.js';
import { startTokenOf, stateOf } from '../../src/lab/process-identity.js';
import type { ClusterSettings } from '../../src/cli/cluster/settings.js';

const base = mkdtempSync(join(tmpdir(), 'seq-lab-next-'));
const before = process.env['XDG_STATE_HOME'];
let child: ChildProcess;

beforeAll(() => {
  process.env['XDG_STATE_HOME'] = base;
  child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const identity = { pid: child.pid!, startToken: startTokenOf(child.pid!)! };
  mkdirSync(join(base, 'seq', 'lab'), { recursive: true });
  const processes = [
    { name: 'r1', kind: 'redis', port: 1, identity },
    { name: 'r2', kind: 'redis', port: 2, identity: { pid: child.pid!, startToken: 'another' } },
    { name: 'seq-a', kind: 'sequencer', port: 3, identity: { pid: child.pid!, startToken: 'another' } },
  ];
  writeFileSync(
    join(base, 'seq', 'lab', 'lab.json'),
    JSON.stringify({ version: 1, phase: 'committed', settings: {}, processes }),
  );
});
afterAll(() => {
  child.kill('SIGKILL');
  rmSync(base, { recursive: true, force: true });
  if (before === undefined) delete process.env['XDG_STATE_HOME'];
  else process.env['XDG_STATE_HOME'] = before;
});

test(
  'next: a lab node that runs, is paused, is dead, is not there → nothing of the lab, unpause, ' + 'start, nothing',
  async () => {
    const { startCommand, startSequencers } = startCommands({ context: 'lab' } as ClusterSettings);
    const command = startCommand!;
    expect(command('r1')).toBe(undefined);
    child.kill('SIGSTOP');
    const identity = { pid: child.pid!, startToken: startTokenOf(child.pid!)! };
    for (let tries = 0; tries < 500 && stateOf(identity) !== 'paused'; tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 5));
    expect(command('r1')).toBe('seq lab unpause r1');
    expect(command('r2')).toBe('seq lab start r2');
    expect(command('r9')).toBe(undefined);
    expect(startSequencers!()).toEqual(['seq lab start seq-a']);
    expect(startCommands({ context: 'prod' } as ClusterSettings)).not.toHaveProperty('startCommand');
  },
);

test.each([
  ['one node and a sequencer dead', 'xrrx', ['seq lab start r1', 'seq lab start seq-a']],
  ['a node paused', 'prrr', ['seq lab unpause r1']],
  ['two of three dead: none of them would be admitted', 'xxrr', ['seq lab down --keep', 'seq lab up']],
  ['all dead', 'xxxx', ['seq lab down --keep', 'seq lab up']],
  ['all running', 'rrrr', []],
])('next: a lab with %s → %s', (_name, states, next) => {
  const rows = [...states].map((state, at) => ({
    name: at < 3 ? `r${at + 1}` : 'seq-a',
    kind: at < 3 ? ('redis' as const) : ('sequencer' as const),
    pid: at + 1,
    port: at + 1,
    url: '',
    state: ({ x: 'dead', r: 'running', p: 'paused' } as const)[state as 'x'],
  }));
  expect(nextForLab(rows)).toEqual(next);
});
