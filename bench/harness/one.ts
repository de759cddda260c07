// Runs one bench in a process of its own: node one.mjs NAME MODULE RESULT-FILE short|full [ONLY]. Its servers end with
// it, however it ends.
import { Collector } from './measuring.js';
import type { Bench } from './words.js';

const [name, module, file, form, only] = process.argv.slice(2) as [string, string, string, string, string | undefined];
for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const)
  process.on(signal, () => process.exit(code));

const { bench } = (await import(module)) as { bench: Bench };
const collector = new Collector(
  name,
  bench.title,
  form === 'short',
  only === undefined || only === '' ? null : only,
  file,
);
try {
  await bench.run(collector);
  const { tables, figures, ratios, skipped } = collector.outcome;
  if (only && tables.length + figures.length + ratios.length + skipped.length === 0)
    collector.skip(`no case has '${only}' in its name`);
  collector.end(null);
} catch (error) {
  collector.end(error instanceof Error ? error.message : String(error));
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
}
// End the process here, even when something (a client that reconnects, a pool) keeps the event loop alive.
process.exit(0);
