// How is a run shown to people? `narrate` prints its history line by line. `asTest` prints a scenario as code for
// test/scenarios.
import type { Anomaly, Entry, History } from './history.js';
import type { Scenario } from './scenario.js';

/** One line for each entry that matters. `all` also shows every call that a node ran. */
export function narrate(history: History, options: { all?: boolean; from?: number } = {}): string[] {
  const lines: string[] = [];
  for (const entry of history.entries) {
    if (entry.t < (options.from ?? 0)) continue;
    const text = lineOf(entry, options.all === true);
    if (text) lines.push(`${(entry.t / 1000).toFixed(4).padStart(9)} ${text}`);
  }
  return lines;
}

function lineOf(entry: Entry, all: boolean): string {
  switch (entry.is) {
    case 'fault':
      return `!! ${entry.text}`;
    case 'trouble':
      return `## ${entry.who} ${entry.kind}: ${entry.text}`;
    case 'event': {
      const { type, ...rest } = entry.event;
      if (type === 'committed' && !all) return '';
      return `${entry.who} ${type} ${Object.entries(rest)
        .map(([name, value]) => `${name}=${name === 'hash' ? String(value).slice(0, 8) : String(value)}`)
        .join(' ')}`;
    }
    case 'op':
      if (!all && (entry.script === 'write_block' || entry.script === 'release_lock' || entry.script === 'backfill'))
        return '';
      return (
        `   ${entry.node} ${entry.script} by ${entry.owner} epoch ` +
        `${entry.epoch}${entry.height ? ` height ${entry.height} ${entry.hash.slice(0, 8)} as ${entry.entryEpoch}` : ''} ` +
        `→ ${entry.outcome} (node at ${entry.nodeEpoch}, ` +
        `${entry.claimant || 'nobody'})${entry.stray ? ' [second copy]' : ''}`
      );
    case 'submit':
      return all ? `   ${entry.client} submits ${entry.keys.join(', ')} to ${entry.who}` : '';
    case 'answer':
      return all
        ? `   ${entry.client} ${entry.key} at ${entry.who}: ${entry.outcome} ` +
            `${entry.receipt ? JSON.stringify(entry.receipt) : entry.why}`
        : '';
    case 'confirm':
      return all ? `   ${entry.who} confirms head ${entry.height} in epoch ${entry.epoch}` : '';
    case 'operator-task':
      return `${entry.who} seq ${entry.verb} → ${entry.code}${entry.text ? `: ${entry.text}` : ''}`;
    case 'read':
    case 'tail':
    case 'status':
      return '';
  }
}

export function anomalyLines(anomalies: readonly Anomaly[]): string[] {
  return anomalies
    .slice(0, 10)
    .flatMap(({ checker, what, witness }) => [
      `${checker}: ${what}`,
      ...witness.slice(0, 4).map((one) => `    ${JSON.stringify(one)}`),
    ]);
}

/** A test with this scenario, as source text. */
export function asTest(scenario: Scenario, title: string): string {
  const { processes, faults, ...rest } = scenario;
  const one = (value: unknown): string =>
    JSON.stringify(value)
      .replace(/"([a-zA-Z]+)":/g, ' $1: ')
      .replace(/,/g, ',')
      .replace(/"/g, "'")
      .replace(/}$/, ' }');
  return [
    `it(${JSON.stringify(title)}, async () => {`,
    `  const { history } = await run({`,
    `    ${one(rest).slice(1, -1).trim()},`,
    '    processes: [',
    ...processes.map((plan) => `      ${one(plan)},`),
    '    ],',
    '    faults: [',
    ...faults.map((fault) => `      ${one(fault)},`),
    '    ],',
    '  });',
    '  expect(check(history)).toEqual([]);',
    '});',
  ].join('\n');
}
