// When no node answered, there is no view of the cluster to judge. That is an expected failure, with every node's
// reason.
import { EXIT, SeqError } from '../errors.js';
import type { NodeReply } from '../protocol/types.js';
import type { ClusterView, NodeRow } from './cluster-view.js';
import { reachCommand } from './reach-command.js';

/** A node that answers with one of these refuses us, and perhaps nobody else. */
export const DENIED: ReadonlySet<string> = new Set(['NOAUTH', 'NOPERM']);

/** What to give us so that these nodes let us in: a password, or the rights that each of them names. */
export function deniedNext(denied: readonly NodeRow[]): string[] {
  if (denied.some((n) => n.error?.code === 'NOAUTH'))
    return ['SEQ_USERNAME and SEQ_PASSWORD_FILE, or username and passwordFile in the context'];
  return denied.map(({ url, error }) => grantOn(url, error?.grant));
}

/** `denied`: commands, each followed by what the server says of it. */
export function deniedText(user: string, denied: readonly string[]): string {
  const commands = denied.map((one) => one.split(':', 1)[0]);
  const more = commands.length > 6 ? ` and ${commands.length - 6} more commands` : '';
  const pattern = denied.length === 1 || /(key|channel)s?\b/.test(denied[0] ?? '') ? (denied[0] ?? '') : '';
  const why = pattern === '' ? '' : ` (${pattern.slice(pattern.indexOf(':') + 2)})`;
  return `user ${user} may not run ${commands.slice(0, 6).join(', ')}${more}${why}`;
}

/** The command that gives the rights. Where a bundle of an older version holds none: the command that prints them. */
export function grantOn(url: string, grant: string | undefined): string {
  return grant === undefined || grant === '' ? 'seq doctor --acl' : `redis-cli -u ${url} ${grant}`;
}

/** What helps with one server that does not let us ask it. */
export function nextForServer(url: string, reply: NodeReply<unknown>): string {
  if (reply.outcome !== 'refused') return reachCommand(url, reply.outcome === 'unknown' ? reply.cause : '');
  if (reply.reason === 'NOPERM') return grantOn(url, reply.detail.grant);
  if (reply.reason !== 'NOAUTH') return `seq explain ${reply.reason}`;
  return 'give user and password of this server (SEQ_USERNAME and SEQ_PASSWORD_FILE, or in the context)';
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
