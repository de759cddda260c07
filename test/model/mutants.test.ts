// Each rule of the protocol, broken alone: the model must find what goes wrong. Seeds are fixed, so that what was found once is found again.
// `blind` marks mutants that a second rule also guards against (votes are counted per incarnation): they are explored with that rule off.
import { describe, expect, it } from 'vitest';
import { explore, minimised, narrate, walk } from './explore.js';
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

describe('mutants', () => {
  it.each(FOUND)('model: $rule → found', ({ rule, cfg, finds, liveness = false }) => {
    const config = { ...BASE, name: rule, ...cfg };
    const { finding } = walk(config, { runs: 60_000, ms: 50_000, expect: finds, liveness });
    expect(finding, 'the mutant was not found').not.toBeNull();
    const shortest = minimised(config, finding!);
    expect(narrate(config, shortest)).toMatch(finds.source.startsWith('^') ? new RegExp(finds.source.replaceAll('^', '')) : finds);
  }, 60_000);

  it('model: the owner check dropped alone, no wipes → holds (epochs and claimants carry it)', () => {
    const config = { ...BASE, name: 'no owner check', strays: 2, giveUps: 2, mutant: { noOwnerCheck: true } };
    expect(explore(config, { states: 60_000, expect: /^I\d/ }).finding).toBeNull();
  }, 60_000);
});
