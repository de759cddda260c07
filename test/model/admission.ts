// Re-admission of a node that lost its memory, as the leader does it (docs/PROTOCOL.md section 8, steps 1–4), for the model.
// The scripts are the real ones (their in-memory twin); the order of steps below is the model's own description of the leader's part:
// begin → confirm on q others, backfill up to the committed head → admit between blocks. One node at a time for each tenure.
import type { NodeCall } from '../../src/core/protocol/words.js';
import { GENESIS, isAdmitted, ownerOf, type ModelConfig, type ModelTenure, type State } from './state.js';

export interface Admission {
  /** −1: none under way. */
  node: number;
  /** 0 none, 1 begun (confirming and backfilling), 2 admit sent and not answered. */
  stage: 0 | 1 | 2;
  /** Begun so far by this tenure; each uses a new nonce. */
  attempts: number;
  /** Bit m: node m accepted a claim of this tenure sent after the reply to begin_admission. */
  confirmed: number;
}

export const NO_ADMISSION: Admission = { node: -1, stage: 0, attempts: 0, confirmed: 0 };
export const MAX_ATTEMPTS = 2;

export type AdmissionStep =
  | { step: 'begin'; node: number; call: NodeCall }
  | { step: 'confirm'; node: number; call: NodeCall }
  | { step: 'backfill'; node: number; call: NodeCall }
  | { step: 'admit'; node: number; call: NodeCall };

/** What the leader `tenure` may do next about nodes that are not admitted. */
export function admissionSteps(cfg: ModelConfig, state: State, tenure: number): AdmissionStep[] {
  const m = state.tenures[tenure]!;
  const { t, admission } = m;
  if (t.phase !== 'leading' || admission.stage === 2) return [];
  const owner = ownerOf(tenure);
  const { epoch } = t;
  if (admission.stage === 0) {
    if (admission.attempts >= MAX_ATTEMPTS) return [];
    const steps: AdmissionStep[] = [];
    state.nodes.forEach(({ s }, node) => {
      if (isAdmitted(s)) return;
      const nonce = nonceOf(tenure, admission.attempts);
      steps.push({ step: 'begin', node, call: { script: 'begin_admission', owner, epoch, nonce, floor: 0, floorHash: GENESIS, keepMs: 1 } });
    });
    return steps;
  }
  return [...confirmations(m, owner), ...lastSteps(cfg, state, m, owner, nonceOf(tenure, admission.attempts - 1))];
}

function confirmations(m: ModelTenure, owner: string): AdmissionStep[] {
  const { t, admission } = m;
  const steps: AdmissionStep[] = [];
  t.nodes.forEach((track, node) => {
    if (node === admission.node || track.standing !== 'ours' || (admission.confirmed >> node) & 1) return;
    steps.push({ step: 'confirm', node, call: { script: 'claim', owner, epoch: t.epoch } });
  });
  return steps;
}

function lastSteps(cfg: ModelConfig, state: State, m: ModelTenure, owner: string, nonce: string): AdmissionStep[] {
  const { t, admission } = m;
  const { node } = admission;
  const record = state.nodes[node]!.s.record;
  if (record === null || record.pending !== nonce) return [];
  const { epoch } = t;
  if (record.head < t.committed.height) {
    const block = m.store[record.head]!;
    return [{ step: 'backfill', node, call: { script: 'backfill', owner, epoch, nonce, block, entryEpoch: block.epoch || epoch } }];
  }
  const confirmed = cfg.twist === 'unconfirmed-admission' || bits(admission.confirmed) >= t.settings.quorum;
  if (t.inflight || !confirmed) return []; // I11: between blocks
  return [{
    step: 'admit', node,
    call: { script: 'admit', owner, epoch, nonce, ttlMs: Infinity, head: t.committed.height, headHash: t.committed.hash },
  }];
}

function nonceOf(tenure: number, attempt: number): string {
  return `n${tenure + 1}.${attempt}`;
}

function bits(mask: number): number {
  let count = 0;
  for (let m = mask; m > 0; m &= m - 1) count++;
  return count;
}
