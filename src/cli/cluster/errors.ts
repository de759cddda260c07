// Errors in how a cluster was named: no nodes, one server twice, an unknown node, another program's keys. Each error
// ends a command before anything is changed.
import { EXIT, SeqError } from '../../core/errors.js';
import { serverOf } from '../../core/protocol/types.js';
import { withoutSecrets } from '../support/node-url.js';

/** `contexts`: the names that the config file knows. */
export function noCluster(contexts: string[]): SeqError {
  const known = contexts.slice(0, 3);
  return new SeqError({
    code: 'NO_CLUSTER',
    exit: EXIT.config,
    message: 'no cluster is named',
    why: 'there is neither --node, nor SEQ_NODE, nor a context in use',
    changed: 'nothing',
    next: [
      ...(known.length > 0 ? known.map((name) => `seq context use ${name}`) : ['seq lab up']),
      'seq context ls',
      'add --node redis://HOST:PORT for each node, or -c CONTEXT',
    ],
  });
}

/** `unknown`: the ids that --on names and that the cluster does not have. */
export function nodeNotFound(unknown: string[], known: string[]): SeqError {
  return new SeqError({
    code: 'NODE_NOT_FOUND',
    exit: EXIT.notFound,
    message: `--on: there is no node ${unknown.join(', ')}`,
    why: `the cluster's nodes are ${known.join(', ')}`,
    changed: 'nothing',
    next: ['seq node list', `choose from ${known.join(', ')}`],
  });
}

/** Throws 78 when two nodes have the same address or the same id. */
export function refuseDuplicates(nodes: { id: string | null; url: string }[]): void {
  const seen = new Map<string, number>();
  nodes.forEach((node, at) => {
    for (const key of node.id === null ? [node.url] : [node.url, `id ${node.id}`]) {
      const first = seen.get(key);
      if (first !== undefined) {
        throw new SeqError({
          code: 'DUPLICATE_NODE',
          exit: EXIT.config,
          message: `nodes ${first + 1} and ${at + 1} are both ${withoutSecrets(key)}`,
          why: 'one server counted twice would make a quorum out of a minority',
          changed: 'nothing',
          next: ['name every node once, each with its own address and id'],
        });
      }
      seen.set(key, at);
    }
  });
}

/**
 * Throws 78 when two addresses lead to one server (same run id): it would vote twice. Call this wherever the views of
 * all nodes are at hand.
 */
export function refuseSameServer(views: Iterable<{ url: string; runId: string }>): void {
  const seen = new Map<string, string>();
  for (const { url, runId: memory } of views) {
    const runId = serverOf(memory);
    if (runId === '') continue;
    const first = seen.get(runId);
    if (first !== undefined) {
      throw new SeqError({
        code: 'SAME_SERVER',
        exit: EXIT.config,
        message: `${first} and ${url} are the same server (run id ${runId.slice(0, 8)}…)`,
        why: 'one server counted twice would make a quorum out of a minority',
        changed: 'nothing',
        next: ['name every server once'],
      });
    }
    seen.set(runId, url);
  }
}

/** `seq` never writes to nodes that hold another program's keys. */
export function readOnlyDialect(command: string): SeqError {
  return new SeqError({
    code: 'READ_ONLY_DIALECT',
    exit: EXIT.safety,
    message: `${command} does not run against the streams of another program`,
    why:
      'with --dialect fuel nothing is ever written: those keys belong to another program, which has ' +
      'its own rules and its own tools',
    changed: 'nothing',
    next: [
      'read with seq status, seq stream inspect, verify or diff, and seq check',
      'leave --dialect (SEQ_DIALECT, the setting in the context) out to act on a cluster of seq',
    ],
  });
}
