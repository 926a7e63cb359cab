import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import fs from 'fs-extra';
import { check } from '../../../src/api/check';
import { processorMs } from '../../support/processor-time';
import { drmVectors, keyFileSamples } from '../../vectors/drm-vectors';
import { brief } from './checked';

function summary(input: unknown) {
  const { kind, faults } = check(input);
  return { kind, faults: brief(faults).map((fault) => fault.split(' ', 2).join(' ')) };
}

const object = drmVectors.playready_object_self_made;

describe('a published sample', () => {
  it.each(keyFileSamples)(
    'is a key file without an error, and a request without a fault: %s',
    (_name, sample) => {
      const faults = sample.iv_include_in_chunklist === 'true' ? ['W iv_in_playlist'] : [];
      expect(summary(`${sample.lines.join('\n')}\n`)).toEqual({ kind: 'key_file', faults });
      for (const body of [sample.values, JSON.stringify(sample.values)])
        expect(summary(body)).toEqual({ kind: 'request', faults: [] });
    },
  );

  it('decodes to every field of a PlayReady header', () => {
    expect(check(object.xml).fields).toEqual([
      { name: 'version', value: '4.0.0.0' },
      {
        name: 'key[0].kid',
        value: '71LaRCNFjgloVHd+4yJoHQ==',
        note: "as the header has it: base64 in PlayReady's byte order",
      },
      {
        name: 'key[0].key_id',
        value: '44da52ef-4523-098e-6854-777ee322681d',
        note: "base64 RNpS70UjCY5oVHd+4yJoHQ==; in PlayReady's byte order 71LaRCNFjgloVHd+4yJoHQ==",
      },
      { name: 'key[0].algorithm', value: 'AESCTR' },
      { name: 'key[0].checksum', value: 'pcTs6CEp98A=' },
      { name: 'la_url', value: 'https://playready-license.vudrm.tech/rightsmanager.asmx' },
    ]);
  });
});

/** The faults that `expect` of the file names, with their codes. */
const REJECTS: Readonly<Record<string, [kind: string, faults: string[]]>> = {
  'a whole box given where data is wanted': ['pssh_box', ['W box_for_data']],
  'truncated protobuf': ['widevine_pssh_data', ['E malformed_data']],
  'scheme cbcs beside AESCTR': ['widevine_pssh_data', ['W scheme_mismatch']],
};

it.each(drmVectors.widevine_pssh_data_rejects)(
  'Widevine data is named that is wrong: $name',
  ({ name, data_b64 }) => {
    const [kind, faults] = REJECTS[name] ?? [];
    expect(check(data_b64).kind).toBe(kind);
    const keyid = 'RNpS70UjCY5oVHd+4yJoHQ==';
    const body = {
      cenc: { keyid, contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' },
      widevine: { psshdata: data_b64 },
    };
    expect(summary(body).faults).toEqual(faults);
  },
);

const ROOT = resolve(__dirname, '../../..');
const PAGE = fs.readFileSync(join(ROOT, 'docs/my-player-says.md'), 'utf8');
const DRM = join(ROOT, 'src/drm');
const SOURCE = fs
  .readdirSync(DRM, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => fs.readFileSync(join(DRM, name), 'utf8'))
  .join('\n')
  .replaceAll(/`([a-z_]+)_\$\{wanted\}`/g, "'$1_base64' '$1_hex'");

test('every fault that the page names is one that a check can find', () => {
  const table = PAGE.slice(PAGE.indexOf('## From symptom to fault'), PAGE.indexOf('Numbers without'));
  const named = [...table.matchAll(/`([a-z0-9]+(?:_[a-z0-9]+)+)`/g)].map(([, code = '']) => code);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((code) => !new RegExp(`\\b${code}\\b`).test(SOURCE))).toEqual([]);
});

test('the answers on the page are the answers', () => {
  const tried = [...PAGE.matchAll(/ -d '([^']+)'\n```\n\n```json\n(.+)\n```/g)];
  expect(tried).toHaveLength(5);
  for (const [, body = '', answer = ''] of tried) expect(check(body)).toEqual(JSON.parse(answer));
});

interface PublicPieces {
  readonly repository: string;
  readonly pieces: readonly {
    readonly name: string;
    readonly kind: string;
    readonly findings: readonly string[];
    readonly input: string;
  }[];
}

const FOLDER = join(__dirname, '../../vectors/public');
const pieces = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name): PublicPieces => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')))
  .flatMap(({ repository, pieces: own }) => own.map((piece) => ({ ...piece, repository })));

it.each(pieces)('finds in $name of $repository what is wrong with it', ({ input, kind, findings }) => {
  const result = check(input);
  expect([result.kind, ...brief(result.faults)]).toEqual([kind, ...findings]);
});

it('takes less than a second for all of them, which are at least 60', async () => {
  expect(pieces.length).toBeGreaterThanOrEqual(60);
  expect(await processorMs(() => pieces.map(({ input }) => check(input)))).toBeLessThan(1000);
});
