// Processor time and memory of any process, from /proc. Linux only; 0 elsewhere.
import { readFileSync } from 'node:fs';

const MB = 1024 * 1024;

/** utime + stime in ms, and resident memory in MB. */
export function usage(pid: number): { cpuMs: number; rssMb: number } {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, rssMb: (Number(fields[21]) * 4096) / MB };
  } catch {
    return { cpuMs: 0, rssMb: 0 };
  }
}

/** The process's peak resident memory, MB. */
export function peakMb(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
