// The log of `seq run`: JSON lines on a pipe or file, readable lines on a terminal. Writing is synchronous, so that the
// last line before the process ends is written. Events become lines (lines.ts), repeats are collapsed (collapse.ts),
// secrets are masked (redact.ts). The last line says why the process ended, with a code. A log reader that goes away
// never ends the sequencer: unwritten lines are counted as lost.
import pino, { type DestinationStream, type Logger } from 'pino';
import type { SeqEvent, StopCode } from '../events.js';
import { Collapser } from './collapse.js';
import { lineOf, type Level, type LogLine } from './lines.js';
import { redactor } from './redact.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogOptions {
  /** On every line as `id`. */
  id: string;
  level?: LogLevel;
  /** 1 is stdout. Ignored when `destination` is given. */
  fd?: number;
  /** Readable lines instead of JSON; default: whether `fd` is a terminal. */
  pretty?: boolean;
  colour?: boolean;
  /** Values that must never appear. */
  secrets?: readonly string[];
  repeatWindowMs?: number;
  /** For tests: where whole lines go, and the clock (ms) of the collapsing. */
  destination?: DestinationStream;
  now?: () => number;
}

export interface SeqLog {
  /** Every EmitEvent of the engine may be this function. */
  event(event: SeqEvent): void;
  /** `same`: repeats under this name are collapsed. */
  line(level: Level, message: string, fields?: Record<string, unknown>, same?: string): void;
  /** Writes the collapsed lines, then why the process ends, unless the last line said so already. Idempotent. */
  close(end: { code: StopCode; reason: string }): void;
  /** Lines that could not be written. */
  readonly lost: number;
}

const MAX_KINDS = 64;

export async function openLog(options: LogOptions): Promise<SeqLog> {
  const { repeatWindowMs = 10_000, now = () => performance.now() } = options;
  let lost = 0;
  const destination =
    options.destination ??
    (await openDestination(options, () => {
      lost += 1;
    }));
  const redact = redactor(options.secrets ?? []);
  const logger: Logger = pino(
    {
      level: options.level ?? 'info',
      base: { id: options.id, pid: process.pid },
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  let stopped = false;
  let closed = false;

  const write = ({ level, message, fields }: LogLine, repeated?: number): void => {
    if (!logger.isLevelEnabled(level)) return;
    try {
      logger[level](
        redact(repeated === undefined ? fields : { ...fields, repeated }),
        redact(
          repeated === undefined ? message : `${message} (repeated ${repeated} ${repeated === 1 ? 'time' : 'times'})`,
        ),
      );
    } catch {
      lost += 1;
    }
  };
  const collapser = new Collapser<LogLine>({
    windowMs: repeatWindowMs,
    maxKinds: MAX_KINDS,
    now,
    summary: ({ line, times }) => write(line, times),
  });
  const timer = setInterval(() => collapser.flush(), Math.max(50, repeatWindowMs / 2));
  timer.unref();

  return {
    get lost() {
      return lost;
    },
    event(event) {
      const line = lineOf(event);
      if (!logger.isLevelEnabled(line.level)) return;
      if (line.same !== undefined && !collapser.admit(line.same, line)) return;
      // Write the summaries of counted lines before the line that reports the end.
      if (event.type === 'stopped' || event.type === 'fatal-error') collapser.flush(true);
      write(line);
      stopped = event.type === 'stopped';
    },
    line(level, message, fields = {}, same?: string) {
      stopped = false;
      const line: LogLine = { level, message, fields };
      if (same === undefined || collapser.admit(same, line)) write(line);
    },
    close({ code, reason }) {
      if (closed) return;
      closed = true;
      clearInterval(timer);
      const pending = collapser.kinds;
      if (pending > 0 && !stopped) collapser.flush(true);
      if (!stopped) write(lineOf({ type: 'stopped', code, reason }));
    },
  };
}

async function openDestination(options: LogOptions, onLost: () => void): Promise<DestinationStream> {
  const fd = options.fd ?? 1;
  const terminal = (fd === 1 ? process.stdout : fd === 2 ? process.stderr : undefined)?.isTTY ?? false;
  const raw = pino.destination({ fd, sync: true });
  // EPIPE and similar errors: without a listener they would end the process.
  raw.on('error', onLost);
  if (!(options.pretty ?? terminal)) return raw;
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({
    messageKey: 'message',
    colorize: options.colour ?? terminal,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,id,event',
    singleLine: true,
  });
  return {
    write: (line: string) => {
      raw.write(format(line));
    },
  };
}
