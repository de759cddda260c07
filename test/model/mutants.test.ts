// Each rule of the protocol, broken alone: the model must find what goes wrong. Seeds are fixed, so that what was found once is found again.
// Those that random walks do not find in seconds are walked along a directed path: found by exhaustive exploration (unconfirmed admission)
// or worked out by hand (epoch check, and the three that need a wipe). The same path must be harmless once the rule is kept.
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

// A leader's late acquire gets into a node that a later tenure has claimed and whose lock has expired since.
const NO_EPOCH_CHECK = traceOf(`
1 start
1 run 1
1 run 2
1 give up 3
1 run 1
1 run 2
1 run 3
1 run 1
2 start
2 run 3
2 run 2
2 grace over
2 run 2
2 run 3
2 run 2
0 expire 3
1 run 3
1 run 3
3 start
3 run 2
3 run 3
3 grace over
3 run 2
3 run 3
3 run 2
3 run 2
3 run 3`);

/**
 * A leader "proves" that it still leads on a node that a successor has promoted but not yet claimed, and re-admits another node that the
 * successor had claimed: that claim is forgotten there. The leader gets into the promoted node (`prepares`, `lets`), and the successor
 * gets in again later (`returns`), which takes the broken rule.
 */
function succession(prepares: string, lets: string, returns: string): ReturnType<typeof traceOf> {
  return traceOf(`
1 start
1 run 1
2 start
2 run 1
2 run 2
2 give up 3
2 run 1
2 run 2
${prepares}
3 start
3 run 2
3 run 3
3 grace over
3 run 2
0 wipe 2
2 run 2
${lets}
2 run 3
2 run 3
2 run 2
2 run 2
2 give up 1
2 run 1
2 run 3
2 run 2
2 run 1
2 run 2
2 run 2
2 run 1
2 run 2
${returns}
${'3 run 3\n3 run 3\n3 run 1\n3 run 1\n'.repeat(6)}`.replaceAll('\n\n', '\n'));
}

describe('mutants', () => {
  it.each(FOUND)('model: $rule → found', ({ rule, cfg, finds, liveness = false }) => {
    const config = { ...BASE, name: rule, ...cfg };
    const { finding } = walk(config, { runs: 60_000, ms: 110_000, expect: finds, liveness });
    expect(finding, 'the mutant was not found').not.toBeNull();
    const shortest = minimised(config, finding!);
    expect(narrate(config, shortest)).toMatch(finds.source.startsWith('^') ? new RegExp(finds.source.replaceAll('^', '')) : finds);
  }, 120_000);

  it('model: a node re-admitted without re-confirming the lead → fork; with the proof, the same path forks nothing', () => {
    const config: ModelConfig = { ...BASE, name: 'unconfirmed admission', heights: 2, wipes: 1, twist: 'unconfirmed-admission' };
    expect(replay(config, UNCONFIRMED, /^I4/).why).toMatch(/^I4: FORK at height 2/);
    expect(replay({ ...config, twist: '' }, UNCONFIRMED).why).toBe('');
  });

  it('model: the epoch check dropped → fork; with it, the same path forks nothing', () => {
    const config: ModelConfig = { ...BASE, name: 'no epoch check', tenures: 3, expiries: 1, mutant: { noEpochCheck: true } };
    expect(replay(config, NO_EPOCH_CHECK, /^I4/).why).toMatch(/^I4: FORK/);
    expect(replay({ ...config, mutant: {} }, NO_EPOCH_CHECK).why).toBe('');
  });

  it.each([
    { rule: 'the owner check dropped', trace: succession('2 run 3', '', ''), cfg: { mutant: { noOwnerCheck: true } } },
    { rule: 'claims on free nodes too', trace: succession('2 grace over', '0 expire 3', '0 expire 3'), cfg: { expiries: 2, twist: 'wide-claim' as const } },
    {
      rule: 'a second copy of a promotion runs at any epoch', cfg: { expiries: 1, mutant: { repeatPromotionAtAnyEpoch: true } },
      trace: succession('2 run 3', '0 expire 3', '3 late run 3 @17825792'),
    },
  ])('model: $rule, one wipe → fork; with the rule kept, the same path forks nothing', ({ rule, trace, cfg }) => {
    const config: ModelConfig = { ...BASE, name: rule, tenures: 3, heights: 3, wipes: 1, ...cfg };
    expect(replay(config, trace, /^I4/).why).toMatch(/^I4: FORK/);
    expect(replay({ ...config, mutant: {}, twist: '' }, trace).why).toBe('');
  });

  it('model: the owner check dropped alone, no wipes → holds (epochs and claimants carry it)', () => {
    const config = { ...BASE, name: 'no owner check', strays: 2, giveUps: 2, mutant: { noOwnerCheck: true } };
    expect(explore(config, { states: 30_000, expect: /^I\d/ }).finding).toBeNull();
  }, 120_000);
});
