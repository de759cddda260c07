// No sentence of the documents is longer than forty words. Tables, code blocks and generated pages are not sentences.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { paragraphs, sentences, wordCount } from '../support/prose.js';

const root = resolve(import.meta.dirname, '../..');
const LONGEST = 40;
/** Made from the program by scripts/build.mjs. */
const GENERATED = new Set(['docs/COMMANDS.md']);

const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'examples/README.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true }).map((name) => `docs/${String(name)}`),
].filter((file) => file.endsWith('.md') && !GENERATED.has(file) && existsSync(join(root, file)));

function tooLong(markdown: string): string[] {
  return paragraphs(markdown).flatMap(({ line, text }) =>
    sentences(text)
      .map((sentence) => ({ sentence, words: wordCount(sentence) }))
      .filter(({ words }) => words > LONGEST)
      .map(({ sentence, words }) => `line ${line}, ${words} words: ${sentence}`),
  );
}

describe('sentences', () => {
  const forty = Array.from({ length: 40 }, () => 'word').join(' ');
  test.each([
    ['forty words', `${forty}.`, 0],
    ['forty-one words', `${forty} word.`, 1],
    ['two sentences', `${forty}. ${forty}.`, 0],
    ['a sentence over several lines', `${forty}\n${forty}.`, 1],
    ['list items', `- ${forty}\n- ${forty}`, 0],
    ['a list item that goes on', `1. ${forty}\n   ${forty}`, 1],
    ['inline code is one word', `${forty.slice(5)} \`seq status -c lab. And more\`.`, 0],
    ['a table row', `| ${forty} | ${forty} |`, 0],
    ['a code block', `\`\`\`sh\n${forty} ${forty}\n\`\`\``, 0],
    ['a link counts by its text', `${forty.slice(5)} [text](https://example.com/a b c).`, 0],
    ['an abbreviation ends nothing', `${forty}, e.g. this.`, 1],
  ])('checker: %s', (_, markdown, count) => {
    expect(tooLong(markdown)).toHaveLength(count);
  });

  test.each(pages)(`%s → no sentence over ${LONGEST} words`, (file) => {
    expect(tooLong(readFileSync(join(root, file), 'utf8'))).toEqual([]);
  });
});
