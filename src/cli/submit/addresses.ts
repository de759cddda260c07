// Where does `seq submit` send? To the addresses named with --http, else to those of the context and those that
// sequencers announce on the nodes.
import type { NodePort } from '../../core/ports.js';

/** The order does not matter: every address is asked who leads. */
export async function announcedAddresses(
  nodes: readonly NodePort[],
  limitMs: number,
  configured: readonly string[],
): Promise<{ urls: string[]; nodesAnswered: number }> {
  const replies = await Promise.all(nodes.map((node) => node.call({ script: 'inspect' }, limitMs)));
  const urls = new Set(configured);
  for (const reply of replies) {
    if (reply.outcome !== 'accepted') continue;
    for (const { url, role } of reply.value.sequencers) if (url !== '' && role !== 'stopping') urls.add(url);
  }
  return { urls: [...urls], nodesAnswered: replies.filter((reply) => reply.outcome === 'accepted').length };
}
