// Are the violations gone that the exhaustive model once found? Each path is kept as it was found, and must now run to
// its end without a violation.
import { describe, expect, it } from 'vitest';
import { replay, traceOf } from '../model/explore.js';
import { BASE, type ModelConfig, type State } from '../model/state.js';

const FOUND: { was: string; cfg: Partial<ModelConfig>; trace: string }[] = [
  {
    was: 'a repair adopted the block that a person chose, against a block that a paused leader committed after the plan',
    cfg: { conflict: true, repairs: 1 },
    trace: `
1 start
1 run 2
1 run 3
1 grace over
1 run 2
1 run 3
2 start @16
2 run 1
1 run 2
1 run 2
1 run 3
2 run 2
2 grace over
2 run 1
2 run 2`,
  },
  {
    was:
      'a node with the next pending height was quarantined (AHEAD_OF_LEADER) while the new leader ' +
      'was settling a committed block',
    cfg: { heights: 2 },
    trace: `
1 start
1 run 2
1 run 3
1 give up 1
1 run 2
1 run 3
1 run 2
1 run 3
1 run 2
2 start
2 late run 2 @9437185
2 run 3
2 give up 2
2 run 1
2 run 3
2 run 1
2 run 3
2 run 3
2 run 2
2 run 2
2 run 2
2 run 3
2 run 1
2 run 1
2 give up 2`,
  },
  {
    was: 'a leader kept its block in flight until its lease ended, although all nodes had a higher epoch',
    cfg: {},
    trace: `
1 start
1 late run 1 @1048576
1 run 2
1 run 3
1 give up 1
1 run 2
1 run 3
1 run 2
1 run 3
2 start @1
2 late run 3 @9437185
2 late run 1 @9437185`,
  },
  {
    was: 'a node that was wiped between claim and read was called damaged',
    cfg: { wipes: 1 },
    trace: `
1 start
1 run 2
1 run 3
1 give up 1
1 run 2
1 run 3
1 run 3
2 start
2 run 3
2 give up 2
2 run 1
2 run 3
0 wipe 3
2 run 1
2 run 3`,
  },
];

describe('model', () => {
  it.each(FOUND)('scenario: $was → does not happen any more', ({ cfg, trace }) => {
    const moves = traceOf(trace);
    let last: State | null = null;
    const { why, trace: made } = replay({ ...BASE, ...cfg }, moves, /./, (_, state) => (last = state));
    expect(why).toBe('');
    expect(made, 'the path itself must still exist').toHaveLength(moves.length);
    expect(last).not.toBeNull();
  });
});
