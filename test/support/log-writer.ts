// A process that logs and ends at once, for tests of what arrives at the other end. argv: many | pretty | unread.
import { openLog } from '../../src/core/log/log.js';

const mode = process.argv[2];
const log = await openLog({ id: 'a', ...(mode === 'pretty' ? { pretty: true, colour: false } : {}) });
if (mode === 'many') {
  for (let at = 0; at < 5000; at += 1) log.line('info', `line ${at}`);
  log.close({ code: 'STORE_FAILED', reason: 'by r1' });
  process.exit(3);
} else if (mode === 'pretty') {
  log.event({ type: 'role', from: 'follower', to: 'leader', epoch: 4, reason: 'won' });
  log.close({ code: 'SIGTERM', reason: 'asked' });
  process.exit(0);
} else {
  // The parent says when it has closed its end.
  process.stdin
    .once('end', () => {
      for (let at = 0; at < 100; at += 1) log.line('info', 'x'.repeat(1000));
      log.close({ code: 'STOPPED', reason: 'r' });
      process.exit(log.lost > 0 ? 9 : 1);
    })
    .resume();
}
