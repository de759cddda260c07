// One successful run of every command, in an order that works with one lab. The contract test (test/cli) uses it to
// check formats, streams and limits. A unit test checks that no command is missing here.
export interface Sample {
  args: string[];
  /** Default 0. Several codes if the state of a running cluster or of a busy machine decides. */
  exit?: number | number[];
  /** Changes nothing, however often it runs. So it is tried in every format and through every kind of pipe. */
  probe?: boolean;
  /**
   * Not run in the common test, which lacks the state or the time for it. The value names the test that checks its
   * answer against the schema.
   */
  elsewhere?: string;
}

const LAB = ['-c', 'lab'];
const CHECKED = { probe: true, exit: [0, 1] };

export const SAMPLES: [id: string, sample: Sample][] = [
  ['lab:up', { args: ['--ttl', '2s', '--block-time', '200ms'] }],
  ['lab:status', { args: [], probe: true }],
  ['lab:logs', { args: ['r1', '--lines', '2'], probe: true }],
  ['wait', { args: [...LAB, '--for', 'healthy', '--timeout', '30s'], probe: true }],
  ['status', { args: LAB, probe: true }],
  ['node:list', { args: LAB, probe: true }],
  ['watch', { args: [...LAB, '--once'], probe: true }],
  ['epoch:show', { args: LAB, probe: true }],
  ['history', { args: LAB, probe: true }],
  ['doctor', { args: LAB, probe: true }],
  ['stream:inspect', { args: LAB, probe: true }],
  ['stream:verify', { args: LAB, probe: true }],
  ['stream:diff', { args: [...LAB, '--on', 'r1'], probe: true }],
  ['stream:orphans', { args: LAB, probe: true }],
  ['stream:tail', { args: [...LAB, '--limit', '2'], probe: true }],
  ...(['all', 'epoch', 'lag', 'leader', 'nodes', 'quorum', 'stream'].map((what) => [
    `check:${what}`,
    { args: LAB, ...CHECKED },
  ]) as [string, Sample][]),
  ['config:show', { args: LAB, probe: true }],
  ['config:validate', { args: [], probe: true }],
  ['context:ls', { args: [], probe: true }],
  ['completion:bash', { args: [], probe: true }],
  ['completion:fish', { args: [], probe: true }],
  ['completion:zsh', { args: [], probe: true }],
  ['completion:ids', { args: ['nodes', ...LAB], probe: true }],
  ['explain', { args: ['FENCING_ERROR'], probe: true }],
  ['alerts:print', { args: [], probe: true }],
  ['dashboard:print', { args: [], probe: true }],
  ['service:print', { args: ['systemd', ...LAB], probe: true }],
  ['context:set', { args: ['other', '--node', 'redis://127.0.0.1:1'] }],
  ['context:use', { args: ['other'] }],
  ['context:rm', { args: ['other'] }],
  ['submit', { args: [...LAB, 'items.txt'] }],
  ['trace', { args: [...LAB, '--height', '1'], exit: [0, 1], probe: true }],
  ['bench', { args: [...LAB, '--dry-run'] }],
  ['hold', { args: [...LAB, '--for', '1m', '--reason', 'a test'] }],
  ['resume', { args: LAB }],
  ['lane:add', { args: [...LAB, 'tile-1', 'tile-2'] }],
  ['lane:ls', { args: LAB, probe: true }],
  ['lane:rm', { args: [...LAB, 'tile-2', '--dry-run'] }],
  ['epoch:heal', { args: [...LAB, '--dry-run'] }],
  ['repair:plan', { args: LAB, probe: true }],
  ['repair:verify', { args: LAB, probe: true, exit: [0, 1] }],
  ['repair:apply', { args: [...LAB, '--dry-run'] }],
  ['repair:undo', { args: [...LAB, '--dry-run'], exit: 66 }],
  ['repair', { args: [...LAB, '--dry-run'] }],
  ['stepdown', { args: [...LAB, '--yes', '--timeout', '30s'] }],
  ['cluster:init', { args: LAB, exit: 76 }],
  ['cluster:recover', { args: [...LAB, '--dry-run'] }],
  ['cluster:resize', { args: [], elsewhere: 'test/integration/resize.test.ts' }],
  ['cluster:set', { args: [], elsewhere: 'test/integration/resize.test.ts' }],
  ['node:replace', { args: [], elsewhere: 'test/integration/node-replace.test.ts' }],
  ['node:admit', { args: [...LAB, '--on', 'r1', '--timeout', '30s'] }],
  ['stream:export', { args: [...LAB, '--file', 'new.bundle'] }],
  ['lab:pause', { args: ['r3'] }],
  ['lab:unpause', { args: ['r3'] }],
  ['lab:wipe', { args: ['r3'] }],
  ['lab:kill', { args: ['seq-b'] }],
  ['lab:start', { args: ['seq-b'] }],
  ['lab:demo', { args: [], exit: [0, 75] }],
  ['run', { args: [], elsewhere: 'test/integration/run-refusals.test.ts' }],
  ['chaos', { args: [], elsewhere: 'test/chaos/chaos.test.ts' }],
  ['lab:down', { args: [] }],
];
