// `--fields a,b.c` on JSON data: keeps the named paths, through lists. Pure.

function pick(value: unknown, path: string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  if (Array.isArray(value)) {
    const kept = value.map((entry) => pick(entry, path));
    return kept.every((entry) => entry === undefined) && value.length > 0
      ? undefined
      : kept.map((entry) => entry ?? {});
  }
  if (value === null || typeof value !== 'object' || !(name in value)) return undefined;
  const inner = pick((value as Record<string, unknown>)[name], rest);
  return inner === undefined ? undefined : { [name]: inner };
}

function merge(left: unknown, right: unknown): unknown {
  if (left === undefined) return right;
  if (Array.isArray(left) && Array.isArray(right)) return left.map((entry, at) => merge(entry, right[at]));
  if (left && right && typeof left === 'object' && typeof right === 'object') {
    const joined: Record<string, unknown> = { ...left };
    for (const [key, value] of Object.entries(right)) joined[key] = merge(joined[key], value);
    return joined;
  }
  return right;
}

/** The data with only these fields, and the fields that do not occur in it. */
export function pickFields(data: unknown, fields: string[]): { data: unknown; unknown: string[] } {
  let kept: unknown;
  const unknown: string[] = [];
  for (const field of fields) {
    const part = pick(data, field.split('.'));
    if (part === undefined) unknown.push(field);
    else kept = merge(kept, part);
  }
  return { data: kept ?? null, unknown };
}
