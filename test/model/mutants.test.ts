// Each rule of the protocol, broken alone: the model must find what goes wrong. Seeds are fixed, so that what was found once is found again.
// A mutant that exhaustive exploration needs half a minute for is kept as the trace that it found.
import { describe, expect, it } from 'vitest';
import { explore, minimised, narrate, replay, traceOf, walk } from './explore.js';
import { BASE, type ModelConfig } from './state.js';

interface Mutation {
  rule: string;
  cfg: Partial<ModelConfig>;
  finds: RegExp;
  liveness?: boolean;
}

const FOUND: Mutation[] = [
  {
    rule: 'HEIGHT_EXISTS counts whatever block is there, entries are never overwritten', finds: /^I4: FORK/,
    cfg: { tenures: 3, mutant: { existsIsVote: true, noSupersede: true } },
  },
  { rule: 'the claim is a plain read', cfg: { tenures: 4, twist: 'plain-read' }, finds: /^I4: FORK|^I1/ },
  { rule: 'copies of a head are added up across epochs', cfg: { tenures: 4, twist: 'mixed-epochs' }, finds: /^I4: FORK/ },
  { rule: 'a wiped node votes', cfg: { tenures: 3, wipes: 1, mutant: { noAdmissionCheck: true } }, finds: /^I4: FORK/ },
  { rule: 'no supersede', cfg: { tenures: 3, mutant: { noSupersede: true } }, finds: /^STALL/, liveness: true },
  {
    rule: 'claimant rule and owner check dropped together: two tenures at one epoch', finds: /^I1/,
    cfg: { tenures: 3, mutant: { noClaimantRule: true, noOwnerCheck: true } },
  },
];

const UNCONFIRMED = traceOf(`
1 start
1 run 2
1 run 3
1 give up 1
1 run 2
1 run 3
1 run 2
1 run 1
1 run 1
2 start
2 run 3
2 run 2
2 grace over
2 run 3
0 wipe 3
2 run 2
2 run 2
2 run 2
1 run 3
1 run 3
1 run 3
1 run 1
1 run 3
1 run 3
1 run 3
1 run 1
2 run 1
2 run 1
2 run 1
2 run 1
2 run 2
2 run 1`);

describe('mutants', () => {
  it.each(FOUND)('model: $rule → found', ({ rule, cfg, finds, liveness = false }) => {
    const config = { ...BASE, name: rule, ...cfg };
    const { finding } = walk(config, { runs: 60_000, ms: 50_000, expect: finds, liveness });
    expect(finding, 'the mutant was not found').not.toBeNull();
    const shortest = minimised(config, finding!);
    expect(narrate(config, shortest)).toMatch(finds.source.startsWith('^') ? new RegExp(finds.source.replaceAll('^', '')) : finds);
  }, 60_000);

  it('model: a node re-admitted without re-confirming the lead → fork; with the proof, the same path forks nothing', () => {
    const config: ModelConfig = { ...BASE, name: 'unconfirmed admission', heights: 2, wipes: 1, twist: 'unconfirmed-admission' };
    expect(replay(config, UNCONFIRMED, /^I4/).why).toMatch(/^I4: FORK at height 2/);
    expect(replay({ ...config, twist: '' }, UNCONFIRMED).why).toBe('');
  });

  it('model: the owner check dropped alone, no wipes → holds (epochs and claimants carry it)', () => {
    const config = { ...BASE, name: 'no owner check', strays: 2, giveUps: 2, mutant: { noOwnerCheck: true } };
    expect(explore(config, { states: 60_000, expect: /^I\d/ }).finding).toBeNull();
  }, 60_000);
});
