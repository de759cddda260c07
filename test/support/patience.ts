// How long a test waits for something that must happen. A machine that others use may be ten times slower than a quiet
// one, so this says nothing about speed: only what stands still reaches it. How fast things are is measured by bench/.
export const STANDSTILL_MS = 120_000;
