// Who should lead a lane, and who is next (docs/decisions/0015)? Every sequencer ranks the others for itself, by
// rendezvous hashing: no manager, no agreement, and a sequencer that comes or goes moves its own share alone. Two that
// disagree about who is there cost a turn, never safety. Pure.
import { createHash } from 'node:crypto';

/** Where this sequencer stands for the lane: the least value is first. */
export function placementKey(lane: string, sequencer: string): string {
  return createHash('sha256').update(`seq/placement/1\0${lane}\0${sequencer}`).digest('hex').slice(0, 16);
}

/** The sequencers in the order in which they should lead the lane. */
export function placementOrder(lane: string, sequencers: readonly string[]): string[] {
  return [...new Set(sequencers)]
    .map((id) => ({ id, key: placementKey(lane, id) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.id < b.id ? -1 : 1))
    .map(({ id }) => id);
}
