// Completes the commands of `next`, so that each runs as it stands: it names the same cluster and lane as the command
// that shows it. Pure. Whoever writes a `next` line need not know how the cluster was named.
import { withoutSecrets } from './node-url.js';
import { shellWord } from './meant.js';

/** How the present command line names its cluster. What it does not name comes from the same settings next time. */
export interface Target {
  context?: string | undefined;
  nodes?: readonly string[] | undefined;
  lane?: string | undefined;
}

/** Commands that ask no cluster, or bring their own. */
const NO_TARGET = /^seq (lab|context|explain|completion|chaos|config validate)\b/;
/** Help, and a file that names its cluster and lane itself. */
const NEEDS_NOTHING = / (--help|-h|--from-bundle)\b/;
/** Settings that name a cluster are already there. */
const NAMES_CLUSTER = / (-c|--context|--node)[ =]/;
/** Their lanes are arguments. */
const OF_ALL_LANES = /^seq lane\b/;
const NAMES_LANE = / --lane[ =]/;

export function aimed(line: string, { context, nodes = [], lane }: Target): string {
  if (!/^seq [a-z]/.test(line) || NO_TARGET.test(line) || NEEDS_NOTHING.test(line)) return line;
  const [command = '', ...child] = line.split(' -- ');
  const added: string[] = [];
  if (!NAMES_CLUSTER.test(command)) {
    if (context !== undefined) added.push(`-c ${shellWord(context)}`);
    else added.push(...nodes.map((node) => `--node ${shellWord(withoutSecrets(node))}`));
  }
  if (lane !== undefined && lane !== '' && !NAMES_LANE.test(command) && !OF_ALL_LANES.test(command))
    added.push(`--lane ${shellWord(lane)}`);
  return [[command, ...added].join(' '), ...child].join(' -- ');
}
