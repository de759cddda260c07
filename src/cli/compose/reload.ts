// SIGHUP: reads again what is replaced while a sequencer runs. Tokens, certificate and authority of HTTP count from now
// on, and open connections go on. Passwords and certificates of nodes are read at every connect anyway. They are read
// here to tell at once which of them cannot be used.
import { SeqError } from '../../core/errors.js';
import type { SeqLog } from '../../core/log/log.js';
import type { HttpFiles } from '../../core/serve/http-files.js';
import type { HttpServer } from '../../core/serve/server.js';
import type { NodeAddress } from '../cluster/address.js';

export interface Reloaded {
  files: HttpFiles;
  http?: HttpServer;
  nodes: readonly NodeAddress[];
  log: SeqLog;
}

export async function reload({ files, http, nodes, log }: Reloaded): Promise<void> {
  const problems: unknown[] = files.reload();
  if (files.certificate) http?.useCertificate(files.certificate);
  for (const read of await Promise.allSettled(nodes.map((node) => Promise.resolve(node.renew?.()))))
    if (read.status === 'rejected') problems.push(read.reason);
  for (const problem of problems) {
    const { message } = problem as Error;
    const why = problem instanceof SeqError ? `: ${problem.why}` : '';
    const code = problem instanceof SeqError ? problem.code : 'BUG';
    log.line('warn', `SIGHUP: ${message}${why}; what was read last goes on`, { event: 'hangup', code });
  }
  const whole = problems.length === 0 ? 'all were read' : `${problems.length} could not be used`;
  log.line('info', `SIGHUP: tokens, certificates and passwords were read again: ${whole}`, { event: 'hangup' });
}
