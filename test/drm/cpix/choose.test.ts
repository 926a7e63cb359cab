import { type ChosenKey, type CpixChoice, chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixDocument, key, keyIdOf, kidOf, rule, system } from '../../support/cpix-text';

const CENC = 'commonEncryptionScheme="cenc"';
const CBCS = 'commonEncryptionScheme="cbcs"';
const VIDEO = '<VideoFilter/>';
const AUDIO = '<AudioFilter/>';

type Text = Parameters<typeof cpixDocument>[0];

/** The keys as short text, `1 widevine playready`, and the codes of the warnings; or the faults. */
function choose(text: Text, choice: CpixChoice = {}) {
  const chosen = chooseKeys(cpixDocument(text), choice);
  if (!chosen.ok) return chosen.faults.map(({ code, description: sentence }) => `${code}: ${sentence}`);
  const { cenc, fairplay, findings } = chosen.value;
  const short = (one: ChosenKey | undefined) =>
    one && [one.keyId.toString('hex').slice(0, 1), ...one.systems].join(' ');
  return { cenc: short(cenc), fairplay: short(fairplay), warnings: findings.map(({ code }) => code) };
}

const took = (cenc: string | undefined, fairplay?: string, ...warnings: string[]) => ({
  cenc,
  fairplay,
  warnings,
});

const multiDrm = {
  keys: [key(1)],
  systems: system('widevine', [1]) + system('playready', [1]) + system('fairplay', [1]),
};

describe('one candidate for a role', () => {
  it('is taken: one key for all three systems', () => {
    expect(choose(multiDrm)).toEqual(took('1 widevine playready', '1 fairplay'));
  });

  it('is taken for each role from a document that has a key for either', () => {
    const text = {
      keys: [key(1, CENC), key(2, CBCS)],
      systems: system('widevine', [1]) + system('fairplay', [2]),
    };
    expect(choose(text)).toEqual(took('1 widevine', '2 fairplay'));
  });

  it('leaves out the role that the document has no key for', () => {
    expect(choose({ keys: [key(1)], systems: system('playready', [1]) })).toEqual(took('1 playready'));
    expect(choose({ keys: [key(1)], systems: system('fairplay', [1]) })).toEqual(
      took(undefined, '1 fairplay'),
    );
  });

  it('is taken without DRM systems from a document that has none that is known', () => {
    const marlin = `<DRMSystem kid="${kidOf(1)}" systemId="5e629af5-38da-4063-8977-97ffbd9902d4"/>`;
    expect(choose({ keys: [key(1)] })).toEqual(took('1'));
    expect(choose({ keys: [key(1)], systems: marlin })).toEqual(took('1'));
  });

  it('needs no value: the document may be encrypted', () => {
    const cipher =
      '<Data><pskc:Secret><pskc:EncryptedValue><e:CipherData xmlns:e="http://www.w3.org/2001/04/xmlenc#">' +
      '<e:CipherValue>AAAA</e:CipherValue></e:CipherData></pskc:EncryptedValue></pskc:Secret></Data>';
    expect(choose({ ...multiDrm, keys: [key(1, '', cipher)] })).toEqual(
      took('1 widevine playready', '1 fairplay'),
    );
  });
});

describe('several candidates', () => {
  const tracks = {
    keys: [key(1), key(2), key(3), key(4)],
    systems: system('widevine', [1, 2, 3, 4]),
    rules:
      rule(1, 'SD', VIDEO) +
      rule(2, 'HD', VIDEO) +
      rule(3, undefined, '<LabelFilter label="uhd-main"/>') +
      rule(4, undefined, AUDIO),
  };

  it('are refused with all that one can choose from', () => {
    expect(choose(tracks)).toEqual([
      'cpix_choice: has several keys for CENC (Widevine, PlayReady); choose one by track or kid: ' +
        `SD (kid ${kidOf(1)}), HD (kid ${kidOf(2)}), uhd-main (kid ${kidOf(3)}), AUDIO (kid ${kidOf(4)})`,
    ]);
  });

  it('are told of once where both roles have them, and for each role where they differ', () => {
    const faults = choose({ ...tracks, systems: tracks.systems + system('fairplay', [1, 2]) });
    expect(faults).toEqual([
      expect.stringContaining('has several keys for CENC (Widevine, PlayReady);'),
      expect.stringContaining('has several keys for FairPlay;'),
    ]);
  });

  it.each([
    ['SD', '1'],
    ['hd', '2'],
    ['uhd-main', '3'],
    ['UHD-MAIN', '3'],
    ['AUDIO', '4'],
    ['audio', '4'],
  ])('are told apart by the track %s', (track, digit) => {
    const warnings = digit === '4' ? [] : ['audio_key_left_out'];
    expect(choose(tracks, { track })).toEqual(took(`${digit} widevine`, undefined, ...warnings));
  });

  it('are told apart by the key id', () => {
    expect(choose(tracks, { keyId: keyIdOf(3) })).toEqual(
      took('3 widevine', undefined, 'audio_key_left_out'),
    );
    expect(choose({ keys: tracks.keys }, { keyId: keyIdOf(3) })).toEqual(took('3'));
  });

  it('are refused for a track that several have', () => {
    expect(choose(tracks, { track: 'VIDEO' })).toEqual([
      'cpix_choice: has several keys for CENC (Widevine, PlayReady); choose one by track or kid: ' +
        `SD (kid ${kidOf(1)}), HD (kid ${kidOf(2)})`,
    ]);
  });

  it('are refused for a track, a key id or both that none has', () => {
    const all = `SD (kid ${kidOf(1)}), HD (kid ${kidOf(2)}), uhd-main (kid ${kidOf(3)}), AUDIO (kid ${kidOf(4)})`;
    expect(choose(tracks, { track: 'SDR' })).toEqual([
      'cpix_choice: has no such track; it has SD, HD, uhd-main, AUDIO',
    ]);
    expect(choose(tracks, { keyId: keyIdOf(9) })).toEqual([
      `cpix_choice: has no key ${kidOf(9)}; it has ${all}`,
    ]);
    expect(choose(tracks, { track: 'SD', keyId: keyIdOf(2) })).toEqual([
      `cpix_choice: has the key ${kidOf(2)}, but not for the systems, track and period chosen; it has ${all}`,
    ]);
    expect(choose({ keys: tracks.keys.slice(0, 2) }, { track: 'SD' })).toEqual([
      `cpix_choice: has no usage rules that identify the key of a track; choose by kid: kid ${kidOf(1)}, kid ${kidOf(2)}`,
    ]);
  });

  it('are listed within bounds, without control characters and quotes', () => {
    const digits = Array.from({ length: 200 }, (_, index) => index);
    const kid = (index: number) => `${String(index).padStart(8, '0')}-1111-4111-8111-111111111111`;
    const label = `&#9;"&#252;${'x'.repeat(300)}`.replaceAll('"', '&quot;');
    const [first] = choose({
      keys: digits.map((index) => ({ ...key(1), kid: kid(index) })),
      rules: digits
        .flatMap((index) =>
          Array.from({ length: 9 }, (_, more) => `<LabelFilter label="${more}${label}"/>`).map(
            (filter) => [index, filter] as const,
          ),
        )
        .slice(0, 400)
        .map(([index, filter]) => `<ContentKeyUsageRule kid="${kid(index)}">${filter}</ContentKeyUsageRule>`)
        .join(''),
    }) as string[];
    expect(first).toMatch(/choose one by track or kid: 0\?\?\?x{36}\.\.\., /);
    expect(first).toMatch(/, 188 more$/);
    expect(first?.length).toBeLessThan(4000);
    expect(first).toMatch(/^[ -!#-~]*$/);
  });
});

describe('a track', () => {
  it('means its very name before the name in other letters, these before filters, filters before ALL', () => {
    const keys = [key(1), key(2), key(3), key(4)];
    const rules = [
      rule(1, 'ALL', VIDEO + AUDIO),
      rule(2, undefined, VIDEO),
      rule(3, undefined, '<LabelFilter label="Video"/>'),
      rule(4, 'VIDEO'),
    ];
    const chosenOf = (count: number) =>
      choose({ keys, rules: rules.slice(0, count).join('') }, { track: 'VIDEO' });
    expect([1, 2, 3, 4].map(chosenOf)).toEqual(['1', '2', '3', '4'].map((digit) => took(digit)));
  });

  it('means a rule that joins it with others', () => {
    const text = { keys: [key(1), key(2)], rules: rule(1, 'SD+HD1', VIDEO) + rule(2, 'HD2', VIDEO) };
    expect(choose(text, { track: 'HD1' })).toEqual(took('1'));
    expect(choose(text, { track: 'HD2' })).toEqual(took('2'));
  });

  it.each([
    ['by its track type', rule(1, 'ALL', VIDEO + AUDIO)],
    ['by the filters for both kinds', rule(1, undefined, VIDEO + AUDIO)],
    ['without a filter', rule(1)],
    ['with one for the key period alone', rule(1, undefined, '<KeyPeriodFilter periodId="p"/>')],
  ])('means the key for all tracks where no rule names it: %s', (_, rules) => {
    expect(choose({ ...multiDrm, rules }, { track: 'HD' })).toEqual(
      took('1 widevine playready', '1 fairplay'),
    );
  });

  it('narrows each role by the rules of its own keys', () => {
    const text = {
      keys: [key(1), key(2), key(3)],
      systems: system('widevine', [1, 2]) + system('fairplay', [3]),
      rules: rule(1, 'SD') + rule(2, 'HD') + rule(3, 'ALL'),
    };
    expect(choose(text, { track: 'HD' })).toEqual(took('2 widevine', '3 fairplay'));
    const without = { ...text, rules: rule(1, 'SD') + rule(2, 'HD') };
    expect(choose(without, { track: 'HD' })).toEqual(took('2 widevine', '3 fairplay'));
    const other = { ...text, rules: rule(1, 'SD') + rule(2, 'HD') + rule(3, 'SD') };
    expect(choose(other, { track: 'HD' })).toEqual(took('2 widevine', undefined, 'cpix_system_left_out'));
  });

  it('is refused where tracks have keys of their own and none has its name, also beside a key for all', () => {
    const text = {
      keys: [key(1, CENC), key(2, CENC), key(3, CBCS)],
      systems: system('widevine', [1, 2]) + system('fairplay', [3]),
      rules: rule(1, 'SD', VIDEO) + rule(2, 'HD', VIDEO) + rule(3, 'ALL'),
    };
    expect(choose(text, { track: 'HD' })).toEqual(took('2 widevine', '3 fairplay'));
    expect(choose(text, { track: 'HDD' })).toEqual(['cpix_choice: has no such track; it has SD, HD, ALL']);
    expect(choose(text, { track: 'HDD', systems: ['fairplay'] })).toEqual(took(undefined, '3 fairplay'));
  });

  it('is refused where a filter is not known, and the key id works', () => {
    const text = {
      keys: [key(1), key(2)],
      rules: rule(1, 'HD', '<x:RegionFilter xmlns:x="urn:x"/>') + rule(2, 'SD', '<FutureFilter/>'),
    };
    expect(choose(text, { track: 'HD' })).toEqual([
      'cpix_choice: has usage rules with an unknown filter (RegionFilter, FutureFilter), so no track can be chosen; choose by kid',
    ]);
    expect(choose(text, { keyId: keyIdOf(1) })).toEqual(took('1'));
  });
});

describe('a key id', () => {
  const twoPairs = {
    keys: [key(1, CENC), key(2, CENC), key(3, CBCS)],
    systems: system('widevine', [1, 2]) + system('fairplay', [3]),
  };

  it('leaves the one key of the other role, which it does not speak of', () => {
    expect(choose(twoPairs, { keyId: keyIdOf(2) })).toEqual(took('2 widevine', '3 fairplay'));
  });

  it('leaves the other role out where that has several keys or would take a key of this role', () => {
    const several = {
      ...twoPairs,
      keys: [...twoPairs.keys, key(4, CBCS)],
      systems: system('widevine', [1, 2]) + system('fairplay', [3, 4]),
    };
    expect(choose(several, { keyId: keyIdOf(2) })).toEqual(
      took('2 widevine', undefined, 'cpix_system_left_out'),
    );
    const shared = { keys: [key(1), key(2)], systems: system('widevine', [1, 2]) + system('fairplay', [1]) };
    expect(choose(shared, { keyId: keyIdOf(2) })).toEqual(
      took('2 widevine', undefined, 'cpix_system_left_out'),
    );
  });

  it('is refused where the other role was asked for and cannot be told', () => {
    const shared = { keys: [key(1), key(2)], systems: system('widevine', [1, 2]) + system('fairplay', [1]) };
    expect(choose(shared, { keyId: keyIdOf(2), systems: ['widevine', 'fairplay'] })).toEqual([
      `cpix_choice: has no one key for FairPlay by this choice; it has kid ${kidOf(1)}`,
    ]);
  });
});

describe('key periods', () => {
  const inPeriod = (id: string) => `<KeyPeriodFilter periodId="${id}"/>`;
  const rotated = {
    keys: [key(1), key(2)],
    systems: system('widevine', [1, 2]) + system('fairplay', [1, 2]),
    periods: ['first/7', 'second/8'],
    rules: rule(1, 'HD', inPeriod('first')) + rule(2, 'HD', inPeriod('second')),
  };
  const needed =
    'cpix_choice: has other keys in each key period; choose one by period: first (index 7), second (index 8)';

  it('must be chosen from where each has other keys, whatever else is chosen', () => {
    expect(choose(rotated)).toEqual([needed]);
    expect(choose(rotated, { track: 'HD' })).toEqual([needed]);
    expect(choose(rotated, { keyId: keyIdOf(1) })).toEqual([needed]);
  });

  it.each(['second', '8'])('are chosen by id and by index: %s', (period) => {
    expect(choose(rotated, { period })).toEqual(took('2 widevine', '2 fairplay'));
    expect(choose(rotated, { period, track: 'HD' })).toEqual(took('2 widevine', '2 fairplay'));
    expect(choose(rotated, { period, keyId: keyIdOf(1) })).toEqual([
      expect.stringContaining(`has the key ${kidOf(1)}, but not for the systems, track and period chosen`),
    ]);
  });

  it('are chosen by id before index', () => {
    const text = {
      ...rotated,
      periods: ['p2/1', 'p1/2'].map((period) => period.replace('p1', '1x')),
      rules: rule(1, 'HD', inPeriod('p2')) + rule(2, 'HD', inPeriod('1')),
    };
    expect(choose(text, { period: '1' })).toEqual(took('2 widevine', '2 fairplay'));
  });

  it('need not be chosen from where one is named, all have the same keys, or the track has one key', () => {
    const one = {
      ...rotated,
      keys: [key(1)],
      systems: system('widevine', [1]),
      rules: rule(1, 'HD', inPeriod('first')),
    };
    expect(choose(one)).toEqual(took('1 widevine'));
    const same = { ...one, rules: rule(1, 'HD', inPeriod('first') + inPeriod('second')) };
    expect(choose(same)).toEqual(took('1 widevine'));
    const fixed = {
      ...rotated,
      keys: [key(1), key(2), key(3)],
      systems: system('widevine', [1, 2, 3]),
      rules: rotated.rules + rule(3, 'SD'),
    };
    expect(choose(fixed, { track: 'SD' })).toEqual(took('3 widevine'));
  });

  it('are no matter to a key that a rule allows in all of them', () => {
    const rules =
      rule(1) + rule(1, 'HD', inPeriod('first')) + rule(2, 'SD', inPeriod('first') + inPeriod('second'));
    expect(choose({ ...rotated, rules })).toEqual([
      expect.stringContaining('has several keys for CENC'),
      expect.stringContaining('has several keys for FairPlay'),
    ]);
  });

  it('hold for rules without a period', () => {
    const text = {
      ...rotated,
      keys: [...rotated.keys, key(3)],
      systems: system('widevine', [1, 2, 3]),
      rules: rotated.rules + rule(3, 'AUDIO'),
    };
    expect(choose(text, { period: 'first', track: 'AUDIO' })).toEqual(took('3 widevine'));
    expect(choose(text, { period: 'first', track: 'HD' })).toEqual(
      took('1 widevine', undefined, 'audio_key_left_out'),
    );
  });

  it('are refused by a name that none has', () => {
    expect(choose(rotated, { period: '9' })).toEqual([
      'cpix_choice: has no such key period; it has first (index 7), second (index 8)',
    ]);
    expect(choose(multiDrm, { period: '1' })).toEqual(['cpix_choice: has no key periods; leave period out']);
    expect(
      choose(
        { ...rotated, rules: rotated.rules + rule(1, 'SD', inPeriod('first')) },
        { period: 'second', track: 'SD' },
      ),
    ).toEqual(['cpix_choice: has no such track in that key period; it has HD']);
  });
});

describe('schemes', () => {
  const all = system('widevine', [1]) + system('playready', [1]) + system('fairplay', [1]);

  it.each([
    ['none', '', took('1 widevine playready', '1 fairplay')],
    ['cenc', CENC, took('1 widevine playready', '1 fairplay', 'fairplay_scheme')],
    [
      'cbcs',
      CBCS,
      [
        'cpix_not_usable: has the scheme cbcs for CENC (Widevine, PlayReady), and the packager takes cenc alone; ask the key server for cenc, or write FairPlay alone with systems fairplay',
      ],
    ],
    [
      'cens',
      'commonEncryptionScheme="cens"',
      [
        'cpix_not_usable: has the scheme cens for CENC (Widevine, PlayReady), and the packager takes cenc alone; ask the key server for cenc',
        'cpix_not_usable: has FairPlay with the scheme cens; FairPlay takes cbcs',
      ],
    ],
    [
      'cbc1',
      'commonEncryptionScheme="cbc1"',
      [
        'cpix_not_usable: has the scheme cbc1 for CENC (Widevine, PlayReady), and the packager takes cenc alone; ask the key server for cenc',
        'cpix_not_usable: has FairPlay with the scheme cbc1; FairPlay takes cbcs',
      ],
    ],
  ])('decide what can be written: %s', (_, attributes, expected) => {
    expect(choose({ keys: [key(1, attributes)], systems: all })).toEqual(expected);
  });

  it('cbcs with Widevine is no matter to who wants FairPlay alone', () => {
    expect(choose({ keys: [key(1, CBCS)], systems: all }, { systems: ['fairplay'] })).toEqual(
      took(undefined, '1 fairplay'),
    );
    expect(choose({ keys: [key(1, CBCS)], systems: system('fairplay', [1]) })).toEqual(
      took(undefined, '1 fairplay'),
    );
  });

  it('cbcs is refused for keys without any DRM system', () => {
    expect(choose({ keys: [key(1, CBCS)] })).toEqual([
      expect.stringMatching(/^cpix_not_usable: has the scheme cbcs/),
    ]);
  });

  it('the key whose scheme can be written is taken, and the other one told of', () => {
    const text = {
      keys: [key(1, CENC), key(2, CBCS)],
      systems: system('widevine', [1, 2]) + system('fairplay', [1, 2]),
    };
    expect(choose(text)).toEqual(took('1 widevine', '2 fairplay', 'cpix_scheme_left_out'));
  });
});

describe('systems that are asked for', () => {
  it('are the ones that are written', () => {
    expect(choose(multiDrm, { systems: ['widevine'] })).toEqual(took('1 widevine'));
    expect(choose(multiDrm, { systems: ['fairplay', 'playready'] })).toEqual(
      took('1 playready', '1 fairplay'),
    );
    expect(choose(multiDrm, { systems: [] })).toEqual(took('1 widevine playready', '1 fairplay'));
  });

  it('may be missing in the document, but for FairPlay', () => {
    expect(choose({ keys: [key(1)] }, { systems: ['playready', 'widevine'] })).toEqual(
      took('1 widevine playready'),
    );
    const widevine = { keys: [key(1)], systems: system('widevine', [1]) };
    expect(choose(widevine, { systems: ['playready'] })).toEqual(took('1 playready'));
    expect(choose({ keys: [key(1)], systems: system('fairplay', [1]) }, { systems: ['widevine'] })).toEqual(
      took('1 widevine'),
    );
    expect(choose(widevine, { systems: ['widevine', 'fairplay'] })).toEqual([
      'cpix_choice: has no DRMSystem of FairPlay (94ce86fb-07ff-4f43-adb8-93d2fa968ca2), and nothing can stand in for it; leave fairplay out',
    ]);
  });

  it('tell the key that has them from the one that has not', () => {
    const text = { keys: [key(1), key(2)], systems: system('widevine', [1]) + system('playready', [2]) };
    expect(choose(text, { systems: ['playready'] })).toEqual(took('2 playready'));
    expect(choose(text)).toEqual([expect.stringContaining('has several keys for CENC')]);
  });
});

describe('a key for sound', () => {
  const both = { keys: [key(1), key(2)], systems: system('widevine', [1, 2]) + system('fairplay', [1, 2]) };

  it.each([
    ['its track type', rule(2, 'STEREO_AUDIO')],
    ['its filter', rule(2, undefined, AUDIO)],
    [
      'its label',
      rule(2, undefined, '<LabelFilter label="All Audio"/>') +
        rule(2, undefined, '<LabelFilter label="Speech"/>'),
    ],
  ])('is told of when it is left out: by %s', (_, ofSound) => {
    const chosen = chooseKeys(cpixDocument({ ...both, rules: rule(1, 'VIDEO', VIDEO) + ofSound }), {
      track: 'VIDEO',
    });
    expect(chosen).toEqual({
      ok: true,
      value: {
        cenc: { keyId: keyIdOf(1), systems: ['widevine'] },
        fairplay: { keyId: keyIdOf(1), systems: ['fairplay'] },
        findings: [
          {
            severity: 'warning',
            code: 'audio_key_left_out',
            description: `The CPIX document has a key of its own for sound (${kidOf(2)}), which is left out: a key file has one key for all tracks.`,
          },
        ],
      },
    });
  });

  it('is no matter where it is the chosen one, or has pictures too', () => {
    const rules = rule(1, 'VIDEO', VIDEO) + rule(2, 'AUDIO', AUDIO);
    expect(choose({ ...both, rules }, { track: 'AUDIO' })).toEqual(took('2 widevine', '2 fairplay'));
    const sounds = { ...both, rules: rule(1, 'STEREO_AUDIO') + rule(2, 'MULTICHANNEL_AUDIO') };
    expect(choose(sounds, { track: 'STEREO_AUDIO' })).toEqual(took('1 widevine', '1 fairplay'));
    const shared = { ...both, rules: rule(1, 'HD', VIDEO) + rule(2, 'SD', VIDEO) + rule(2, 'AUDIO', AUDIO) };
    expect(choose(shared, { track: 'HD' })).toEqual(took('1 widevine', '1 fairplay'));
  });
});

it('says that a signature was not checked', () => {
  const after = '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/>';
  expect(choose({ ...multiDrm, after })).toEqual(
    took('1 widevine playready', '1 fairplay', 'signature_not_checked'),
  );
});

it('refuses a document without keys, and a request, which has no values', () => {
  expect(choose({ keys: [] })).toEqual(['cpix_choice: has no content keys']);
  expect(choose({ ...multiDrm, keys: [key(1, '', '')] })).toEqual([
    `cpix_not_usable: has no value for the key ${kidOf(1)}: it is a request for keys; send what the key server answers to it`,
  ]);
});
