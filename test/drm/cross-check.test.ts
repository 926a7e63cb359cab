import { swapKeyIdOrder } from '../../src/drm/bytes';
import { checkValues, crossCheck, REQUEST_NAMES } from '../../src/drm/cross-check';
import type { Finding } from '../../src/drm/finding';
import type { KeyFile } from '../../src/drm/key-file';
import { playReadyChecksum } from '../../src/drm/playready';
import { buildPsshBox } from '../../src/drm/pssh';
import {
  buildWidevinePsshData,
  PROTECTION_SCHEMES,
  WIDEVINE_SYSTEM_ID,
  type WidevinePsshData,
  widevinePsshDataOf,
} from '../../src/drm/widevine';
import { drmVectors, keyFileOf, keyFileSamples } from '../vectors/drm-vectors';

/** What most of these have beside what they are about. */
const BESIDE = ['no_drm_system', 'names_nothing', 'unsupported_scheme', 'unknown_scheme'];

/** What it finds of two values together, without the field by itself. */
function found(...given: Parameters<typeof crossCheck>): Finding[] {
  return crossCheck(...given)
    .filter(({ code }) => !BESIDE.includes(code))
    .map(({ severity, code, description }) => ({ severity, code, description }));
}

const byteOrder: Finding = {
  severity: 'error',
  code: 'key_id_byte_order',
  description:
    'playready.checksum belongs to this key with its key id in the other byte order: cenc.keyid must be big ' +
    'endian (as in a UUID); send it with bytes 0-3, 4-5 and 6-7 reversed.',
};
const wrongChecksum: Finding = {
  severity: 'error',
  code: 'checksum_mismatch',
  description:
    'playready.checksum is not the checksum of cenc.keyid and cenc.contentkey; leave it out to have it computed, ' +
    'or send the three of one key.',
};
const otherKeyId: Finding = {
  severity: 'warning',
  code: 'key_id_mismatch',
  description: 'widevine.psshdata names another key id than cenc.keyid.',
};
const otherContentInWidevine: Finding = {
  severity: 'warning',
  code: 'content_id_mismatch',
  description: 'widevine.psshdata names another content id than contentId.',
};
const otherContentInFairPlay: Finding = {
  severity: 'warning',
  code: 'content_id_mismatch',
  description: 'fairplay.laurl does not name contentId.',
};

function schemeMismatch(name: string): Finding {
  const description = `widevine.psshdata says ${name}, but the algorithm is AESCTR (cenc); make them agree.`;
  return { severity: 'warning', code: 'scheme_mismatch', description };
}

describe.each(keyFileSamples)('%s', (_, { values, derived }) => {
  const keyFile = keyFileOf(values);
  const { cenc = { keyId: '', contentKey: '' }, playready = { licenseUrl: '', checksum: '' } } = keyFile;

  test('agrees with itself and its content id', () => {
    expect(found(keyFile, derived.contentid_from_fairplay_url)).toEqual([]);
    expect(found(keyFile, undefined)).toEqual([]);
  });

  test('disagrees with another content id in both places that name one', () => {
    expect(found(keyFile, 'another')).toEqual([otherContentInWidevine, otherContentInFairPlay]);
  });

  test('explains a key id in the other byte order, sent or in the checksum', () => {
    const sent = { ...keyFile, cenc: { ...cenc, keyId: derived.kid_le_b64 } };
    expect(found(sent, undefined)).toEqual([byteOrder]);
    const checksum = derived.checksum_if_kid_not_swapped;
    expect(found({ ...keyFile, playready: { ...playready, checksum } }, undefined)).toEqual([byteOrder]);
  });

  test('warns when the content key is the key id', () => {
    const sent = { cenc: { ...cenc, contentKey: cenc.keyId } };
    expect(found(sent, undefined)).toEqual([
      {
        severity: 'warning',
        code: 'content_key_is_key_id',
        description: 'cenc.contentkey equals cenc.keyid, which is in every manifest.',
      },
    ]);
  });

  test('finds the checksum of another key', () => {
    const sent = { ...keyFile, cenc: { ...cenc, contentKey: derived.kid_le_b64 } };
    expect(found(sent, undefined)).toEqual([wrongChecksum]);
  });
});

describe('Widevine data', () => {
  const keyId = Buffer.from('44da52ef4523098e6854777ee322681d', 'hex');
  const cenc = { keyId: keyId.toString('base64'), contentKey: Buffer.alloc(16, 9).toString('base64') };
  const findings = (data: Partial<WidevinePsshData>, contentId?: string) => {
    const psshData = buildWidevinePsshData({ keyIds: [], policy: '', ...data }).toString('base64');
    return found({ cenc, widevine: { psshData } }, contentId);
  };

  test.each(drmVectors.widevine_pssh_data_rejects.filter(({ expect: wanted }) => wanted.startsWith('warn')))(
    'warns of $name',
    ({ data_b64, decoded }) => {
      expect(found({ cenc, widevine: { psshData: data_b64 } }, decoded?.content_id)).toEqual([
        schemeMismatch(decoded?.protection_scheme?.fourcc ?? ''),
      ]);
    },
  );

  test.each(Object.entries(PROTECTION_SCHEMES))('may say cenc and no other scheme: %s', (name, scheme) => {
    expect(findings({ protectionScheme: scheme })).toEqual(name === 'cenc' ? [] : [schemeMismatch(name)]);
  });

  test('with a number that is no scheme is warned of', () => {
    expect(findings({ protectionScheme: 1 })).toEqual([schemeMismatch('an unknown scheme')]);
  });

  test('needs the key id among those it names, when it names some', () => {
    const other = Buffer.alloc(16, 1);
    expect(findings({ keyIds: [] })).toEqual([]);
    expect(findings({ keyIds: [other, keyId] })).toEqual([]);
    expect(findings({ keyIds: [other] })).toEqual([otherKeyId]);
  });

  test('needs the content id when it names one', () => {
    expect(findings({}, 'show')).toEqual([]);
    expect(findings({ contentId: Buffer.from('show') }, 'show')).toEqual([]);
    expect(findings({ contentId: Buffer.from('show') })).toEqual([]);
    expect(findings({ contentId: Buffer.from('shows') }, 'show')).toEqual([otherContentInWidevine]);
  });

  test('is checked inside its box', () => {
    const data = buildWidevinePsshData({ keyIds: [], protectionScheme: PROTECTION_SCHEMES.cbcs });
    const psshData = buildPsshBox(WIDEVINE_SYSTEM_ID, data).toString('base64');
    expect(found({ cenc, widevine: { psshData } }, undefined)).toEqual([schemeMismatch('cbcs')]);
  });

  test('that is disagreed with in every way is told in one answer', () => {
    const data = {
      keyIds: [Buffer.alloc(16, 1)],
      contentId: Buffer.from('other'),
      protectionScheme: PROTECTION_SCHEMES.cens,
    };
    expect(findings(data, 'show')).toEqual([otherKeyId, schemeMismatch('cens'), otherContentInWidevine]);
  });
});

test.each([
  ['skd://license.example/license/show', []],
  ['skd://show', []],
  ['skd://license.example/?assetId=show&v=1', []],
  ['skd://license.example/license/shows', [otherContentInFairPlay]],
  ['skd://license.example/show.key', [otherContentInFairPlay]],
])('looks for the content id as a whole part of FairPlay address %s', (licenseUrl, expected) => {
  const fairplay = { key: '1'.repeat(32), iv: '2'.repeat(32), licenseUrl };
  expect(found({ fairplay }, 'show')).toEqual(expected);
});

describe('slips', () => {
  const keyId = Buffer.from('44da52ef4523098e6854777ee322681d', 'hex');
  const contentKey = Buffer.alloc(16, 9);
  const base64 = (bytes: Buffer) => bytes.toString('base64');
  const cenc = { keyId: base64(keyId), contentKey: base64(contentKey) };
  const fairplay = { licenseUrl: 'skd://license.example/show', key: 'A'.repeat(32), iv: 'b'.repeat(32) };
  const zeros = base64(Buffer.alloc(16));
  const naming = (named: Buffer) => ({ psshData: widevinePsshDataOf(named, undefined) });
  const playready = {
    licenseUrl: 'https://a/?sessionid=1&amp;b=2',
    checksum: playReadyChecksum(keyId, contentKey),
  };

  test.each<[what: string, keyFile: KeyFile, found: string[]]>([
    ['a key id of zeros', { cenc: { ...cenc, keyId: zeros } }, ['error all_zero cenc.keyid']],
    ['a content key of zeros', { cenc: { ...cenc, contentKey: zeros } }, ['error all_zero cenc.contentkey']],
    [
      'a FairPlay key of zeros',
      { fairplay: { ...fairplay, key: '0'.repeat(32) } },
      ['error all_zero fairplay.key'],
    ],
    [
      'a FairPlay iv of zeros',
      { fairplay: { ...fairplay, iv: '0'.repeat(32) } },
      ['warning all_zero fairplay.iv'],
    ],
    [
      'a FairPlay key that is the iv',
      { fairplay: { ...fairplay, iv: 'a'.repeat(32) } },
      ['warning key_is_iv fairplay.iv'],
    ],
    [
      'a session id and an escaped ampersand',
      { cenc, playready },
      ['error session_id_in_address playready.laurl', 'error escaped_ampersand playready.laurl'],
    ],
    [
      "a packager's session id",
      { fairplay: { ...fairplay, licenseUrl: 'skd://a/b?wowzasessionid=1' } },
      ['error session_id_in_address fairplay.laurl'],
    ],
    [
      'Widevine data that names the key id in the other byte order',
      { cenc, widevine: naming(swapKeyIdOrder(keyId)) },
      ['error key_id_byte_order widevine.psshdata'],
    ],
    [
      'Widevine data that names the content key',
      { cenc, widevine: naming(contentKey) },
      ['error key_and_key_id_swapped cenc.keyid'],
    ],
    [
      'a checksum that fits with key and key id in turn',
      { cenc, playready: { licenseUrl: 'https://a/', checksum: playReadyChecksum(contentKey, keyId) } },
      ['error key_and_key_id_swapped cenc.keyid'],
    ],
  ])('finds %s', (_what, keyFile, expected) => {
    const told = found(keyFile, undefined).map(
      ({ severity, code, description }) => `${severity} ${code} ${description.split(' ')[0]}`,
    );
    expect(told).toEqual(expected);
  });
});

describe('values by themselves', () => {
  const cenc = {
    keyId: Buffer.alloc(16, 1).toString('base64'),
    contentKey: Buffer.alloc(16, 9).toString('base64'),
  };
  const fairplay = { licenseUrl: 'skd://license.example/show', key: 'A'.repeat(32), iv: 'b'.repeat(32) };
  /** The IV that a public guide prints: base64 of `29d33ec5cab2fdff`. */
  const HEX_TEXT = 'MjlkMzNlYzVjYWIyZmRmZg==';
  const CAPITALS = Buffer.from('29D33EC5CAB2FDFF').toString('base64');
  const swapped = Buffer.from('09d2a744a6f14ac5b5eb1c3ab3a0e4d1', 'hex');
  const widevine = (data: Partial<WidevinePsshData>) => ({
    psshData: buildWidevinePsshData({ keyIds: [], ...data }).toString('base64'),
  });

  test.each<[KeyFile, string[]]>([
    [{ cenc }, ['warning no_drm_system']],
    [{ cenc, fairplay }, []],
    [
      { cenc: { keyId: HEX_TEXT, contentKey: CAPITALS }, fairplay },
      ['warning hex_text cenc.contentkey', 'warning hex_text cenc.keyid'],
    ],
    [
      { fairplay: { ...fairplay, key: '32396433336563356361623266646666', iv: '3'.repeat(32) } },
      ['warning hex_text fairplay.iv', 'warning hex_text fairplay.key'],
    ],
    // One byte is no hex digit: `g`, and a line feed behind fifteen digits.
    [{ fairplay: { ...fairplay, key: `${'3'.repeat(30)}67`, iv: `${'3'.repeat(30)}0a` } }, []],
    [
      { fairplay: { ...fairplay, licenseUrl: 'https://license.example/show' } },
      ['warning not_skd fairplay.laurl'],
    ],
    [
      {
        cenc,
        playready: {
          licenseUrl: 'http://a/',
          checksum: playReadyChecksum(Buffer.alloc(16, 1), Buffer.alloc(16, 9)),
        },
      },
      ['warning plain_http playready.laurl'],
    ],
    [{ cenc, widevine: widevine({ policy: 'p' }) }, ['warning names_nothing widevine.psshdata']],
    [
      { cenc, widevine: widevine({ keyIds: [Buffer.alloc(16, 1), Buffer.alloc(16)] }) },
      ['error all_zero widevine.psshdata.key_id[1]'],
    ],
    [
      { cenc, widevine: widevine({ contentId: Buffer.from('c2hvdy0xMg==') }) },
      ['warning encoded_twice widevine.psshdata.content_id'],
    ],
    [
      { cenc, widevine: widevine({ contentId: Buffer.from('73686f772d3132') }) },
      ['warning encoded_twice widevine.psshdata.content_id'],
    ],
    [
      { cenc, widevine: widevine({ contentId: Buffer.from('show'), protectionScheme: 1 }) },
      [
        'error unknown_scheme widevine.psshdata.protection_scheme',
        'warning scheme_mismatch widevine.psshdata',
      ],
    ],
    [
      {
        cenc,
        widevine: widevine({ contentId: Buffer.from('show') }),
        fairplay: { ...fairplay, licenseUrl: 'skd://other' },
      },
      ['warning content_id_mismatch fairplay.laurl'],
    ],
    [
      { cenc: { ...cenc, keyId: swapKeyIdOrder(swapped).toString('base64') }, fairplay },
      ['warning key_id_byte_order_suspected cenc.keyid'],
    ],
    [
      {
        cenc: { ...cenc, keyId: swapKeyIdOrder(swapped).toString('base64') },
        widevine: widevine({ keyIds: [swapped] }),
      },
      ['error key_id_byte_order widevine.psshdata'],
    ],
    [
      {
        cenc: { ...cenc, keyId: swapKeyIdOrder(swapped).toString('base64') },
        playready: {
          licenseUrl: 'https://a/',
          checksum: playReadyChecksum(swapKeyIdOrder(swapped), Buffer.alloc(16, 9)),
        },
      },
      [],
    ],
    [
      {
        cenc: { keyId: swapKeyIdOrder(swapped).toString('base64'), contentKey: cenc.contentKey },
        widevine: widevine({ keyIds: [Buffer.alloc(16, 9)] }),
      },
      ['error key_and_key_id_swapped cenc.keyid'],
    ],
    [
      {
        cenc: { ...cenc, keyId: swapKeyIdOrder(swapped).toString('base64') },
        widevine: widevine({ keyIds: [Buffer.alloc(16, 1)] }),
      },
      ['warning key_id_byte_order_suspected cenc.keyid', 'warning key_id_mismatch widevine.psshdata'],
    ],
    [
      {
        cenc: { ...cenc, keyId: Buffer.alloc(16, 0xab).toString('base64') },
        widevine: widevine({ contentId: Buffer.from('show') }),
        fairplay: { ...fairplay, licenseUrl: `skd://KEYS/${'AB'.repeat(16)}` },
      },
      [],
    ],
    ...['01010101-0101-0101-0101-010101010101', '01'.repeat(16)].map((id): [KeyFile, string[]] => [
      {
        cenc: { ...cenc, keyId: Buffer.alloc(16, 1).toString('base64') },
        widevine: widevine({ contentId: Buffer.from('show') }),
        fairplay: { ...fairplay, licenseUrl: `skd://KEYS/${id}` },
      },
      [],
    ]),
  ])('%#', (keyFile, expected) => {
    const told = crossCheck(keyFile, undefined).map(({ severity, code, field }) =>
      [severity, code, field].filter((each) => each !== undefined).join(' '),
    );
    expect(told.sort()).toEqual(expected);
  });
});

test.each<[string, KeyFile]>([
  ['nothing', {}],
  ['values that are not well formed', { cenc: { keyId: 'x', contentKey: 'y' }, widevine: { psshData: 'z' } }],
  ['a checksum without a key', { playready: { licenseUrl: 'https://l.example/', checksum: 'AAAAAAAAAAA=' } }],
])('finds nothing to compare in %s', (_, keyFile) => {
  expect(found(keyFile, 'show')).toEqual([]);
});

test('tells which algorithm the scheme of the data is compared with', () => {
  const widevine = { keyIds: [], protectionScheme: PROTECTION_SCHEMES.cenc };
  const slips = checkValues({ widevine }, { scheme: 'cbcs', names: REQUEST_NAMES });
  expect(slips.map(({ description }) => description)).toEqual([
    'widevine.psshdata says cenc, but the algorithm is AESCBC (cbcs); make them agree.',
  ]);
});
