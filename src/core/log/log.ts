// The log of `seq run`: JSON lines on a pipe or file, readable lines on a terminal. Events become lines (lines.ts),
// repeats are collapsed (collapse.ts), secrets are masked (redact.ts). The last line says why the process ended, with a
// code. A log reader that goes away or stands still never stops the sequencer (destination.ts). Lines that were left
// out are counted, and the number is logged when lines are taken again.
import pino, { type DestinationStream, type Logger } from 'pino';
import type { SeqEvent, StopCode } from '../events.js';
import { Collapser } from './collapse.js';
import { openDestination, type LogDestination } from './destination.js';
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
  /** For the sequencer of one lane among many in this process. Its end is not the end of the process. */
  laneEvent(lane: string, event: SeqEvent): void;
  /** `same`: repeats under this name are collapsed. */
  line(level: Level, message: string, fields?: Record<string, unknown>, same?: string): void;
  /**
   * Writes the collapsed lines, then why the process ends, unless the last line said so already. Idempotent. False: the
   * reader of the log did not take all lines in time.
   */
  close(end: { code: StopCode; reason: string }): Promise<boolean>;
  /** Lines that could not be written. */
  readonly lost: number;
  /** A thread waits for the disk of the log. */
  readonly hangs: boolean;
}

const MAX_KINDS = 64;
/** How long the end of the process waits for the reader of its log. */
const LAST_LINES_MS = 1000;

export async function openLog(options: LogOptions): Promise<SeqLog> {
  const { repeatWindowMs = 10_000, now = () => performance.now() } = options;
  let lost = 0;
  const out = options.destination
    ? null
    : openDestination(options.fd ?? 1, (left) =>
        write({
          level: 'warn',
          message: `${left} log ${left === 1 ? 'line was' : 'lines were'} left out: nothing took the log meanwhile`,
          fields: { code: 'LOG_LINES_LOST', lost: left },
        }),
      );
  const destination = options.destination ?? (await formatted(out as LogDestination, options));
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
    get hangs() {
      return out?.writing ?? false;
    },
    get lost() {
      return lost + (out?.lost ?? 0);
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
    laneEvent(lane, event) {
      const { level, message, fields, same } = lineOf(event);
      if (!logger.isLevelEnabled(level)) return;
      const line: LogLine = {
        level: level === 'fatal' ? 'error' : level,
        message: `${lane}: ${message}`,
        fields: { ...fields, lane },
      };
      if (same === undefined || collapser.admit(`${lane} ${same}`, line)) write(line);
    },
    line(level, message, fields = {}, same?: string) {
      stopped = false;
      const line: LogLine = { level, message, fields };
      if (same === undefined || collapser.admit(same, line)) write(line);
    },
    close({ code, reason }) {
      if (!closed) {
        closed = true;
        clearInterval(timer);
        const pending = collapser.kinds;
        if (pending > 0 && !stopped) collapser.flush(true);
        if (!stopped) write(lineOf({ type: 'stopped', code, reason }));
      }
      return out?.drained(LAST_LINES_MS) ?? Promise.resolve(true);
    },
  };
}

/** Readable lines for a terminal, JSON lines for everything else. */
async function formatted(out: LogDestination, options: LogOptions): Promise<DestinationStream> {
  const fd = options.fd ?? 1;
  const terminal = (fd === 1 ? process.stdout : fd === 2 ? process.stderr : undefined)?.isTTY ?? false;
  if (!(options.pretty ?? terminal)) return out;
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({
    messageKey: 'message',
    colorize: options.colour ?? terminal,
    translateTime: 'SYS:HH:MM:ss.l',
    // The words of a line say these already.
    ignore: 'pid,id,event,reason,why,node,state,from,to,height,items,by,kind,outcome,cluster,lane,url',
    singleLine: true,
  });
  return { write: (line: string) => out.write(format(line)) };
}
