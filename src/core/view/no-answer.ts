// When no node answered, there is no view of the cluster to judge. That is an expected failure, with every node's
// reason.
import { EXIT, SeqError } from '../errors.js';
import type { ClusterView, NodeRow } from './cluster-view.js';

/** A node that answers with one of these refuses us, and perhaps nobody else. */
export const DENIED: ReadonlySet<string> = new Set(['NOAUTH', 'NOPERM']);

/** What to give us so that these nodes let us in. */
export function deniedNext(denied: readonly NodeRow[]): string[] {
  return denied.some((n) => n.error?.code === 'NOAUTH')
    ? ['SEQ_USERNAME and SEQ_PASSWORD_FILE, or username and passwordFile in the context']
    : ['give the user the rights that seq doctor --acl prints'];
}

export function refuseNoAnswer(view: ClusterView): void {
  if (view.answered > 0) return;
  const denied = view.nodes.length > 0 && view.nodes.every((n) => DENIED.has(n.error?.code ?? ''));
  throw new SeqError({
    code: denied ? 'NODE_DENIED' : 'NO_ANSWER',
    exit: denied ? EXIT.denied : EXIT.noQuorum,
    message:
      `none of ${view.configured} nodes ${denied ? 'lets us in' : 'answered'}: ` +
      `${view.nodes.map((n) => `${n.id} (${n.url}): ${n.note}`).join('; ')}`,
    why: denied
      ? 'the user or password is missing or wrong, or the user may not run what is needed'
      : 'without an answer nothing is known of the cluster, neither good nor bad',
    changed: 'nothing',
    next: denied ? deniedNext(view.nodes) : view.next,
    retryable: !denied,
  });
}
