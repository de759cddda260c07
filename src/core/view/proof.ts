// What do the nodes' heads prove to be committed (docs/PROTOCOL.md sections 7 and 9)? Pure. There are exactly two
// proofs. Either q admitted nodes have the same (height, epoch, hash) as their head, or an entry stands on top of the
// block (I5). The holders say what q is (protocol/copies.ts). At the head, copies of different epochs are not added up.
// A node whose memory is in doubt never has a vote, but its entries count for I5.
import { quorumOf } from '../config.js';
import { enoughCopies, type Shown } from '../protocol/copies.js';
import type { Entry, Epoch, Hash, HeadFacts, Height } from '../protocol/types.js';

export interface ProofNode {
  id: string;
  admitted: boolean;
  facts: HeadFacts;
  /** The configuration that it showed together with its head. Null: it knows none. */
  shown: Shown | null;
  /** The entry at its head, when it was read. */
  headEntry: Entry | null;
}

export interface Committed {
  height: Height;
  /** Null when the height is proven but its hash could not be read. */
  hash: Hash | null;
}

/** An entry above the committed head that is on fewer than q nodes. */
export interface Pending {
  height: Height;
  hash: Hash;
  epoch: Epoch;
  /** Ids of the admitted nodes that hold exactly this entry. */
  nodes: string[];
  /** Whether the nodes without an answer could still make it committed. */
  mayBeCommitted: boolean;
}

export interface Conflict {
  height: Height;
  why: string;
  nodes: string[];
}

export interface Proof {
  committed: Committed | null;
  pending: Pending | null;
  conflicts: Conflict[];
  /** True when a head entry that was not read would settle a hash, or prove another block at the committed height. */
  wantsHeadEntries: boolean;
}

export function proveCommitted(nodes: readonly ProofNode[], cluster: { configured: number; silent: number }): Proof {
  const quorum = quorumOf(cluster.configured);
  const enough = enoughCopies(new Map(nodes.map(({ id, shown }) => [id, shown])), cluster.configured);
  const claims: { height: Height; hash: Hash | null; why: string; nodes: string[] }[] = [];
  const groups = groupHeads(nodes.filter((n) => n.admitted && n.facts.head > n.facts.floor));

  for (const node of nodes) {
    const { head, floor, floorHash } = node.facts;
    claims.push({ height: floor, hash: floorHash === '' ? null : floorHash, why: 'the floor', nodes: [node.id] });
    if (head > floor) {
      const parent = node.headEntry?.parent ?? (head - 1 === floor && floorHash !== '' ? floorHash : null);
      claims.push({ height: head - 1, hash: parent, why: `the entry at ${head}`, nodes: [node.id] });
    }
  }
  for (const group of groups) {
    if (enough(group.nodes, group.epoch)) {
      claims.push({
        height: group.height,
        hash: group.hash,
        why: `${group.nodes.length} copies at epoch ${group.epoch}`,
        nodes: group.nodes,
      });
    }
  }

  const height = claims.length === 0 ? null : Math.max(...claims.map((c) => c.height));
  const hash = claims.find((c) => c.height === height && c.hash !== null)?.hash ?? null;
  const committed = height === null ? null : { height, hash };
  const above = groups
    .filter((g) => committed === null || g.height > committed.height)
    .sort((a, b) => b.height - a.height || b.epoch - a.epoch)[0];
  const pending =
    above === undefined
      ? null
      : {
          height: above.height,
          hash: above.hash,
          epoch: above.epoch,
          nodes: above.nodes,
          mayBeCommitted: above.nodes.length + cluster.silent >= quorum,
        };
  return {
    committed,
    pending,
    conflicts: findConflicts(claims, groups),
    wantsHeadEntries:
      committed !== null &&
      (hash === null || nodes.some(({ facts, headEntry }) => facts.head > committed.height && headEntry === null)),
  };
}

interface HeadGroup {
  height: Height;
  epoch: Epoch;
  hash: Hash;
  nodes: string[];
}

function groupHeads(nodes: readonly ProofNode[]): HeadGroup[] {
  const groups = new Map<string, HeadGroup>();
  for (const { id, facts } of nodes) {
    const key = `${facts.head} ${facts.headEpoch} ${facts.headHash}`;
    const group = groups.get(key) ?? { height: facts.head, epoch: facts.headEpoch, hash: facts.headHash, nodes: [] };
    group.nodes.push(id);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** I2 is broken: two blocks under one epoch. I4 is broken: two proofs at one height name different blocks. */
function findConflicts(
  claims: { height: Height; hash: Hash | null; why: string; nodes: string[] }[],
  groups: HeadGroup[],
): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const [i, a] of groups.entries()) {
    for (const b of groups.slice(i + 1)) {
      if (a.height === b.height && a.epoch === b.epoch && a.hash !== b.hash) {
        conflicts.push({
          height: a.height,
          nodes: [...a.nodes, ...b.nodes],
          why:
            `I2: two blocks under epoch ${a.epoch}: ${a.hash.slice(0, 12)} on ${a.nodes.join(', ')} and ` +
            `${b.hash.slice(0, 12)} on ${b.nodes.join(', ')}`,
        });
      }
    }
  }
  const known = new Map<Height, { hash: Hash; why: string; nodes: string[] }>();
  for (const { height, hash, why, nodes } of claims) {
    if (hash === null) continue;
    const first = known.get(height);
    if (first === undefined) known.set(height, { hash, why, nodes });
    else if (first.hash !== hash) {
      conflicts.push({
        height,
        nodes: [...first.nodes, ...nodes],
        why:
          `I4: two blocks are proven: ${first.hash.slice(0, 12)} by ${first.why} of ` +
          `${first.nodes.join(', ')} and ${hash.slice(0, 12)} by ${why} of ${nodes.join(', ')}`,
      });
    }
  }
  return conflicts;
}
