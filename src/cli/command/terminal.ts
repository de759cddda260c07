// What may this process do with the terminal: ask a question, use colour?
import { asSwitch } from '../config/settings.js';

/** Questions need a terminal on stdin and stderr. */
export function mayAsk(env: NodeJS.ProcessEnv): boolean {
  return Boolean(process.stdin.isTTY && process.stderr.isTTY) && !truthy(env['SEQ_NO_INPUT']);
}

/** Throws when SEQ_NO_COLOR cannot be read. */
export function mayColour(env: NodeJS.ProcessEnv): boolean {
  return takesColour(env, process.stdout) && !truthy(env['SEQ_NO_COLOR']);
}

/** For errors: never throws. */
export function takesColour(env: NodeJS.ProcessEnv, stream: { isTTY?: boolean }): boolean {
  return Boolean(stream.isTTY) && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

function truthy(text: string | undefined): boolean {
  return text !== undefined && text !== '' && asSwitch(text, 'environment');
}
