// What do the sequencers' own logs say? Who led under which epoch, what was committed under it, and which alarms they
// raised.
import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { LeaderCommit, Term } from './history.js';

export interface LogFacts {
  entries: (LeaderCommit | Term)[];
  /** By code. */
  alarms: Map<string, { count: number; first: string }>;
  /** Lines of level fatal, and process ends that are bugs. */
  fatal: string[];
}

export async function readLogFacts(who: string, file: string): Promise<LogFacts> {
  const facts: LogFacts = { entries: [], alarms: new Map(), fatal: [] };
  if (!existsSync(file)) return facts;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const fields = parse(line);
    if (fields === null) continue;
    const { event, epoch, height, hash, level, message } = fields;
    if (event === 'role' && fields['to'] === 'leader') facts.entries.push({ is: 'term', who, epoch: Number(epoch) });
    else if (event === 'term-renewed') facts.entries.push({ is: 'term', who, epoch: Number(fields['to']) });
    else if (event === 'committed' && fields['by'] === 'leader')
      facts.entries.push({ is: 'commit', who, epoch: Number(epoch), height: Number(height), hash: String(hash) });
    else if (event === 'alarm') {
      const code = String(fields['code']);
      const known = facts.alarms.get(code);
      if (known === undefined) facts.alarms.set(code, { count: 1, first: String(message) });
      else known.count++;
    }
    if (level === 'fatal') facts.fatal.push(String(message));
  }
  return facts;
}

/** A line cut off by SIGKILL, or a line that is not from the log, is ignored. */
function parse(line: string): { [name: string]: unknown } | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line) as { [name: string]: unknown };
  } catch {
    return null;
  }
}
