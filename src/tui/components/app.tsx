// The screen as Ink sees it: one text per band, each with its own selector. A band whose text has not changed is not
// drawn again.
import { Box, Text, Transform, useInput } from 'ink';
import { useSyncExternalStore } from 'react';
import { bands, type Band as BandPlace } from '../layout.js';
import type { Key } from '../model-ui.js';
import type { WatchStore } from '../store.js';
import { keysOf } from '../keys.js';

export function App({ store, onKey }: { store: WatchStore; onKey: (key: Key) => void }) {
  // A string, so that an unchanged layout is an equal snapshot.
  const plan = useSyncExternalStore(store.subscribe, () =>
    bands(store.state)
      .map((band) => `${band.kind} ${band.height}`)
      .join(','),
  );
  useInput((input, key) => {
    for (const one of keysOf(input, key, store.state.ui.typing !== null)) onKey(one);
  });
  return (
    <Box flexDirection="column">
      {plan.split(',').map((text) => {
        const [kind = '', height = ''] = text.split(' ');
        return <Band key={kind} store={store} band={{ kind: kind as BandPlace['kind'], height: Number(height) }} />;
      })}
    </Box>
  );
}

/**
 * The rows are passed in as the transformation of a placeholder that never changes. Ink remembers the size of every
 * text that it ever measured. A screen with new text every second would use more and more memory.
 */
function Band({ store, band }: { store: WatchStore; band: BandPlace }) {
  const rows = useSyncExternalStore(store.subscribe, () => store.text(band)).split('\n');
  return (
    <Transform transform={(_line, index) => rows[index] ?? ''}>
      <Text>{Array.from({ length: band.height }, () => '.').join('\n')}</Text>
    </Transform>
  );
}
