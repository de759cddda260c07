// "Did you mean": the known words nearest to a mistyped one. Pure.

/** Edits (insert, delete, replace, swap of neighbours) from one word to the other. */
function distance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const up = rows[i - 1] as number[];
      let least = Math.min(
        (up[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (up[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1),
      );
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        least = Math.min(least, ((rows[i - 2] as number[])[j - 2] as number) + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return (rows[from.length] as number[])[to.length] as number;
}

/** At most three, nearest first; none when nothing is near. */
export function suggest(word: string, known: readonly string[]): string[] {
  const most = Math.max(1, Math.floor(word.length / 3));
  return [...new Set(known)]
    .map((each) => ({
      each,
      far: each.startsWith(word) && word.length > 1 ? 0.5 : distance(word.toLowerCase(), each.toLowerCase()),
    }))
    .filter(({ far }) => far <= most)
    .sort((a, b) => a.far - b.far || a.each.localeCompare(b.each))
    .slice(0, 3)
    .map(({ each }) => each);
}
