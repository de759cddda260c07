// How long a test waits for something that must happen. A machine that others use may be ten times slower than a quiet
// one, so only what stands still reaches this limit. bench/ measures how fast things are.
export const STANDSTILL_MS = 120_000;
