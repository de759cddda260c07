// How is a failing scenario made small? Faults are dropped one by one, then clients, then time. A change is kept if the
// same checker still finds the same kind of anomaly.
import { check } from './checkers/index.js';
import type { Anomaly } from './history.js';
import type { Scenario } from './scenario.js';
import { run } from './world.js';

export async function minimise(
  scenario: Scenario,
  checker: string,
  maxRuns = 80,
): Promise<{ scenario: Scenario; anomalies: Anomaly[]; runs: number }> {
  let best = scenario;
  let anomalies: Anomaly[] = [];
  let runs = 0;
  let wanted: string | null = null;
  const fails = async (candidate: Scenario): Promise<boolean> => {
    if (runs >= maxRuns) return false;
    runs++;
    const found = check((await run(candidate)).history).filter(
      (one) => one.checker === checker && (wanted === null || kindOf(one) === wanted),
    );
    if (found.length === 0) return false;
    wanted ??= kindOf(found[0]!);
    best = candidate;
    anomalies = found;
    return true;
  };
  if (!(await fails(scenario))) return { scenario, anomalies, runs };
  for (let changed = true; changed && runs < maxRuns;) {
    changed = false;
    for (let i = best.faults.length - 1; i >= 0; i--) {
      if (await fails({ ...best, faults: best.faults.filter((_, at) => at !== i) })) changed = true;
    }
    if (best.clients > 0 && (await fails({ ...best, clients: 0 }))) changed = true;
    if (
      best.processes.length > 2 &&
      !best.faults.some((fault) => 'process' in fault && fault.process === best.processes[2]!.id) &&
      (await fails({ ...best, processes: best.processes.slice(0, 2) }))
    )
      changed = true;
    const last = Math.max(1000, ...best.faults.map((fault) => fault.at)) + 1000;
    if (last < best.healAt && (await fails({ ...best, healAt: last }))) changed = true;
  }
  return { scenario: best, anomalies, runs };
}

/** The kind of an anomaly: its text without heights, names and times. A smaller scenario must show the same kind. */
function kindOf(anomaly: Anomaly): string {
  return anomaly.what
    .split('\n')[0]!
    .replace(/seq-[a-c]|\b[cr]\d+\b|[0-9a-f]{8,}/g, '_')
    .replace(/\d+/g, '#');
}
