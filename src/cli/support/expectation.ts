// --expect-leader and --expect-epoch as the scripts on the nodes check them.
import type { Expectation } from '../../core/protocol/types.js';

export function expectationOf(flags: {
  'expect-leader'?: string | undefined;
  'expect-epoch'?: number | undefined;
}): Expectation {
  const { 'expect-leader': leader, 'expect-epoch': epoch } = flags;
  return { ...(leader === undefined ? {} : { leader }), ...(epoch === undefined ? {} : { epoch }) };
}
