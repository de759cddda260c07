// A cluster's name is `<clusterId>.<generation>` (docs/PROTOCOL.md section 2). A recovery keeps the id and raises the
// generation. All code that splits the name does it here.

/** The id that all generations of a cluster share. It names the genesis block. */
export function familyOf(cluster: string): string {
  const dot = cluster.lastIndexOf('.');
  return dot < 0 ? cluster : cluster.slice(0, dot);
}

/** Each recovery adds one. No recovery can have written a larger number. */
const MAX_GENERATION = 2 ** 31;

/** 0 when the name has no generation that a recovery can have written: somebody wrote it by hand. */
export function generationOf(cluster: string): number {
  const [, digits] = /\.([1-9]\d{0,9})$/.exec(cluster) ?? [];
  return Number(digits ?? 0) <= MAX_GENERATION ? Number(digits ?? 0) : 0;
}

const RETIRED = /^retired:/;
/** What `retire_node` notes as the successor when the whole lane was removed (`seq lane rm`). */
export const REMOVED = 'removed';

/** A server that was retired refuses every call, for good. */
export function isRetired({ cluster }: { cluster: string }): boolean {
  return RETIRED.test(cluster);
}

/** The node was retired because its lane was removed. One node that left a lane says nothing about the lane. */
export function isOfRemovedLane(node: { cluster: string; movedTo?: string }): boolean {
  return isRetired(node) && node.movedTo === REMOVED;
}

/** The cluster of which a record speaks: a server that was retired from it names it, too, and is no node of it. */
export function clusterNamed(cluster: string): string {
  return cluster.replace(RETIRED, '');
}
