// Reads documents as prose: paragraphs and list items, and their sentences. Code blocks, tables, headings and link
// targets are left out. Tests of words and of sentence length share this.

/** One paragraph or list item, and the line at which it begins. */
export interface Paragraph {
  line: number;
  text: string;
}

const LIST_ITEM = /^\s*(?:[-*+]|\d+\.)\s+/;

export function paragraphs(markdown: string): Paragraph[] {
  const found: Paragraph[] = [];
  let open: Paragraph | null = null;
  let fenced = false;
  markdown.split('\n').forEach((line, at) => {
    if (/^\s*(```|~~~)/.test(line)) {
      fenced = !fenced;
      open = null;
    } else if (fenced || /^\s*($|\||#|<!--|>?\s*$|-{3,}\s*$)/.test(line)) {
      open = null;
    } else if (open === null || LIST_ITEM.test(line)) {
      open = { line: at + 1, text: line.replace(LIST_ITEM, '').trim() };
      found.push(open);
    } else {
      open.text += ` ${line.trim()}`;
    }
  });
  return found;
}

/**
 * The sentences of a paragraph. Inline code counts as one word. A full stop inside it, or in `e.g.`, ends no sentence.
 */
export function sentences(text: string): string[] {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`[^`]*`/g, (code) => code.replace(/\s+/g, '_').replace(/[.!?]/g, '·'))
    .replace(/\b(e\.g|i\.e|etc|vs)\./g, '$1·')
    .replace(/[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}(?=\s|$)/g, '')
    .split(/(?<=[.!?]["'”)]*)\s+/)
    .filter((sentence) => /[A-Za-z0-9]/.test(sentence));
}

export function wordCount(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[A-Za-z0-9]/.test(word)).length;
}
