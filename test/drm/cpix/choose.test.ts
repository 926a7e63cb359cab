import { type ChosenKey, type CpixChoice, chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixDocument, key, keyIdOf, kidOf, rule, system } from '../../support/cpix-text';

const VIDEO = '<VideoFilter/>';
const AUDIO = '<AudioFilter/>';
const inPeriod = (id: string) => `<KeyPeriodFilter periodId="${id}"/>`;
const label = (name: string) => `<LabelFilter label="${name}"/>`;

type Text = Parameters<typeof cpixDocument>[0];

/** Keys as `1 2:cenc`, each with its scheme, and systems as `widevine:12`, each with its keys. */
function made(keys: string, systems = '', rules = '', more: Partial<Text> = {}): Text {
  const keyOf = ([digit, scheme]: string[]) =>
    key(Number(digit), scheme ? `commonEncryptionScheme="${scheme}"` : '');
  const systemOf = ([name, digits = '']: string[]) =>
    system(name as Parameters<typeof system>[0], [...digits].map(Number));
  const split = (text: string) =>
    text
      .split(' ')
      .filter(Boolean)
      .map((each) => each.split(':'));
  return { keys: split(keys).map(keyOf), systems: split(systems).map(systemOf).join(''), rules, ...more };
}

/** The keys as short text, `1 widevine playready | 1 fairplay`, and behind `!` the codes of the warnings; or the faults. */
function choose(text: Text, choice: CpixChoice = {}): string {
  const chosen = chooseKeys(cpixDocument(text), choice);
  if (!chosen.ok) return chosen.faults.map(({ code, description }) => `${code}: ${description}`).join('\n');
  const { cenc, fairplay, findings } = chosen.value;
  const short = (one: ChosenKey | undefined) =>
    one ? [one.keyId.toString('hex').slice(0, 1), ...one.systems].join(' ') : '-';
  return [`${short(cenc)} | ${short(fairplay)}`, ...findings.map(({ code }) => code)].join(' ! ');
}

type Row = [what: string, text: Text, choice: CpixChoice, expected: string | RegExp];
/** The result as a whole, or a pattern of it. */
function expectChoice(_: string, text: Text, choice: CpixChoice, expected: string | RegExp): void {
  if (typeof expected === 'string') expect(choose(text, choice)).toBe(expected);
  else expect(choose(text, choice)).toMatch(expected);
}

const ALL = 'widevine:1 playready:1 fairplay:1';
const multiDrm = made('1', ALL);
const ALL_OF_1 = '1 widevine playready | 1 fairplay';
const MARLIN = `<DRMSystem kid="${kidOf(1)}" systemId="5e629af5-38da-4063-8977-97ffbd9902d4"/>`;

const withMarlin = { ...multiDrm, systems: `${multiDrm.systems}${MARLIN}` };

it.each<Row>([
  ['one key for all three systems', multiDrm, {}, ALL_OF_1],
  ['a key for either role', made('1:cenc 2:cbcs', 'widevine:1 fairplay:2'), {}, '1 widevine | 2 fairplay'],
  ['a document without DRM systems', made('1'), {}, '1 | -'],
  ['other DRM systems, which are named', withMarlin, {}, `${ALL_OF_1} ! cpix_systems_skipped`],
  ['other DRM systems not asked for', withMarlin, { systems: ['widevine'] }, '1 widevine | -'],
])('the one candidate for a role is taken: %s', expectChoice);

const bare = made(
  '1 2 3',
  'widevine:1',
  rule(1, 'HD', VIDEO) + rule(2, undefined, AUDIO) + rule(3, 'UHD', VIDEO),
);
it.each<Row>([
  ['left out where another key has one', bare, {}, '1 widevine | - ! audio_key_left_out ! cpix_key_left_out'],
  ['chosen by its track', bare, { track: 'UHD' }, '3 | - ! audio_key_left_out'],
  ['chosen by its id', bare, { keyId: keyIdOf(2) }, '2 | - ! cpix_key_left_out'],
])('a key without a DRMSystem is %s', expectChoice);

const RULES = rule(1, 'SD', VIDEO) + rule(2, 'HD', VIDEO) + rule(3, undefined, label('uhd-main'));
const tracks = made('1 2 3 4', 'widevine:1234', RULES + rule(4, undefined, AUDIO));
const NO_TRACK = 'cpix_choice: has no such track';
const SEVERAL = 'cpix_choice: has several keys for CENC (Widevine, PlayReady); choose one by track or kid:';
const TWO = `SD (kid ${kidOf(1)}), HD (kid ${kidOf(2)})`;
const FOUR = `${TWO}, uhd-main (kid ${kidOf(3)}), AUDIO (kid ${kidOf(4)})`;
const NO_KEY = `cpix_choice: has the key ${kidOf(2)}, but not for the systems, track and period chosen; it has ${FOUR}`;
const NO_RULES = `cpix_choice: has no usage rules that identify the key of a track; choose by kid: kid ${kidOf(1)}, kid ${kidOf(2)}`;

it.each<Row>([
  ['without a choice', tracks, {}, `${SEVERAL} ${FOUR}`],
  ['hd', tracks, { track: 'hd' }, '2 widevine | - ! audio_key_left_out'],
  ['UHD-MAIN', tracks, { track: 'UHD-MAIN' }, '3 widevine | - ! audio_key_left_out'],
  ['audio', tracks, { track: 'audio' }, '4 widevine | -'],
  ['a key id', tracks, { keyId: keyIdOf(3) }, '3 widevine | - ! audio_key_left_out'],
  ['a track that several have', tracks, { track: 'VIDEO' }, `${SEVERAL} ${TWO}`],
  ['no such track', tracks, { track: 'SDR' }, `${NO_TRACK}; it has SD, HD, uhd-main, AUDIO`],
  ['no such key', tracks, { keyId: keyIdOf(9) }, `cpix_choice: has no key ${kidOf(9)}; it has ${FOUR}`],
  ['a key of another track', tracks, { track: 'SD', keyId: keyIdOf(2) }, NO_KEY],
  ['a track without rules', made('1 2'), { track: 'SD' }, NO_RULES],
])('several candidates are separated, or refused with all choices: %s', expectChoice);

it('several candidates are listed within bounds, without control characters and quotes', () => {
  const digits = Array.from({ length: 200 }, (_, index) => index);
  const kid = (index: number) => `${String(index).padStart(8, '0')}-1111-4111-8111-111111111111`;
  const long = `&#9;&quot;&#252;${'x'.repeat(300)}`;
  const rules = Array.from({ length: 400 }, (_, index) => {
    const filter = label(`${index % 9}${long}`);
    return `<ContentKeyUsageRule kid="${kid(Math.floor(index / 9))}">${filter}</ContentKeyUsageRule>`;
  });
  const keys = digits.map((index) => ({ ...key(1), kid: kid(index) }));
  const listed = choose({ keys, rules: rules.join('') });
  expect(listed).toMatch(/choose one by track or kid: 0\?\?\?x{36}\.\.\., /);
  expect(listed).toMatch(/, 188 more$/);
  expect(listed.length).toBeLessThan(4000);
  expect(listed).toMatch(/^[ -!#-~]*$/);
});

const NAMES = [
  rule(1, 'ALL', VIDEO + AUDIO),
  rule(2, undefined, VIDEO),
  rule(3, undefined, label('Video')),
  rule(4, 'VIDEO'),
];
const named = (count: number) => made('1 2 3 4', '', NAMES.slice(0, count).join(''));
const ruled = (rules: string) => ({ ...multiDrm, rules });
const joined = made('1 2', '', rule(1, 'SD+HD1', VIDEO) + rule(2, 'HD2', VIDEO));
const ofOwn = (rules: string) =>
  made('1 2 3', 'widevine:12 fairplay:3', rule(1, 'SD') + rule(2, 'HD') + rules);
const withAll = ofOwn(rule(3, 'ALL'));
const filters = rule(1, 'HD', '<x:RegionFilter xmlns:x="urn:x"/>') + rule(2, 'SD', '<FutureFilter/>');
const UNKNOWN_FILTER =
  'cpix_choice: has usage rules with an unknown filter (RegionFilter, FutureFilter), so no track can be chosen; choose by kid';

it.each<Row>([
  ['the key for all tracks where there is no other', named(1), { track: 'VIDEO' }, '1 | -'],
  ['its filter before that', named(2), { track: 'VIDEO' }, '2 | -'],
  ['its name in other letters before the filter', named(3), { track: 'VIDEO' }, '3 | -'],
  ['its very name before these', named(4), { track: 'VIDEO' }, '4 | -'],
  ['a rule that joins it with others', joined, { track: 'HD1' }, '1 | -'],
  ['a key for ALL', ruled(rule(1, 'ALL', VIDEO + AUDIO)), { track: 'HD' }, ALL_OF_1],
  ['a key for both kinds', ruled(rule(1, undefined, VIDEO + AUDIO)), { track: 'HD' }, ALL_OF_1],
  ['a key of a period', ruled(rule(1, undefined, inPeriod('p'))), { track: 'HD' }, ALL_OF_1],
  ['for each role the rules of its own keys', withAll, { track: 'HD' }, '2 widevine | 3 fairplay'],
  ['the key without a rule', ofOwn(''), { track: 'HD' }, '2 widevine | 3 fairplay'],
  ['no key of another track', ofOwn(rule(3, 'SD')), { track: 'HD' }, '2 widevine | - ! cpix_system_left_out'],
  ['none, by a name that none has', withAll, { track: 'HDD' }, `${NO_TRACK}; it has SD, HD, ALL`],
  ['the key for all of the one system', withAll, { track: 'HDD', systems: ['fairplay'] }, '- | 3 fairplay'],
  ['none, where a filter is not known', made('1 2', '', filters), { track: 'HD' }, UNKNOWN_FILTER],
  ['nothing next to a key id there', made('1 2', '', filters), { keyId: keyIdOf(1) }, '1 | -'],
])('a track means %s', expectChoice);

const twoPairs = made('1:cenc 2:cenc 3:cbcs', 'widevine:12 fairplay:3');
const severalOthers = made('1:cenc 2:cenc 3:cbcs 4:cbcs', 'widevine:12 fairplay:34');
const shared = made('1 2', 'widevine:12 fairplay:1');
const NO_ONE_KEY = `cpix_choice: does not have exactly one key for FairPlay with this choice; it has kid ${kidOf(1)}`;
const of2 = { keyId: keyIdOf(2) };

it.each<Row>([
  ['leaves the one key of the other role', twoPairs, of2, '2 widevine | 3 fairplay'],
  ['leaves out a role with several keys', severalOthers, of2, '2 widevine | - ! cpix_system_left_out'],
  ['leaves out a role that would take its key', shared, of2, '2 widevine | - ! cpix_system_left_out'],
  ['is refused where that was asked for', shared, { ...of2, systems: ['widevine', 'fairplay'] }, NO_ONE_KEY],
])('a key id %s', expectChoice);

const ofFirst = rule(1, 'HD', inPeriod('first'));
const ofSecond = rule(2, 'HD', inPeriod('second'));
const BOTH_PERIODS = inPeriod('first') + inPeriod('second');
const PERIODS = { periods: ['first/7', 'second/8'] };
const rotating = (rules: string, keys = '1 2', systems = 'widevine:12 fairplay:12') =>
  made(keys, systems, rules, PERIODS);
const rotated = rotating(ofFirst + ofSecond);
const withNameless = { ...rotated, periods: [...PERIODS.periods, '/10'] };
const NEEDED =
  'cpix_choice: has other keys in each key period; choose one by period: first (index 7), second (index 8)';
const byIndex = {
  ...rotating(rule(1, 'HD', inPeriod('p2')) + rule(2, 'HD', inPeriod('1'))),
  periods: ['p2/1', '1x/2'],
};
const oneOf = (rules: string) => rotating(rules, '1', 'widevine:1');
const fixed = (type: string) => rotating(ofFirst + ofSecond + rule(3, type), '1 2 3', 'widevine:123');
const allowed = rule(1) + ofFirst + rule(2, 'SD', BOTH_PERIODS);
const NO_PERIOD = 'cpix_choice: has no such key period; it has first (index 7), second (index 8)';
const inFirst: CpixChoice = { period: 'first', track: 'HD' };
const inSecond: CpixChoice = { period: 'second' };
const notInIt = rotating(ofFirst + ofSecond + rule(1, 'SD', inPeriod('first')));

it.each<Row>([
  ['must be chosen from', rotated, {}, NEEDED],
  ['must be chosen from with a track', rotated, { track: 'HD' }, NEEDED],
  ['must be chosen from with a key id', rotated, { keyId: keyIdOf(1) }, NEEDED],
  ['are chosen by their index', rotated, { period: '8' }, '2 widevine | 2 fairplay'],
  ['are chosen with a track', rotated, { ...inSecond, track: 'HD' }, '2 widevine | 2 fairplay'],
  ['have other keys', rotated, { ...inSecond, keyId: keyIdOf(1) }, /has the key 1.*, but not for the/],
  ['are chosen by id before index', byIndex, { period: '1' }, '2 widevine | 2 fairplay'],
  ['need no choice where one is named', oneOf(ofFirst), {}, '1 widevine | -'],
  ['need none with the same keys', oneOf(rule(1, 'HD', BOTH_PERIODS)), {}, '1 widevine | -'],
  ['need none where the track has one key', fixed('SD'), { track: 'SD' }, '3 widevine | -'],
  ['do not affect a key that is in all', rotating(allowed), {}, /for CENC.*\n.*several keys for FairPlay/],
  ['hold for rules without one', fixed('AUDIO'), { period: 'first', track: 'AUDIO' }, '3 widevine | -'],
  ['hold next to those', fixed('AUDIO'), inFirst, '1 widevine | - ! audio_key_left_out'],
  ['are refused by a name that none has', withNameless, { period: '9' }, NO_PERIOD],
  [
    'are refused without the track',
    notInIt,
    { ...inSecond, track: 'SD' },
    `${NO_TRACK} in that period; it has HD`,
  ],
])('key periods %s', expectChoice);

const notCenc = (scheme: string) =>
  `cpix_not_usable: has the scheme ${scheme} for CENC (Widevine, PlayReady), but the packager takes only cenc; ask the key server for cenc`;
const notFairPlay = (scheme: string) =>
  `cpix_not_usable: has FairPlay with the scheme ${scheme}; FairPlay takes cbcs`;
const withFairPlay = ', or write FairPlay alone with systems fairplay';
const forFairPlay: CpixChoice = { systems: ['fairplay'] };
const ofHlsMethods = made('1:SAMPLE-AES-CTR 2:SAMPLE-AES', 'widevine:1 fairplay:2');
const twoSchemes = made('1:cenc 2:cbcs', 'widevine:12 fairplay:12');

it.each<Row>([
  ['cenc', made('1:cenc', ALL), {}, `${ALL_OF_1} ! fairplay_scheme`],
  ['cbcs', made('1:cbcs', ALL), {}, `${notCenc('cbcs')}${withFairPlay}`],
  ['cens', made('1:cens', ALL), {}, `${notCenc('cens')}\n${notFairPlay('cens')}`],
  ['cbc1', made('1:cbc1', ALL), {}, `${notCenc('cbc1')}\n${notFairPlay('cbc1')}`],
  ['AES-128', made('1:AES-128', 'fairplay:1'), {}, notFairPlay('AES-128')],
  ['cbcs for FairPlay alone', made('1:cbcs', ALL), forFairPlay, '- | 1 fairplay'],
  // CPIX 2.4 has the methods of HLS in place of schemes.
  ['methods of HLS', ofHlsMethods, {}, '1 widevine | 2 fairplay'],
  ['SAMPLE-AES', made('1:SAMPLE-AES', ALL), {}, `${notCenc('SAMPLE-AES')}${withFairPlay}`],
  ['cbcs without any DRM system', made('1:cbcs'), {}, /^cpix_not_usable: has the scheme cbcs/],
  ['both, of which the right one is taken', twoSchemes, {}, '1 widevine | 2 fairplay ! cpix_scheme_left_out'],
])('schemes decide what can be written: %s', expectChoice);

const ofWidevine = made('1', 'widevine:1');
const apart = made('1 2', 'widevine:1 playready:2');
const NO_FAIRPLAY =
  'cpix_choice: has no DRMSystem of FairPlay (94ce86fb-07ff-4f43-adb8-93d2fa968ca2); leave fairplay out';

it.each<Row>([
  ['may be none: all are written', multiDrm, { systems: [] }, ALL_OF_1],
  ['may be missing', made('1'), { systems: ['playready', 'widevine'] }, '1 widevine playready | -'],
  ['may be missing next to others', ofWidevine, { systems: ['playready'] }, '1 playready | -'],
  ['may be missing next to FairPlay', made('1', 'fairplay:1'), { systems: ['widevine'] }, '1 widevine | -'],
  ['may not be FairPlay then', ofWidevine, { systems: ['widevine', 'fairplay'] }, NO_FAIRPLAY],
  ['identify the key that has them', apart, { systems: ['playready'] }, '2 playready | -'],
  ['are missed where keys differ', apart, {}, /has several keys for CENC/],
])('systems that are asked for %s', expectChoice);

const sounds = (rules: string) => made('1 2', 'widevine:12 fairplay:12', rules);
const withSound = sounds(rule(1, 'VIDEO', VIDEO) + rule(2, 'AUDIO', AUDIO));
const twoSounds = sounds(rule(1, 'STEREO_AUDIO') + rule(2, 'MULTICHANNEL_AUDIO'));
const withPictures = sounds(rule(1, 'HD', VIDEO) + rule(2, 'SD', VIDEO) + rule(2, 'AUDIO', AUDIO));

it.each<Row>([
  ['is the chosen one', withSound, { track: 'AUDIO' }, '2 widevine | 2 fairplay'],
  ['has sounds next to it alone', twoSounds, { track: 'STEREO_AUDIO' }, '1 widevine | 1 fairplay'],
  ['has pictures, too', withPictures, { track: 'HD' }, '1 widevine | 1 fairplay'],
])('a key for sound has no effect where it %s', expectChoice);

it.each([
  ['its track type', rule(2, 'STEREO_AUDIO')],
  ['its filter', rule(2, undefined, AUDIO)],
  ['its label', rule(2, undefined, label('All Audio')) + rule(2, undefined, label('Speech'))],
])('a key for sound is reported when it is left out: by %s', (_, ofSound) => {
  const chosen = chooseKeys(cpixDocument(sounds(rule(1, 'VIDEO', VIDEO) + ofSound)), { track: 'VIDEO' });
  const description = `The CPIX document has a separate key for audio (${kidOf(2)}), which is left out: one key is for all tracks.`;
  expect(chosen).toEqual({
    ok: true,
    value: {
      cenc: { keyId: keyIdOf(1), systems: ['widevine'] },
      fairplay: { keyId: keyIdOf(1), systems: ['fairplay'] },
      findings: [{ severity: 'warning', code: 'audio_key_left_out', description }],
    },
  });
});

const SIGNATURE = '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/>';
const signed = { ...multiDrm, after: SIGNATURE };
const REQUEST = `cpix_not_usable: has no value for the key ${kidOf(1)}: it is a request for keys; send the answer of the key server`;

it.each<Row>([
  ['warns of a signature, which is not checked', signed, {}, `${ALL_OF_1} ! signature_not_checked`],
  ['refuses a document without keys', { keys: [] }, {}, 'cpix_choice: has no content keys'],
  ['refuses a request, which has no values', { ...multiDrm, keys: [key(1, '', '')] }, {}, REQUEST],
])('%s', expectChoice);
