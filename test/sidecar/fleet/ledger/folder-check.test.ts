import type { StreamId } from '../../../../src/api/stream-id';
import { apiError } from '../../../../src/sidecar/errors';
import { createFolderCheck } from '../../../../src/sidecar/fleet/ledger/folder-check';
import type { LedgerRecord } from '../../../../src/sidecar/fleet/ledger/ledger-lines';

test('a file that cannot be read hides no others that were removed', () => {
  const record: LedgerRecord = { version: 1, revision: 1, tag: '"tag"' };
  const streams = ['removed', 'folder', 'wiped'] as StreamId[];
  const look = createFolderCheck(
    { records: () => streams.map((streamId) => [streamId, record] as const).values() },
    {
      read(streamId) {
        if (streamId === 'folder') throw apiError('key_files_not_readable', 'There is a folder.');
        return undefined;
      },
    },
  );
  expect(look(10)).toEqual(['removed', 'wiped']);
});
