// Signals and deadlines as one AbortSignal. The first Ctrl-C (or SIGTERM, SIGHUP) cancels. The second one ends the
// process at once.
import { EXIT, type ExitCode } from '../../core/errors.js';

export class Interrupted extends Error {
  constructor(
    readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP',
    readonly exit: ExitCode,
  ) {
    super(`${signal} received`);
    this.name = 'Interrupted';
  }
}

export class DeadlinePassed extends Error {
  constructor(readonly limitMs: number) {
    super(`the limit of ${limitMs} ms passed`);
    this.name = 'DeadlinePassed';
  }
}

const EXITS = { SIGINT: EXIT.sigint, SIGTERM: EXIT.sigterm, SIGHUP: EXIT.sighup } as const;
const controller = new AbortController();

/** Aborted by the first signal, with an Interrupted as reason. */
export const interrupted: AbortSignal = controller.signal;

let hangup: (() => void) | null = null;

/** From here on SIGHUP calls `listener` and ends nothing. */
export function onHangup(listener: () => void): void {
  hangup = listener;
}

/** `end` ends the process at once with that code. bin/run.js provides it: nothing in src ends the process. */
export function listenForSignals(end: (code: number) => void): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (name === 'SIGHUP' && hangup !== null) return hangup();
      if (controller.signal.aborted) end(EXITS[name]);
      else controller.abort(new Interrupted(name, EXITS[name]));
    });
  }
}
