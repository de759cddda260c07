// A process that logs and ends at once, for tests of what a reader of its output gets. argv: many | pretty | unread |
// stuck.
import { openLog } from '../../src/core/log/log.js';

const mode = process.argv[2];
const log = await openLog({ id: 'a', ...(mode === 'pretty' ? { pretty: true, colour: false } : {}) });
if (mode === 'many') {
  for (let at = 0; at < 5000; at += 1) log.line('info', `line ${at}`);
  await log.close({ code: 'STORE_FAILED', reason: 'by r1' });
  process.exit(3);
} else if (mode === 'pretty') {
  log.event({ type: 'role', from: 'follower', to: 'leader', epoch: 4, reason: 'won' });
  await log.close({ code: 'SIGTERM', reason: 'asked' });
  process.exit(0);
} else if (mode === 'stuck') {
  // Nobody reads its output. It reports on stderr that all is written and that it ends, and waits for a reader.
  for (let at = 0; at < 20_000; at += 1) log.line('info', `line ${at} ${'x'.repeat(200)}`);
  process.stderr.write(`through ${log.lost}\n`);
  process.stdin
    .once('end', () => {
      void log.close({ code: 'STOPPED', reason: 'r' }).then((all) => {
        process.stderr.write(`closed ${all}\n`);
        process.exit(all ? 0 : 9);
      });
    })
    .resume();
} else {
  // The parent sends this when it has closed its end.
  process.stdin
    .once('end', () => {
      for (let at = 0; at < 100; at += 1) log.line('info', 'x'.repeat(1000));
      void log.close({ code: 'STOPPED', reason: 'r' }).then(() => process.exit(log.lost > 0 ? 9 : 1));
    })
    .resume();
}
