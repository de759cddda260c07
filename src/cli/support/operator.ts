// Who makes a change? For the audit record: user, host, and the command without secrets. Also finds those secrets.
import { hostname, userInfo } from 'node:os';
import type { Operator } from '../../core/nodes/audit-record.js';
import { commandLine } from './confirm.js';

export function operatorOf(id: string, argv: readonly string[]): Operator {
  return { by: `${userName()}@${hostname()}`, host: hostname(), command: commandLine(id, argv).slice(0, 500) };
}

/** A user id without an entry in the system's user list has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return process.env['USER'] || String(process.getuid?.() ?? 'unknown');
  }
}

interface WithPassword {
  password?: string | undefined;
  sentinel?: { password?: string | undefined } | undefined;
}

/** The passwords that this command was configured with. */
export function secretsOf({ addresses }: { addresses: readonly WithPassword[] }): string[] {
  return addresses.flatMap(({ password, sentinel }) =>
    [password, sentinel?.password].filter((secret) => secret !== undefined),
  );
}
