import { formatUuid, isAmong, swapKeyIdOrder } from '../drm/bytes';
import { systemName } from '../drm/check/boxes';
import { type CheckedInput, checkInput } from '../drm/check/check';
import { compareInputs, withoutAnswered } from '../drm/check/compare';
import { withTheseKeys } from '../drm/check/comparison';
import { claimsOf } from '../drm/check/report';
import { isError } from '../drm/finding';
import { parsePsshBox } from '../drm/pssh';
import { listed, OTHER, ownFindings, type StreamFinding, streamFinding, THIS } from './findings';
import { inputsOf, isForFairPlay, matchingFiles, nounOf, type ReadKeyFile } from './key-files';
import type { MediaJudgement } from './media/judgement';
import { signalsOfInit, signalsOfManifest, signalsOfRendition } from './systems';
import type { TestedRendition, TestedSegment } from './test-rendition';

interface FindingsOptions {
  readonly keyFiles: readonly ReadKeyFile[];
  readonly live: boolean;
  readonly started: Date | undefined;
  readonly othersEncrypted: boolean;
  /** Whether others are decrypted: the stream may have several keys, of which one was given. */
  readonly othersDecrypt: boolean;
  /** A rendition without a key is no error while others decrypt. */
  readonly allowMissingKeys: boolean;
}

export function findingsOf(tested: TestedRendition, options: FindingsOptions): StreamFinding[] {
  const keyFiles = isOfOtherKey(tested, options) ? [] : options.keyFiles;
  const compared = comparisons(tested, { ...options, keyFiles });
  // A contradiction between files is more informative than one within a file.
  const isCompared = ({ code }: StreamFinding) => has(compared, code);
  const all = [
    ...tested.problems,
    ...ownFaults(tested).filter((own) => !isCompared(own)),
    ...compared,
    ...psshDifference(tested),
    ...(has(compared, 'key_id_mismatch') ? [] : boxesOfOtherKeys(tested, options.keyFiles)),
    ...sampleFindings(tested, options),
  ];
  const reported = withoutConsequences(all);
  return options.live ? reported : reported.map(forOnDemand);
}

/** A live stream is restarted; one on demand is packaged again. */
function forOnDemand({ description, ...finding }: StreamFinding): StreamFinding {
  const remedy = description.replace(/\b(r)estart (?:the stream|it)\b/gi, (_all, first: string) =>
    first === 'R' ? 'Package the stream again' : 'package the stream again',
  );
  return { ...finding, description: remedy };
}

/** Whether the stream has several keys and this rendition's was not given: then there is nothing to compare. */
function isOfOtherKey(tested: TestedRendition, options: FindingsOptions): boolean {
  if (!options.othersDecrypt || tested.segment?.judgement?.state !== 'no_key') return false;
  const errors = comparisons(tested, options).filter(isError);
  return errors.every(({ code }) => code === 'key_id_mismatch' || code === 'license_address_differs');
}

/** Codes, and those of their consequences and repetitions. */
const CONSEQUENCES = [
  {
    of: 'not_protected not_encrypted not_signalled',
    are: 'key_id_mismatch scheme_mismatch no_pssh_box clear_lead pssh_differs names_nothing',
  },
  { of: 'not_protected no_tenc_box scheme_unknown', are: 'not_encrypted not_signalled' },
  {
    of: 'senc_malformed subsamples_malformed',
    are: 'iv_missing undetermined partly_noise content_key_wrong content_key_byte_order subsamples_malformed',
  },
  { of: 'not_encrypted', are: 'iv_missing senc_malformed' },
  { of: 'not_media', are: 'segment_index_broken' },
  { of: 'iv_missing', are: 'undetermined' },
  {
    of: 'key_and_key_id_swapped key_id_byte_order former_key key_id_mismatch',
    are:
      'key_id_unknown license_address_differs content_id_mismatch checksum_mismatch iv_mismatch content_key_wrong ' +
      'pssh_differs key_id_byte_order_suspected',
  },
  { of: 'key_and_key_id_swapped key_id_byte_order former_key', are: 'key_id_mismatch' },
  { of: 'session_id_in_address', are: 'license_address_differs' },
  { of: 'license_address_differs', are: 'content_key_wrong iv_wrong' },
  { of: 'content_key_wrong', are: 'checksum_mismatch' },
  { of: 'iv_mismatch', are: 'iv_wrong' },
  { of: 'content_id_mismatch license_address_differs checksum_mismatch', are: 'pssh_differs' },
  { of: 'scheme_mismatch', are: 'content_key_wrong' },
].map(({ of, are }) => ({ causes: of.split(' '), followers: are.split(' ') }));

function withoutConsequences(findings: readonly StreamFinding[]): StreamFinding[] {
  const errors = new Set(findings.filter(isError).map(({ code }) => code));
  return findings.filter(({ code, severity }) =>
    CONSEQUENCES.every(({ causes, followers }) => {
      if (!followers.includes(code)) return true;
      // A finding that may be intended is not the cause of an error.
      const known = causes.filter(
        (cause) => errors.has(cause) || (severity === 'warning' && has(findings, cause)),
      );
      return known.length === 0 || (known.length === 1 && known[0] === code);
    }),
  );
}

function has(findings: readonly StreamFinding[], code: string): boolean {
  return findings.some((finding) => finding.code === code);
}

function ownFaults({ signalling, init, segment }: TestedRendition): StreamFinding[] {
  const inputs = withoutAnswered([signalling, ...(init ? [init.checked] : [])]);
  // The compared input shows whether it should be protected. An init segment may be encrypted as its segments are.
  const isLeftOut = (code: string) =>
    code === 'not_protected' ||
    (code === 'unrecognised' && segment?.opened?.container === 'encrypted_segment') ||
    (code === 'content_key_in_address' && segment?.identityKey === false);
  return inputs.flatMap(({ name, result }) => ownFindings(name, result, isLeftOut));
}

function comparisons(tested: TestedRendition, options: FindingsOptions): StreamFinding[] {
  const { rendition, signalling, init } = tested;
  const { keyFiles, othersEncrypted } = options;
  // A playlist says of segments how they are protected.
  if (!init && !tested.newest) return [];
  const isClear = [signalling, ...(init ? [init.checked] : [])].every(isDeclaredClear);
  // Subtitles are always clear; clear audio with encrypted video may be intended.
  if (isClear && rendition.kind === 'text') return [];
  if (isClear && othersEncrypted) {
    const text = `${THIS} is not protected, while other renditions are; if this is not intended, package again with the ${nounOf(keyFiles)} for all of them`;
    return [streamFinding('warning', 'not_protected', rendition.name, text)];
  }
  const ofKeyFiles = inputsOf(matchingFiles(keyFiles, keyIdsOf(tested), tested.newest), tested.newest);
  const ofManifest = { ...signalling, name: THIS };
  const ofInit = init ? [{ ...withoutForeignKeyIds(init.checked, tested, keyFiles), name: OTHER }] : [];
  // Then only the signalling of the protection is missing in the manifest.
  const isUndeclared = isDeclaredClear(signalling) && init !== undefined && !isDeclaredClear(init.checked);
  const compared = isUndeclared
    ? [...compareInputs([ofManifest, ...ofInit]).faults, ...compareInputs([...ofKeyFiles, ...ofInit]).faults]
    : compareInputs([...ofKeyFiles, ofManifest, ...ofInit]).faults;
  return compared.map(({ inputs: _inputs, description, ...finding }) => {
    const other = description.includes(OTHER) ? init?.name : undefined;
    // A sentence of one file alone is the same for the manifest and for the init segment.
    const own = description.includes(THIS)
      ? { description, names: { [THIS]: signalling.name, [OTHER]: other } }
      : { description: description.replaceAll(OTHER, THIS), names: { [THIS]: init?.name ?? '' } };
    return withHistory({ ...finding, ...own }, options);
  });
}

function keyIdsOf({ init, segment }: TestedRendition): Buffer[] {
  const ofInit = claimsOf(init?.checked.claims ?? [], 'track').flatMap(({ keyId }) => keyId ?? []);
  return [...ofInit, ...(segment?.opened?.tracks.flatMap((track) => track.keyIds) ?? [])];
}

/** Media for FairPlay alone may have any key id, except the key file's other key id in the wrong byte order. */
function withoutForeignKeyIds(
  init: CheckedInput,
  { newest, signalling }: TestedRendition,
  keyFiles: readonly ReadKeyFile[],
): CheckedInput {
  const namesKeyIds = claimsOf(signalling.claims, 'track').some(({ keyId }) => keyId !== undefined);
  const isOfFairPlay = newest && isForFairPlay(newest) && keyFiles.some(({ fairPlay }) => fairPlay);
  if (!isOfFairPlay || namesKeyIds) return init;
  const known = keyFiles.flatMap(({ cenc }) => (cenc ? [cenc.keyId, swapKeyIdOrder(cenc.keyId)] : []));
  const isForeign = (keyId: Buffer | undefined) => keyId !== undefined && !isAmong(keyId, known);
  const claims = init.claims.flatMap((claim) => {
    if (claim.of === 'track' && isForeign(claim.keyId)) return [{ ...claim, keyId: undefined }];
    return claim.of === 'box' && isForeign(claim.keyId) ? [] : [claim];
  });
  return { ...init, claims };
}

function isDeclaredClear({ claims }: CheckedInput): boolean {
  return claimsOf(claims, 'clear').length > 0;
}

/** In 2001. Many packagers count times, or segments, from 1970, where no stream began. */
const EARLIEST = new Date(1e12);

/** The key file may be newer than the stream. */
function withHistory(finding: StreamFinding, { keyFiles, started }: FindingsOptions): StreamFinding {
  if (!['key_id_mismatch', 'content_key_wrong', 'license_address_differs'].includes(finding.code))
    return finding;
  const newer = keyFiles.find(({ changed }) => changed && started && changed > started);
  if (!newer?.changed || !started || started < EARLIEST) return finding;
  const history = ` ${newer.name} was changed at ${timeOf(newer.changed)}, after the stream began (${timeOf(started)}): most likely the packager still uses the former key file, and restarting the stream is enough.`;
  return { ...finding, description: finding.description + history };
}

function timeOf(date: Date): string {
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Boxes of one system that differ in manifest and init segment, beyond the findings of their comparison. */
function psshDifference({ rendition, signalling, init }: TestedRendition): StreamFinding[] {
  if (!init) return [];
  const ofManifest = boxesBySystem(signalsOfManifest(rendition.signalling.text));
  const ofInit = boxesBySystem(signalsOfInit(init.bytes));
  return [...ofManifest].flatMap(([system, boxes]) => {
    const others = ofInit.get(system);
    if (!others || [...boxes].every((box) => others.has(box))) return [];
    const text = `The ${system} pssh box in ${THIS} differs from the one in ${OTHER}: players use the one in the manifest first, so some get another license than others; make both in one run of the packager`;
    return streamFinding('warning', 'pssh_differs', signalling.name, text, { other: init.name });
  });
}

/** One box with the right key id is enough for the comparison, but each system's players read their own. */
function boxesOfOtherKeys(tested: TestedRendition, keyFiles: readonly ReadKeyFile[]): StreamFinding[] {
  const { rendition, init, newest } = tested;
  const documents = keyFiles.filter(({ isDocument }) => isDocument);
  const known = documents.flatMap(({ cenc }) => cenc?.keyId ?? []);
  const keyIds = keyIdsOf(tested).filter((id) => isAmong(id, known));
  if (keyIds.length === 0) return [];
  const files = [
    [rendition.signalling.name, signalsOfRendition(rendition, newest)],
    [init?.name ?? '', init ? signalsOfInit(init.bytes) : []],
  ] as const;
  return files.flatMap(([name, signals]) =>
    [...boxesBySystem(signals)].flatMap(([system, boxes]) => {
      const ids = [...boxes].flatMap((box) =>
        claimsOf(checkInput(Buffer.from(box, 'base64')).claims, 'box').map(({ keyId }) => keyId),
      );
      if (ids.length === 0 || ids.some((id) => isAmong(id, keyIds))) return [];
      const text = `The ${systemName(system) ?? system} pssh box in ${THIS} names key id ${listed(ids.map(formatUuid))}, but the samples have ${listed([...new Set(keyIds.map(formatUuid))])} of ${namesOf(documents)}, so players ask for another key; package the stream again with the box of the document`;
      return streamFinding('error', 'key_id_mismatch', name, text);
    }),
  );
}

function boxesBySystem(signals: readonly { readonly content: string }[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { content } of signals) {
    const parsed = parsePsshBox(Buffer.from(content, 'base64'));
    if (!parsed.ok) continue;
    const boxes = found.get(parsed.value.systemId) ?? new Set();
    found.set(parsed.value.systemId, boxes.add(content));
  }
  return found;
}

function sampleFindings(tested: TestedRendition, options: FindingsOptions): StreamFinding[] {
  const { segment, first } = tested;
  if (!segment?.opened || !segment.judgement) return [];
  const { judgement } = segment;
  const [ofFirst, own] = [first, segment].map((each) => each && otherwiseThanSaid(each));
  if (own) return [own];
  const isFirstNoise = judgement.state === 'decrypts' && first?.judgement?.state === 'garbage' && !ofFirst;
  // Behind another key, it may be right.
  const isOfKey = isFirstNoise && keysNamed(first) === keysNamed(segment);
  return [
    ...(ofFirst ? [ofFirst] : []),
    ...(isOfKey ? keyFindings(tested, first, first.judgement, options) : []),
    ...clearLeadFindings(segment, first),
    ...undeterminedFindings(judgement.state !== 'unknown' && first?.judgement?.cause ? first : segment),
    ...[first, segment].flatMap((each) => (each ? ofNoise(each) : [])),
    ...ivFindings(segment, judgement, matchingFiles(options.keyFiles, keyIdsOf(tested), segment.source)),
    ...(options.keyFiles.length > 0 || segment.identityKey
      ? keyFindings(tested, segment, judgement, options)
      : []),
  ];
}

/** Encrypted although nothing says so, or the other way round. */
function otherwiseThanSaid({ judgement, name }: TestedSegment): StreamFinding | undefined {
  if (judgement?.cause === 'not_encrypted') {
    const isWhole = judgement.tracks.every(({ cause }) => cause === judgement.cause);
    const text = `${isWhole ? THIS : `The ${judgement.kind} of ${THIS}`} is not encrypted, although its init segment or playlist says that it is, so anyone can play it, except in players that insist on decrypting; restart the stream, and look for the key in the packager's log`;
    return streamFinding('error', 'not_encrypted', name, text);
  }
  if (judgement?.cause !== 'not_signalled') return undefined;
  const text = `${THIS} is not valid video or audio, but nothing says that it is encrypted: players request no license, and show an error. Package again with signalling`;
  return streamFinding('error', 'not_signalled', name, text, judgement);
}

function keysNamed({ opened, source }: TestedSegment): string {
  const keyIds = opened?.tracks.flatMap((track) => track.keyIds.map(formatUuid)) ?? [];
  return [...keyIds, ...(source.keys ?? []).map(({ uri }) => uri)].sort().join(' ');
}

function ofNoise({ name, judgement }: TestedSegment): StreamFinding[] {
  const track = judgement?.tracks.find((of) => of.state === 'decrypts' && of.cause === 'partly_noise');
  const text = `Some samples of ${THIS} are noise, although the key decrypts the others: they are damaged, not encrypted, or encrypted with another key or IV, and players show a broken picture there. Look for errors in the packager's log`;
  return track ? [streamFinding('warning', 'partly_noise', name, text, track)] : [];
}

function undeterminedFindings({ opened, name, judgement }: TestedSegment): StreamFinding[] {
  if (judgement?.state !== 'unknown') return [];
  const codecs = opened?.tracks.flatMap(({ codec }) => (codec === 'unknown' ? [] : [codec])) ?? [];
  const of = codecs.length > 0 ? ` (${listed(codecs)})` : '';
  const text = `Whether the key decrypts ${THIS}${of} is undetermined. ${judgement.description} Play the stream with a player to find out`;
  return [streamFinding('warning', 'undetermined', name, text, judgement)];
}

function clearLeadFindings(segment: TestedSegment, first: TestedSegment | undefined): StreamFinding[] {
  const tracks = segment.opened?.tracks ?? [];
  const lead = first?.opened?.tracks ?? [];
  const isClear = ({ encryptedSamples }: { readonly encryptedSamples: number }) => encryptedSamples === 0;
  const remedy = "if this is not intended, set the packager's clear lead to 0";
  const name = segment.name;
  if (tracks.every(isClear)) {
    const text = `${THIS} is not encrypted, as in a clear lead, although its init segment names a key. Everyone can watch it; ${remedy}`;
    const isMeant = tracks.some(({ scheme }) => scheme !== undefined);
    return isMeant ? [streamFinding('warning', 'clear_lead', name, text)] : [];
  }
  if (lead.length === 0 || !lead.every(isClear)) return [];
  const text = `The stream has a clear lead: ${OTHER} is not encrypted at its start, and ${THIS} is at its end. Everyone can watch its start; ${remedy}`;
  return [streamFinding('warning', 'clear_lead', name, text, { other: first?.name })];
}

/** FairPlay's players take the IV of the license, which the key file has, and not the IV of the media. */
function ivFindings(
  { opened, source, name }: TestedSegment,
  { state }: MediaJudgement,
  keyFiles: readonly ReadKeyFile[],
): StreamFinding[] {
  if (state !== 'decrypts' || !isForFairPlay(source)) return [];
  const ivs = keyFiles.flatMap(({ fairPlay }) => fairPlay?.iv ?? []);
  // Without an IV in the playlist, a transport stream names none.
  const isNamed = opened?.container !== 'mpegts' || source.keys?.some(({ iv }) => iv);
  const own = isNamed ? (opened?.tracks.flatMap(({ constantIv }) => constantIv ?? []) ?? []) : [];
  if (ivs.length === 0 || own.length === 0 || own.every((iv) => isAmong(iv, ivs))) return [];
  const each = nounOf(keyFiles);
  const text = `${THIS} decrypts with its own IV, which is not the IV of ${namesOf(keyFiles)}. FairPlay players get the IV of the ${each} with the license, and show a broken picture; restart the stream so that the packager takes the IV of the ${each}`;
  return [streamFinding('error', 'iv_mismatch', name, text)];
}

/** All key files, where none has a key id of the samples, or samples name none. */
function filesOf(keyFiles: readonly ReadKeyFile[], keyIds: readonly Buffer[]): readonly ReadKeyFile[] {
  const meant = keyFiles.filter(({ cenc }) => cenc && isAmong(cenc.keyId, keyIds));
  return meant.length > 0 ? meant : keyFiles;
}

function namesOf(keyFiles: readonly ReadKeyFile[]): string {
  return listed([...new Set(keyFiles.map(({ name }) => name))]);
}

function keyFindings(
  tested: TestedRendition,
  { opened, identityKey, name, source }: TestedSegment,
  { state, cause, evidence }: MediaJudgement,
  options: FindingsOptions,
): StreamFinding[] {
  if (state !== 'garbage' && state !== 'no_key') return [];
  const keyIds = opened?.tracks.flatMap((track) => track.keyIds) ?? [];
  const meant = filesOf(matchingFiles(options.keyFiles, keyIds, source), keyIds);
  const files = identityKey ? 'the address that the playlist names' : namesOf(meant);
  const each = nounOf(meant);
  const { former, substituteKey } = tested;
  if (substituteKey) {
    const [code, when] = substituteKey.isNext ? ['next_key', 'already'] : ['former_key', 'still'];
    const text = `${THIS} is ${when} encrypted with the key of ${substituteKey.name}, but it names the key of ${files}, so no player decrypts it: let the packager change key and signalling at the same segment`;
    return [streamFinding('error', code, name, text)];
  }
  if (former) {
    const cause = options.live
      ? `the packager still uses the ${nounOf([former])} that it read when the stream started`
      : `it was packaged with the former ${nounOf([former])}`;
    const text = `${THIS} is encrypted with the key of ${former.name}, not with the key of ${files}: ${cause}. Restart the stream, so that the packager reads the new one`;
    return [streamFinding('error', 'former_key', name, text)];
  }
  if (state === 'no_key') {
    const named = [...new Set(keyIds.map(formatUuid))];
    const is = named.length > 0 ? ` (key id ${listed(named)})` : '';
    const text = `There is no key for ${THIS}${is} in ${files}; give the ${each} of this stream, or restart the stream ${each === 'document' ? withTheseKeys(each) : 'so that the packager reads it'}`;
    const severity = options.othersDecrypt && options.allowMissingKeys ? 'warning' : 'error';
    return [streamFinding(severity, 'key_id_unknown', name, text)];
  }
  const isOfTwo = isForFairPlay(source) && meant.some(({ cenc, fairPlay }) => cenc && fairPlay);
  // Of SAMPLE-AES, the IV comes with the key.
  const isOfKey = opened?.tracks.every(({ scheme, constantIv }) => scheme === 'sample-aes' && !constantIv);
  const key = isOfKey ? 'content key or IV' : 'content key';
  const [code, text] = wrongKey(cause, files, each, isOfTwo, key);
  const said = identityKey && code === 'content_key_wrong' ? WRONG_AT_ADDRESS : text;
  return [withHistory(streamFinding('error', code, name, said, { evidence }), options)];
}

const WRONG_AT_ADDRESS = `The key at the address that the playlist names does not decrypt ${THIS}, although it should: the packager used another key or IV. Let that address answer with the packager's key, or restart the stream with the key that is there`;

function wrongKey(
  cause: MediaJudgement['cause'],
  files: string,
  each: 'key file' | 'document',
  isOfTwo: boolean,
  key: string,
): readonly [code: string, text: string] {
  if (cause === 'wrong_iv') {
    const text = `The content key of ${files} is right for ${THIS}, but the IV that the media or the playlist name is not the one it was encrypted with. Let the packager take the IV from the ${each}, and restart the stream`;
    return ['iv_wrong', text];
  }
  if (cause === 'wrong_pattern') {
    const text = `${THIS} decrypts with the content key of ${files}, but not with the pattern of encrypted and clear blocks that its init segment names (tenc). Set the packager's pattern as the samples are encrypted, which is 1:9 for pictures under cbcs, and restart the stream`;
    return ['pattern_wrong', text];
  }
  if (cause === 'key_byte_order') {
    const text = `${THIS} is encrypted with the content key of ${files} in another byte order: only key ids have two byte orders, content keys have one. Correct the key in the input of the packager`;
    return ['content_key_byte_order', text];
  }
  if (cause === 'encrypted_twice') {
    const text = `${THIS} is encrypted twice. Look for a second packager, or a CDN that encrypts the stream again`;
    return ['encrypted_twice', text];
  }
  const which = isOfTwo ? ', perhaps the one for DASH' : '';
  const text = `The ${key} of ${files} does not decrypt ${THIS}, although it should: the packager used another ${key}${which}. Players that get the key of the ${each} show an error. Restart the stream ${withTheseKeys(each)}; if that does not help, compare the key with the one at the license server`;
  return ['content_key_wrong', text];
}
