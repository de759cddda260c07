// Does a thread of this process wait for a disk that hangs? Node waits for its threads before it exits, so such a
// process would never end by itself. The entry point ends it by a signal then (bin/run.js).
let hangs = false;

export function threadHangs(): void {
  hangs = true;
}

export function anyThreadHangs(): boolean {
  return hangs;
}
