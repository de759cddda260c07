// How is prose broken on one of the process's own outputs? At words on a terminal. Not at all in a pipe, whose reader
// has no width.
import { whole } from '../present/text.js';
import type { Wrap } from '../present/wrap.js';

export async function terminalWrap(stream: { isTTY?: boolean; columns?: number }): Promise<Wrap> {
  if (!stream.isTTY || !stream.columns) return whole;
  const { wrapTo } = await import('../present/wrap.js');
  return wrapTo(stream.columns);
}
