// A cluster's name is `<clusterId>.<generation>` (docs/PROTOCOL.md section 2): a recovery keeps the id and raises the
// generation. Every place that takes the name apart does it here.

/** The id that all generations of a cluster share; it names the genesis block. */
export function familyOf(cluster: string): string {
  return cluster.slice(0, cluster.lastIndexOf('.'));
}

/** Each recovery counts one. A larger number was not written by one. */
const MAX_GENERATION = 2 ** 31;

/** 0 where the name bears none that a recovery can have written. */
export function generationOf(cluster: string): number {
  const generation = Number(cluster.slice(cluster.lastIndexOf('.') + 1));
  return generation <= MAX_GENERATION ? generation : 0;
}
