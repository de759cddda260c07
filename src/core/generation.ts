// A cluster's name is `<clusterId>.<generation>` (docs/PROTOCOL.md section 2). A recovery keeps the id and raises the
// generation. All code that splits the name does it here.

/** The id that all generations of a cluster share. It names the genesis block. */
export function familyOf(cluster: string): string {
  return cluster.slice(0, cluster.lastIndexOf('.'));
}

/** Each recovery adds one. No recovery can have written a larger number. */
const MAX_GENERATION = 2 ** 31;

/** 0 when the name has no generation that a recovery can have written. */
export function generationOf(cluster: string): number {
  const generation = Number(cluster.slice(cluster.lastIndexOf('.') + 1));
  return generation <= MAX_GENERATION ? generation : 0;
}

/** The cluster of which a record speaks: a server that was retired from it names it, too, and is no node of it. */
export function clusterNamed(cluster: string): string {
  return cluster.replace(/^retired:/, '');
}
