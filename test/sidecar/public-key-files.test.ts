import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseKeyFile } from '../../src/drm/key-file';
import { sidecarForAll } from '../support/start-sidecar';

const { api } = sidecarForAll();
const FOLDER = resolve(__dirname, '../vectors/key-files');

interface PublicKeyFile {
  readonly file: string;
  readonly source: string;
  readonly keepUnknown?: boolean;
  readonly parts: readonly string[];
  /** The warnings of an import, by code. */
  readonly findings: readonly string[];
}

const FILES: readonly PublicKeyFile[] = JSON.parse(readFileSync(resolve(FOLDER, 'sources.json'), 'utf8'));

/** The values of a key file in any order, with any line ends. */
function valuesOf(text: string) {
  const { lines, unreadable } = parseKeyFile(text);
  expect(unreadable).toEqual([]);
  return new Map(lines.map(({ name, value }) => [name, value]));
}

test('each public key file has its source', () => {
  expect(FILES.map(({ file }) => file).sort()).toEqual(
    readdirSync(FOLDER)
      .filter((name) => name.endsWith('.key'))
      .sort(),
  );
});

test.each(FILES)('$file is imported without a change of meaning', async (expected) => {
  const { file, keepUnknown = false, parts, findings } = expected;
  const text = readFileSync(resolve(FOLDER, file), 'utf8');
  const path = `/api/keyfile/news?keepunknown=${keepUnknown}`;
  const written = await api.post(path).set('content-type', 'text/plain').send(text).expect(200);
  const read = await api.get('/api/keyfile/news').expect(200);
  expect(valuesOf(read.text)).toEqual(valuesOf(text));
  await api.post(path).set('content-type', 'text/plain').send(read.text).expect(200, read.text);
  const listed = await api.get('/api/keyfiles').expect(200);
  const warnings = [...(written.headers.warning ?? '').matchAll(/299 - "([a-z0-9_]+): /g)];
  expect({ parts: listed.body.keyfiles[0].parts, findings: warnings.map(([, code]) => code) }).toEqual({
    parts,
    findings,
  });
});
