// Prints a length of time for people: one number, one unit.

export function duration(ms: number): string {
  const s = Math.round(ms / 1000);
  return s < 120
    ? `${s} s`
    : s < 7200
      ? `${Math.round(s / 60)} min`
      : s < 172_800
        ? `${Math.round(s / 3600)} h`
        : `${Math.round(s / 86_400)} days`;
}
