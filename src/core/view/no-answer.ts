// When no node answered, there is no view of the cluster to judge. That is an expected failure, with every node's
// reason.
import { EXIT, SeqError } from '../errors.js';
import type { ClusterView } from './cluster-view.js';

export function refuseNoAnswer(view: ClusterView): void {
  if (view.answered > 0) return;
  const denied =
    view.nodes.length > 0 && view.nodes.every((n) => n.error?.code === 'NOAUTH' || n.error?.code === 'NOPERM');
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
    next: denied ? ['SEQ_USERNAME and SEQ_PASSWORD_FILE, or username and passwordFile in the context'] : view.next,
    retryable: !denied,
  });
}
