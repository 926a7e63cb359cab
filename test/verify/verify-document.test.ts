import { exportCpix } from '../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../src/drm/export/export-key-file';
import { ADDRESS, cbcsDocument, IV, KEY, KEY_ID, OTHER } from '../support/cbcs-document';
import { right } from '../support/right';
import { codesOf, expectToPlay, keyFileText, startStream, statesOf } from '../support/start-stream';

const NAME = 'show.cpix';
const given = (text: string) => ({ keyFiles: [{ name: NAME, text }] });

/** A stream that is packaged with the flags that are exported of the document of one key for all systems. */
function startOfOneKey(kind: 'dash' | 'hls', extension?: 'ts') {
  const { value } = right(exportCpix(cbcsDocument(), { as: 'shaka' }));
  const flags = value.text.split('\n').filter((line) => line.startsWith('--'));
  return startStream(kind, { packaging: undefined, flags, ...(extension && { extension }) });
}

/** A stream whose sound has a key of its own. */
function startOfTwoKeys(kind: 'dash' | 'hls') {
  const keyOf = (label: string, { keyId, key }: Omit<typeof OTHER, 'address'>) =>
    `label=${label}:key_id=${keyId.toString('hex')}:key=${key.toString('hex')}`;
  const flags = [
    '--enable_raw_key_encryption',
    `--keys=${keyOf('SD', { keyId: KEY_ID, key: KEY })},${keyOf('AUDIO', OTHER)}`,
    ...['--protection_scheme=cbcs', '--clear_lead=0', `--iv=${IV.toString('hex')}`],
    ...['--protection_systems=Widevine,FairPlay', `--hls_key_uri=${ADDRESS}`],
  ];
  return startStream(kind, { packaging: undefined, flags });
}

describe('a document of one key under cbcs for all systems', () => {
  test.each([
    ['dash', undefined],
    ['hls', undefined],
    ['hls', 'ts'],
  ] as const)('decrypts what is made of it as %s %s', async (kind, extension) => {
    const stream = await startOfOneKey(kind, extension);
    expectToPlay(await stream.verify(given(cbcsDocument())));
  });

  test.each([
    ['dash', 'another key id', { keyId: Buffer.alloc(16, 0x55) }, 'key_id_mismatch'],
    ['dash', 'another scheme', { scheme: 'cenc' }, 'scheme_mismatch'],
    ['hls', 'another key', { value: { kind: 'plain', bytes: IV } }, 'content_key_wrong'],
    ['hls', 'another explicitIV', { explicitIv: KEY }, 'iv_mismatch'],
  ] as const)('of %s, %s is one error, which names the document', async (kind, _what, changes, code) => {
    const stream = await startOfOneKey(kind);
    const report = await stream.verify(given(cbcsDocument(changes)));
    const errors = report.faults.filter(({ severity }) => severity === 'error');
    expect(errors.map((fault) => fault.code)).toEqual([code]);
    expect(errors[0]?.description).toContain(NAME);
    expect(JSON.stringify(report)).not.toMatch(/key[ -]file/);
  });

  test('another address of FairPlay, and a box of another key in the manifest, are named', async () => {
    const hls = await startOfOneKey('hls');
    await hls.change('v.m3u8', (text) => text.replace(ADDRESS, 'skd://license.example/other'));
    expect(codesOf(await hls.verify(given(cbcsDocument()))).errors).toEqual(['license_address_differs']);
    const dash = await startOfOneKey('dash');
    const other = Buffer.alloc(16, 0x55);
    await dash.change('m.mpd', (text) =>
      text.replaceAll(/<cenc:pssh>([^<]*)</g, (_all, base64: string) => {
        const hex = Buffer.from(base64, 'base64').toString('hex');
        const changed = hex.replaceAll(KEY_ID.toString('hex'), other.toString('hex'));
        return `<cenc:pssh>${Buffer.from(changed, 'hex').toString('base64')}<`;
      }),
    );
    expect(codesOf(await dash.verify(given(cbcsDocument()))).errors).toEqual(['key_id_mismatch']);
  });
});

describe('a document of several keys', () => {
  test.each(['dash', 'hls'] as const)(
    'decrypts each rendition of %s with the key of its key id',
    async (kind) => {
      const stream = await startOfTwoKeys(kind);
      if (kind === 'hls') await stream.change('a.m3u8', (text) => text.replaceAll(ADDRESS, OTHER.address));
      expectToPlay(await stream.verify(given(cbcsDocument({}, 'AUDIO'))));
    },
  );

  test('a rendition whose key it does not have, or whose playlist has the address of another of its keys, is an error', async () => {
    const stream = await startOfTwoKeys('hls');
    await stream.change('a.m3u8', (text) => text.replaceAll(ADDRESS, OTHER.address));
    const unknown = await stream.verify(given(cbcsDocument()));
    expect([codesOf(unknown).errors, statesOf(unknown)]).toEqual([
      ['key_id_unknown'],
      ['decrypts', 'no_key'],
    ]);
    const allowed = await stream.verify({ ...given(cbcsDocument()), allowMissingKeys: true });
    expect(codesOf(allowed)).toEqual({ errors: [], warnings: ['key_id_unknown'] });
    await stream.change('a.m3u8', (text) => text.replaceAll(OTHER.address, ADDRESS));
    const exchanged = await stream.verify(given(cbcsDocument({}, 'AUDIO')));
    expect([codesOf(exchanged).errors, statesOf(exchanged)]).toEqual([
      ['license_address_differs'],
      ['decrypts', 'decrypts'],
    ]);
  });
});

test('a document of two schemes decrypts DASH under cenc, and HLS that FairPlay alone plays', async () => {
  const exported = right(exportKeyFile(keyFileText(), 'cpix', undefined));
  for (const kind of ['dash', 'hls'] as const) {
    const stream = await startStream(kind);
    expectToPlay(await stream.verify(given(exported.text)));
  }
});
