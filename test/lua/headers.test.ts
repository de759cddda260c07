// The Lua files as texts: their headers against the typed table, and the passages they share against each other (no
// includes in Lua).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseReply } from '../../src/core/redis/replies.js';
import { luaDirectory, SCRIPTS } from '../../src/core/redis/scripts.js';

const dir = luaDirectory();
const names = Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[];
const texts = new Map(names.map((name) => [name, readFileSync(join(dir, `${name}.lua`), 'utf8')]));

function headerList(text: string, word: 'KEYS' | 'ARGV'): string[] {
  const line = text.split('\n').find((one) => one.startsWith(`-- ${word} `));
  return (line ?? '')
    .slice(`-- ${word} `.length)
    .split(' · ')
    .map((item, index) => {
      const [number, name = ''] = item.split(' ');
      expect(number, `${word} of ${item}`).toBe(String(index + 1));
      return name;
    });
}

test('lua: the directory holds exactly the scripts of the table', () => {
  expect(
    readdirSync(dir)
      .filter((file) => file.endsWith('.lua'))
      .sort(),
  ).toEqual(names.map((name) => `${name}.lua`).sort());
});

describe.each(names)('lua: %s', (name) => {
  const text = texts.get(name) ?? '';
  const spec = SCRIPTS[name];

  test('header names what the table sends', () => {
    expect(text.startsWith(`-- ${name}: `)).toBe(true);
    expect(headerList(text, 'KEYS')).toEqual([...spec.keys]);
    expect(headerList(text, 'ARGV')).toEqual(['cluster', 'node', ...spec.args]);
    expect(text).toMatch(/\n-- accepted: incarnation/);
    expect(text).toMatch(/\n-- refused: /);
    expect(text).toContain('docs/PROTOCOL.md section');
  });

  test('every refusal in the code is in the header', () => {
    const refusals = text.split('\n').find((line) => line.startsWith('-- refused: ')) ?? '';
    for (const [, reason] of text.matchAll(/'refused', '([A-Z_]+)'/g)) {
      if (name === 'inspect') throw new Error('inspect refuses nothing');
      expect(refusals, `${reason} is missing in the line '-- refused:' of lua/${name}.lua`).toContain(reason as string);
    }
  });

  test('every refusal in the code can be read back', () => {
    for (const [, reason] of text.matchAll(/'refused', '([A-Z_]+)'/g))
      expect(
        parseReply(['refused', reason], () => null).outcome,
        `${reason} is not in SCRIPT_REASONS (src/core/protocol/types.ts): callers would take it for no answer`,
      ).toBe('refused');
  });

  test('keys and arguments are bound to names at once, and only there', () => {
    const code = text.split('\n').filter((line) => !line.startsWith('--'));
    const binding = code.slice(0, code.indexOf('')).join('\n');
    const rest = code.slice(code.indexOf('')).join('\n');
    spec.keys.forEach((key, index) => {
      expect(binding).toContain(`KEYS[${index + 1}]`);
      expect(binding).toContain(`${key}_key`);
    });
    expect(rest).not.toMatch(/KEYS\[|ARGV\[/);
    expect(rest).not.toMatch(/\.\. *(head|epoch|floor|height)\b/);
  });

  test('no write before the last check: the first one is a pcall that is looked at, later ones go through must', () => {
    const code = text
      .split('\n')
      .filter((line) => !line.startsWith('--'))
      .join('\n');
    const plainWrites = [
      ...code.matchAll(/redis\.call\('(SET|DEL|HSET|HDEL|XADD|XDEL|XTRIM|PEXPIRE|RENAME|INCR|ZADD|ZREM\w*|PUBLISH)'/g),
    ];
    expect(plainWrites.map((one) => one[0])).toEqual([]);
    const firstMust = code.indexOf("  must('") === -1 ? code.indexOf("\nmust('") : code.indexOf("must('");
    const firstWrite = code.indexOf('local first = redis.pcall(');
    if (firstMust >= 0) {
      expect(firstWrite).toBeGreaterThan(0);
      expect(firstWrite).toBeLessThan(firstMust);
      expect(code.slice(firstMust)).not.toContain("'refused'");
      // A plain call that fails here would look like a refusal in which nothing was executed.
      expect(code.slice(firstWrite)).not.toContain('redis.call(');
    }
  });
});

test('lua: passages marked as common are the same wherever they stand', () => {
  const known = new Map<string, { text: string; in: string }>();
  for (const [name, text] of texts) {
    for (const [, title = '', body = ''] of text.matchAll(/^ *-- common: ([^\n]+)\n([\s\S]*?)-- end common$/gm)) {
      const plain = body
        .split('\n')
        .map((line) => line.trim())
        .join('\n');
      const first = known.get(title);
      if (first === undefined) known.set(title, { text: plain, in: name });
      else expect(plain, `${title}: ${name} against ${first.in}`).toBe(first.text);
    }
  }
  expect(known.size).toBeGreaterThan(6);
});
