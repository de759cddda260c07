// The stream that Ink draws into. The frames go to the screen (screen.ts), and nothing else reaches the terminal.
import { EventEmitter } from 'node:events';

/** Stands between Ink and the terminal. In its debug mode Ink writes every frame whole. */
export class FrameSink extends EventEmitter {
  columns = 80;
  rows = 24;
  readonly isTTY = false;
  private open = true;

  constructor(private readonly draw: (frame: string) => void) {
    super();
  }

  readonly write = (text: string): boolean => {
    if (this.open && !text.startsWith('\u001b[?')) this.draw(text);
    return true;
  };

  close(): void {
    this.open = false;
  }
}
